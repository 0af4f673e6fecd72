"""Plain NumPy: the formulas as published, and the same algebra as ours in batches."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.throughput import FloatArray, naive_terms
from paims.gp import SquaredExponential, _twin

N_POINTS = 16


def naive(
    X: FloatArray, H: FloatArray, y: FloatArray, phi: FloatArray, delta: FloatArray
) -> Callable[[], int]:
    """One point at a time, with the inverse of K and each W_i."""

    def work() -> int:
        for point in zip(phi[:N_POINTS], delta[:N_POINTS], strict=True):
            naive_terms(X, H, y, *point)
        return N_POINTS

    return work


def batch(
    X: FloatArray, H: FloatArray, y: FloatArray, phi: FloatArray, delta: FloatArray
) -> Callable[[], int]:
    """Stacks of matrices."""

    def work() -> int:
        _twin.core_terms(X, H, y, SquaredExponential(), phi, delta, 1, 1)
        return len(phi)

    return work


ENGINES = {"NumPy, one point at a time": naive, "NumPy, batch": batch}
