"""Three sets of runs that have goals of their own, and the price of three kernels.

Fifteen runs of Branin's function (twelve designs), fifty of Friedman's (ten designs) and those of
Nilson and Kuusk (three seeds), each with the default and with the squared exponential alone in
the same process: what the average costs beside what it gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.peers.cells import Cell, Record
from benchmarks.peers.designs import NILSON_KUUSK, function_runs, runs
from benchmarks.peers.emulators import adapter, fit_and_score, warm_up
from paims import datasets

LIMIT = 600.0
BRANIN, FRIEDMAN = "branin, 15 runs", "friedman"
# Designs, or for published runs seeds of the sampler.
DESIGNS = {BRANIN: 12, FRIEDMAN: 10, NILSON_KUUSK: 3}
DEFAULT, SINGLE = "default", "squared exponential"
KERNELS = {DEFAULT: "auto", SINGLE: "squared_exponential"}


def cells() -> Iterator[Cell]:
    """Both on all designs, side by side."""
    for case, designs in DESIGNS.items():
        for design in range(designs):
            for setting in KERNELS:
                yield Cell(__name__, "paims", case, setting, design)


def measure(cell: Cell) -> dict[str, Any]:
    """Fit and score, errors in units of the test outputs' standard deviation."""
    options = {"kernel": KERNELS[cell.setting]}
    warm_up("paims", options)
    data = function_runs("branin", 15, cell.seed) if cell.case == BRANIN else None
    found = fit_and_score(adapter("paims"), options, data or runs(cell.case, cell.seed), cell.seed)
    if cell.case == NILSON_KUUSK:  # the paper's units, in which its goal is
        truth = datasets.load_nilson_kuusk().y_test
        found["nlpd"] += float(np.log(np.std(np.asarray(truth))))
    return found


def rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    """One row for each set of runs and setting: means, the least coverage, and seconds."""
    found = []
    for case in DESIGNS:
        for setting in KERNELS:
            own = [r for r in records if (r["case"], r["setting"]) == (case, setting)]
            own = [r for r in own if r["status"] == "ok"]
            if own:
                row: dict[str, Any] = {"case": case, "setting": setting, "designs": len(own)}
                for field in ("nlpd", "rmse", "coverage", "cpu_seconds"):
                    row[field] = float(np.mean([r[field] for r in own]))
                found.append(row | {"least": min(r["coverage"] for r in own)})
    return found


def times(records: Sequence[Record]) -> dict[str, float]:
    """Processor seconds of the default over those of one kernel: median over designs."""
    found = {}
    for case, designs in DESIGNS.items():
        own = [r for r in records if r["case"] == case and r["status"] == "ok"]
        seconds = {(r["setting"], r["seed"]): r["cpu_seconds"] for r in own}
        pairs = [
            seconds[DEFAULT, design] / seconds[SINGLE, design]
            for design in range(designs)
            if (DEFAULT, design) in seconds and (SINGLE, design) in seconds
        ]
        if pairs:
            found[case] = float(np.median(pairs))
    return found
