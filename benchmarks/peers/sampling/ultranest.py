"""UltraNest: reactive nested sampling."""

from __future__ import annotations

import logging

import numpy as np
import ultranest

from benchmarks.peers.problems import Draws, Problem

SETTINGS = {f"at least {n} live points": n for n in (400,)}
HOW = "batches of points in the unit cube (vectorized=True)"


def run(problem: Problem, setting: str, seed: int) -> Draws:
    """Its own defaults, its own kind of steps."""
    logging.getLogger("ultranest").setLevel(logging.ERROR)
    np.random.seed(seed)  # noqa: NPY002 - it draws from the global generator

    def log_likelihood(x: np.ndarray) -> np.ndarray:
        # It wants finite numbers.
        return np.maximum(problem.log_likelihood(x), -1e300)

    sampler = ultranest.ReactiveNestedSampler(
        [f"x{i}" for i in range(problem.d)],
        log_likelihood,
        problem.reference.quantile,
        vectorized=True,
    )
    found = sampler.run(
        min_num_live_points=SETTINGS[setting], show_status=False, viz_callback=False
    )
    points = found["weighted_samples"]
    weights = np.asarray(points["weights"], dtype=float)
    return Draws(np.asarray(points["points"]), weights / weights.sum(), float(found["logz"]))
