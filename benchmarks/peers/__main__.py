"""`python -m benchmarks.peers [samplers|emulators|pointwise|scaling|all]`.

Every cell is measured in a worker process with a time limit, and its result is kept in
`cells.jsonl` in the output folder at once: an interrupted run goes on where it was. At the end
the folder has `results.json` and `results.md`.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks.peers.cells import Store
from benchmarks.peers.options import Options
from benchmarks.peers.report import write
from benchmarks.peers.runner import run

EXPERIMENTS = ("samplers", "emulators", "pointwise", "scaling")


def main() -> None:
    """Measure what is asked for and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("experiment", nargs="?", default="all", choices=(*EXPERIMENTS, "all"))
    parser.add_argument("--seeds", type=int, default=10, help="seeds of each sampler")
    parser.add_argument("--designs", type=int, default=20, help="designs of each function")
    parser.add_argument("--only", default="", help="regular expression found in a cell's text")
    parser.add_argument("--out", type=Path, default=Path("results/peers"), help="output folder")
    parser.add_argument("--limit", type=float, default=0.0, help="seconds for a cell; 0: default")
    parser.add_argument("--retry", action="store_true", help="try failed cells again")
    parser.add_argument("--with-botorch", action="store_true", help="BoTorch's emulators too")
    parser.add_argument("--octave", type=Path, help="folder with the published MATLAB code")
    parser.add_argument("--list", action="store_true", help="list the cells and stop")
    parser.add_argument("--tables-only", action="store_true", help="write the tables and stop")
    given = parser.parse_args()
    options = Options(given.seeds, given.designs, given.only, given.with_botorch, given.octave)
    store = Store(given.out / "cells.jsonl")
    names = EXPERIMENTS if given.experiment == "all" else (given.experiment,)
    experiments = [importlib.import_module(f"benchmarks.peers.{name}") for name in names]
    wanted = [[cell for cell in e.cells(options) if options.wants(cell)] for e in experiments]
    if not any(wanted):
        parser.error(
            f"--only {given.only!r} is found in no cell; --list without it shows them all"
        )
    if given.list:
        print("\n".join(str(cell) for cells in wanted for cell in cells))
        return
    if not given.tables_only:
        for experiment, cells in zip(experiments, wanted, strict=True):
            run(cells, store, given.limit or experiment.LIMIT, retry=given.retry)
    write(store, given.out)


if __name__ == "__main__":
    main()
