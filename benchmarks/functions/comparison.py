"""One method on one design of a function: scores, time and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from benchmarks.functions.cases import CASES, DESIGNS, runs
from benchmarks.peers.cells import Cell
from benchmarks.peers.emulators import adapter, fit_and_score, warm_up
from benchmarks.real.comparison import worded
from paims.gp import SpikeSlabNugget

LIMIT = 600.0
# Method: its adapter in `benchmarks.peers.emulation`, its package, and options of the adapter;
# None stands for what the adapter has under that name.
METHODS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "paims": ("paims", "paims", {}),
    "paims, squared exponential": ("paims", "paims", {"kernel": "squared_exponential"}),
    "paims, Matérn 7/2": ("paims", "paims", {"kernel": "matern72"}),
    "paims, Matérn 5/2": ("paims", "paims", {"kernel": "matern52"}),
    "paims, best point": ("paims", "paims", {"goal": "map"}),
    "paims, spike from 1e-8": ("paims", "paims", {"nugget_prior": SpikeSlabNugget()}),
    "scikit-learn, 10 restarts": ("scikit_learn", "scikit-learn", {"restarts": 10}),
    "gpmp, Matérn 7/2": ("gpmp", "gpmp", {"p": 3}),
    "gpmp, Matérn 7/2, constant trend": ("gpmp", "gpmp", {"p": 3, "mean": "constant"}),
    "BoTorch, MAP": ("botorch", "botorch", None),
    "BoTorch, fully Bayesian": ("botorch", "botorch", None),
}
OURS = tuple(method for method in METHODS if method.startswith("paims"))
#: The default where there are more than three inputs; with fewer its spike begins lower.
SPIKE = "paims, spike from 1e-8"
#: Sampled by others, which takes long.
SLOW = "BoTorch, fully Bayesian"


def cells() -> Iterator[Cell]:
    """Every method on every design: a process serves all designs of a method on a function."""
    for case in CASES:
        for method in METHODS:
            for design in range(DESIGNS):
                yield Cell(__name__, method, case, "", design)


def measure(cell: Cell) -> dict[str, Any]:
    """Fit, predict and score; the seed of a cell is the design."""
    name, package, options = METHODS[cell.method]
    module = adapter(name)
    if options is None:
        options = module.METHODS[cell.method]
    warm_up(name, options)
    data = runs(cell.case, cell.seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit_and_score(module, options, data, cell.seed)
    return {**found, "warnings": worded(caught), "version": metadata.version(package)}
