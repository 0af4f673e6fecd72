"""Side by side with other samplers and emulators: `make bench-peers`.

The peers live in an environment of their own, pinned in `requirements.txt`. An experiment is a
module with `cells(options)`, the list of what is to be measured, and `measure(cell)`, which
measures one of them. Peers are adapters, one small file each, under `sampling` and `emulation`.
"""
