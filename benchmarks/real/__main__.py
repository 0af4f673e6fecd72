"""`python -m benchmarks.real`: measure what is not there yet; `--summary` makes the tables.

The peers need `make .venv-peers/.peers-botorch` and its Python (`make bench-real` does both);
those that are not installed are left out.
"""

from __future__ import annotations

import argparse
import re
from importlib import metadata
from pathlib import Path

from benchmarks import wheel
from benchmarks.peers.cells import Cell, Store
from benchmarks.peers.runner import ONE_THREAD, Worker, run
from benchmarks.real import comparison, named
from benchmarks.real.sets import SETS
from benchmarks.real.summary import report

RESULTS = Path(__file__).parents[1] / "real.jsonl"
PAGE = RESULTS.with_suffix(".md")


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__)
    made.add_argument("--named", action="store_true", help="only the fits with a time as a goal")
    made.add_argument("--set", nargs="+", default=SETS, choices=SETS, metavar="SET")
    made.add_argument("--output", nargs="+", type=int, help="numbers of outputs, from 0")
    made.add_argument("--split", nargs="+", type=int, help="numbers of splits, from 0")
    made.add_argument("--method", default="", help="regular expression found in a method's name")
    made.add_argument("--case", default="", help="the same of a named fit")
    made.add_argument("--limit", type=float, default=0.0, help="seconds for one; 0: the default")
    made.add_argument("--again", action="store_true", help="measure again what is there")
    made.add_argument("--retry", action="store_true", help="measure again what failed")
    made.add_argument("--data", type=Path, help="folder for the wheel with the data sets")
    made.add_argument("--results", type=Path, default=RESULTS, help="file that keeps the results")
    made.add_argument("--list", action="store_true", help="list what would be measured and stop")
    made.add_argument("--summary", action="store_true", help="write real.md and stop")
    return made


def installed(package: str) -> bool:
    """Whether a package is there."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def chosen(given: argparse.Namespace) -> list[Cell]:
    """Cells that the options leave."""
    if given.named:
        return [cell for cell in named.cells() if re.search(given.case, str(cell))]
    return [
        cell
        for cell in comparison.cells()
        if cell.case in given.set
        and (given.output is None or int(cell.setting) in given.output)
        and (given.split is None or cell.seed in given.split)
        and re.search(given.method, cell.method)
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
    wheel.locate(given.data)  # now, and not in the first measurement
    missing = {m for m, (_, package) in comparison.METHODS.items() if not installed(package)}
    if missing:
        print(f"Not installed, left out: {', '.join(sorted(missing))}.")
    place = {wheel.FOLDER_VARIABLE: str(given.data)} if given.data else {}
    run(
        [cell for cell in cells if cell.method not in missing],
        store,
        given.limit or (named if given.named else comparison).LIMIT,
        retry=given.retry,
        again=given.again,
        worker=Worker(environment=place if given.named else {**ONE_THREAD, **place}),
    )


if __name__ == "__main__":
    main()
