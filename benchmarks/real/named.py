"""Fits of ours for which a time is aimed at: defaults, all cores, the clock of the wall.

Scores are in the units of the outputs. The borehole's 240 runs are fitted three times more with
one kernel: with the default prior, and with the reference prior as it is and without a lead. The
last is the exact run which the quicker ways are compared with.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import paims
from benchmarks.peers.cells import Cell
from benchmarks.peers.clock import Clock
from benchmarks.real.comparison import worded
from benchmarks.real.sets import held_out
from benchmarks.wheel import load
from paims import datasets, inference, simulators
from paims.diagnostics import scores
from paims.emulator import _fit

Floats = NDArray[np.float64]
Data = tuple[Floats, ...]
LIMIT = 1800.0
REPEATS = 3
N_TEST = 500


def nilson_kuusk() -> Data:
    """The published runs, 100 and 150; needs them at hand (see `paims.datasets`)."""
    data = datasets.load_nilson_kuusk()
    assert data.X_test is not None
    assert data.y_test is not None
    return data.X, data.y, data.X_test, data.y_test


def borehole(n: int) -> Data:
    """A Latin hypercube of n runs, and 500 others."""
    simulator = simulators.get("borehole")
    X, X_test = simulator.design(n, 0), simulator.design(N_TEST, 10_000)
    return X, simulator(X), X_test, simulator(X_test)


def every_run(name: str) -> Data:
    """All runs of a set, the first output; none is left to be predicted."""
    data = load(name)
    return data.X, data.Y[:, 0]


CASES: dict[str, Callable[[], Data]] = {
    "nilson_kuusk": nilson_kuusk,
    "cardiac6": lambda: held_out("cardiac6", 0, 0),
    "cardiac5": lambda: held_out("cardiac5", 0, 0),
    "borehole 480": lambda: borehole(480),
    "cardiac3, all runs": lambda: every_run("cardiac3"),
    "climate1, all runs": lambda: every_run("climate1"),
    "borehole 240": lambda: borehole(240),
}
DEFAULTS, REFERENCE, EXACT = "defaults", "reference prior", "reference prior, no lead"
ONE_KERNEL = "one kernel"
SETTINGS: dict[str, dict[str, Any]] = {
    DEFAULTS: {},
    ONE_KERNEL: {"kernel": "squared_exponential"},
    REFERENCE: {"kernel": "squared_exponential", "prior": "reference"},
    EXACT: {"kernel": "squared_exponential", "prior": "reference"},
}


def cells() -> Iterator[Cell]:
    """Each fit a few times with different seeds; the exact one, which is long, once."""
    for case in CASES:
        for repeat in range(REPEATS):
            yield Cell(__name__, "paims", case, DEFAULTS, repeat)
    for setting in (ONE_KERNEL, REFERENCE, EXACT):
        yield Cell(__name__, "paims", "borehole 240", setting, 0)


@cache
def warm_up() -> None:
    """Load the compiled loops, which is done once on a machine and not measured."""
    simulator = simulators.get("branin")
    X = simulator.design(20, 0)
    paims.Emulator(random_state=0).fit(X, simulator(X))


@contextmanager
def forecasts() -> Iterator[list[float]]:
    """Seconds that fits say they will take."""
    announce, told = _fit.announce, []

    def noted(*arguments: Any) -> float:
        told.append(announce(*arguments))
        return told[-1]

    try:
        _fit.announce = noted
        yield told
    finally:
        _fit.announce = announce


@contextmanager
def leading(wanted: bool) -> Iterator[None]:
    """Fits with or without what leads to their posteriors."""
    found = inference.leads
    try:
        if not wanted:
            inference.leads = lambda posterior: []
        yield
    finally:
        inference.leads = found


def measure(cell: Cell) -> dict[str, Any]:
    """Fit once; the seed of a cell is that of the fit."""
    X, y, *test = CASES[cell.case]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warm_up()
        caught.clear()
        emulator = paims.Emulator(random_state=cell.seed, **SETTINGS[cell.setting])
        with forecasts() as told, leading(cell.setting != EXACT), Clock() as clock:
            emulator.fit(X, y)
    row: dict[str, Any] = {
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "forecast": told[0],
        "n_evaluations": emulator.result_.n_evaluations,
        "n_lead_evaluations": emulator.result_.n_lead_evaluations,
        "log_evidence": emulator.log_evidence_,
        "log_evidence_error": emulator.log_evidence_error_,
        "warnings": worded(caught),
        "version": paims.__version__,
    }
    if test:
        found = scores(test[1], emulator.predict_distribution(test[0]))
        row |= {"rmse": found.rmse, "nlpd": found.nlpd, "crps": found.crps}
        row["coverage"] = found.coverage_95
    return row
