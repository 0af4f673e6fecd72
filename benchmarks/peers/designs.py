"""The runs that every emulator is given, and the outputs that it has to predict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration import FUNCTIONS
from paims import datasets, simulators

Floats = NDArray[np.float64]
NILSON_KUUSK = "nilson_kuusk"
CASES = (NILSON_KUUSK, *FUNCTIONS)
N_TEST = 500


@dataclass(frozen=True, eq=False)
class Runs:
    """Training and test runs; X scaled to [0, 1] and y standardised by the training runs.

    ``unit`` is the standard deviation of the test outputs in that scale: errors are given in it.
    """

    X: Floats
    y: Floats
    X_test: Floats
    y_test: Floats

    @property
    def unit(self) -> float:
        """Standard deviation of the test outputs."""
        return float(np.std(self.y_test))


def scaled(X: Floats, y: Floats, X_test: Floats, y_test: Floats) -> Runs:
    """The runs on the scale that all emulators get."""
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    mean, sd = y.mean(), y.std()
    return Runs((X - low) / width, (y - mean) / sd, (X_test - low) / width, (y_test - mean) / sd)


def function_runs(name: str, n: int, design: int) -> Runs:
    """A random Latin hypercube of n runs of a simulator, and 500 test runs."""
    simulator = simulators.get(name)
    X, X_test = simulator.design(n, design), simulator.design(N_TEST, 10_000)
    return scaled(X, simulator(X), X_test, simulator(X_test))


def runs(case: str, design: int) -> Runs:
    """The published Nilson-Kuusk runs (one design), or a design of one of the six functions."""
    if case != NILSON_KUUSK:
        return function_runs(case, FUNCTIONS[case], design)
    data = datasets.load_nilson_kuusk()
    assert data.X_test is not None
    assert data.y_test is not None
    return scaled(data.X, data.y, data.X_test, data.y_test)
