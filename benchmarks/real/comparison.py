"""One method on one output of one split: scores, time and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from benchmarks.peers.cells import Cell
from benchmarks.peers.emulators import adapter, fit_and_score, warm_up
from benchmarks.real.sets import SETS, SPLITS, n_outputs, runs

LIMIT = 600.0
# Method: its adapter in `benchmarks.peers.emulation`, and its package.
METHODS = {
    "paims": ("paims", "paims"),
    "scikit-learn, 10 restarts": ("scikit_learn", "scikit-learn"),
    "gpmp, Matérn 7/2": ("gpmp", "gpmp"),
    "BoTorch, MAP": ("botorch", "botorch"),
    "GPBoost, scaled Vecchia": ("gpboost", "gpboost"),
    "BoTorch, SAAS": ("botorch", "botorch"),
    "BoTorch, fully Bayesian": ("botorch", "botorch"),
}


def cells() -> Iterator[Cell]:
    """Every method on every output; the first split of all of them first."""
    for split in range(SPLITS):
        for method in METHODS:
            for name in SETS:
                for output in range(n_outputs(name)):
                    yield Cell(__name__, method, name, str(output), split)


def measure(cell: Cell) -> dict[str, Any]:
    """Fit, predict and score; the setting of a cell is the output, its seed the split."""
    name, package = METHODS[cell.method]
    module = adapter(name)
    options = {} if cell.method == "paims" else module.METHODS[cell.method]  # ours as it comes
    warm_up(name, options)
    data = runs(cell.case, int(cell.setting), cell.seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit_and_score(module, options, data, cell.seed)
    return {**found, "warnings": worded(caught), "version": metadata.version(package)}


def worded(caught: list[warnings.WarningMessage]) -> list[str]:
    """Category and beginning of each different warning."""
    texts = (f"{w.category.__name__}: {' '.join(str(w.message).split())[:150]}" for w in caught)
    return list(dict.fromkeys(texts))[:5]


def means_wrong(record: dict[str, Any]) -> bool:
    """Whether a warning of ours says that the posterior may be wrong."""
    return any(text.startswith("SamplingWarning") for text in record["warnings"])
