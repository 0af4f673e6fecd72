"""`python -m benchmarks.functions`: measure what is not there yet; `--summary` makes the tables.

The functions need the package `uqtestfuns`, the peers theirs: `make bench-functions` has both;
peers that are not installed are left out. `--weights` fits the kernels one by one and scores all
ways to weigh them; `--named` has the sets of runs with goals of their own, which need no package.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from benchmarks.functions import comparison, named, weights
from benchmarks.functions.cases import CASES, INPUTS
from benchmarks.functions.summary import report
from benchmarks.peers.cells import Cell, Store
from benchmarks.peers.runner import run
from benchmarks.real.__main__ import installed

RESULTS = Path(__file__).parents[1] / "functions.jsonl"
PAGE = RESULTS.with_suffix(".md")


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.functions", description=__doc__)
    made.add_argument("--weights", action="store_true", help="only the ways to weigh kernels")
    made.add_argument("--named", action="store_true", help="only the named sets of runs")
    made.add_argument("--setting", default="", help="of the ways: kernels, or wider")
    made.add_argument("--case", nargs="+", choices=(*CASES, *named.DESIGNS), metavar="FUNCTION")
    made.add_argument("--most-inputs", type=int, default=20, help="functions of at most so many")
    made.add_argument("--design", nargs="+", type=int, help="numbers of designs, from 0")
    made.add_argument("--method", default="", help="regular expression found in a method's name")
    made.add_argument("--limit", type=float, default=0.0, help="seconds for one; 0: the default")
    made.add_argument("--again", action="store_true", help="measure again what is there")
    made.add_argument("--retry", action="store_true", help="measure again what failed")
    made.add_argument("--results", type=Path, default=RESULTS, help="file that keeps the results")
    made.add_argument("--list", action="store_true", help="list what would be measured and stop")
    made.add_argument("--summary", action="store_true", help="write functions.md and stop")
    return made


def module(given: argparse.Namespace) -> Any:
    """What is measured."""
    return named if given.named else weights if given.weights else comparison


def chosen(given: argparse.Namespace) -> list[Cell]:
    """Cells that the options leave."""
    every = module(given).cells()
    return [
        cell
        for cell in every
        if (given.case is None or cell.case in given.case)
        and INPUTS.get(cell.case, 0) <= given.most_inputs
        and (given.design is None or cell.seed in given.design)
        and re.search(given.method, cell.method)
        and re.search(given.setting, cell.setting)
    ]


def main() -> None:
    """Measure, or print."""
    options = parser()
    given = options.parse_args()
    store = Store(given.results)
    if given.summary:
        PAGE.write_text(report(store) + "\n", encoding="utf-8")
        print(PAGE.read_text(encoding="utf-8"))
        return
    cells = chosen(given)
    if not cells:
        options.error("nothing is left to measure: --list with fewer options shows what there is")
    if given.list:
        print("\n".join(str(cell) for cell in cells))
        return
    if not given.named and not installed("uqtestfuns"):
        options.error("the functions need the package uqtestfuns: make bench-functions has it")
    packages = {method: package for method, (_, package, _) in comparison.METHODS.items()}
    missing = {method for method, package in packages.items() if not installed(package)}
    missing -= set(comparison.OURS)
    if missing:
        print(f"Not installed, left out: {', '.join(sorted(missing))}.")
    run(
        [cell for cell in cells if cell.method not in missing],
        store,
        given.limit or module(given).LIMIT,
        retry=given.retry,
        again=given.again,
    )


if __name__ == "__main__":
    main()
