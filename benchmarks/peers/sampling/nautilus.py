"""nautilus: importance nested sampling with neural networks."""

from __future__ import annotations

import nautilus
import numpy as np

from benchmarks.peers.problems import Draws, Problem

SETTINGS = {f"n_live = {n}": n for n in (1000, 2000)}
HOW = "batches of points in the unit cube (vectorized=True)"


def run(problem: Problem, setting: str, seed: int) -> Draws:
    """Its own defaults but for the number of live points; effective size 10,000 as by default."""
    sampler = nautilus.Sampler(
        problem.reference.quantile,
        problem.log_likelihood,
        n_dim=problem.d,
        n_live=SETTINGS[setting],
        vectorized=True,
        pass_dict=False,
        seed=seed,
    )
    sampler.run(verbose=False)
    points, log_w, _ = sampler.posterior()
    weights = np.exp(log_w - log_w.max())
    return Draws(points, weights / weights.sum(), float(sampler.log_z))
