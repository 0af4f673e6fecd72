"""Ours: a batch, with the prior of the other packages too, and one point at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.throughput import FloatArray
from paims.gp import Posterior


def batch(
    X: FloatArray,
    H: FloatArray,
    y: FloatArray,
    phi: FloatArray,
    delta: FloatArray,
    prior: str = "reference",
) -> Callable[[], int]:
    """All points in one call."""
    del H
    posterior = Posterior(X, y, prior=prior, n_jobs=1)
    u = posterior.from_physical(phi, delta)

    def work() -> int:
        posterior(u)
        return len(u)

    return work


def single(
    X: FloatArray, H: FloatArray, y: FloatArray, phi: FloatArray, delta: FloatArray
) -> Callable[[], int]:
    """A call for each of 16 points."""
    del H
    posterior = Posterior(X, y, n_jobs=1)
    points = np.split(posterior.from_physical(phi, delta)[:16], 16)

    def work() -> int:
        for point in points:
            posterior(point)
        return len(points)

    return work


ENGINES = {
    "paims, batch": batch,
    "paims, batch, jointly robust prior": partial(batch, prior="jointly_robust"),
    "paims, one point at a time": single,
}
