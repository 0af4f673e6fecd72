"""dynesty: static nested sampling."""

from __future__ import annotations

import dynesty
import numpy as np

from benchmarks.peers.problems import Draws, Problem

SETTINGS = {f"nlive = {n}": n for n in (500,)}
HOW = "one point at a time in the unit cube: it has no batches"


def run(problem: Problem, setting: str, seed: int) -> Draws:
    """Nested sampling with its own defaults but for the number of live points."""

    def log_likelihood(x: np.ndarray) -> float:
        # dynesty wants finite numbers.
        return max(float(problem.log_likelihood(x[None])[0]), -1e300)

    sampler = dynesty.NestedSampler(
        log_likelihood,
        lambda u: problem.reference.quantile(u[None])[0],
        problem.d,
        nlive=SETTINGS[setting],
        rstate=np.random.default_rng(seed),
    )
    sampler.run_nested(print_progress=False)
    results = sampler.results
    return Draws(results.samples, results.importance_weights(), float(results.logz[-1]))
