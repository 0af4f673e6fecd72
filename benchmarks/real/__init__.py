"""Runs of real simulators, ours beside the peers: `python -m benchmarks.real`.

Nine data sets (:mod:`benchmarks.wheel`), five random splits of each into 80 % for training and
20 % to be predicted. `comparison` measures one method on one output of one split, `named` the fits
for which a time is aimed at, and `summary` makes the tables of `docs/benchmarks.md` from what is
kept in `benchmarks/real.jsonl`, one line for each measurement. Methods, scores, time limits and
the process in which everything runs are those of :mod:`benchmarks.peers`.
"""
