"""emcee: ensemble MCMC with differential-evolution and snooker moves."""

from __future__ import annotations

import emcee
import numpy as np

from benchmarks.peers.problems import Draws, Floats, Problem

SETTINGS = {f"{n // 1000}k evaluations": n for n in (30_000, 100_000, 300_000)}
HOW = "batches of walkers (vectorize=True)"
N_WALKERS = 100
DISCARDED = 0.25


def starts(problem: Problem, rng: np.random.Generator) -> Floats:
    """Draws of the reference at which the density is not zero."""
    x = problem.reference.sample(N_WALKERS, rng)
    bad = ~np.isfinite(problem.log_density(x))
    while bad.any():
        x[bad] = problem.reference.sample(int(bad.sum()), rng)
        bad[bad] = ~np.isfinite(problem.log_density(x[bad]))
    return x


def run(problem: Problem, setting: str, seed: int) -> Draws:
    """100 walkers from draws of the reference; the first quarter of the steps is dropped."""
    sampler = emcee.EnsembleSampler(
        N_WALKERS,
        problem.d,
        problem.log_density,
        moves=[(emcee.moves.DEMove(), 0.8), (emcee.moves.DESnookerMove(), 0.2)],
        vectorize=True,
    )
    sampler.random_state = np.random.RandomState(seed).get_state()
    n_steps = SETTINGS[setting] // N_WALKERS
    sampler.run_mcmc(starts(problem, np.random.default_rng(seed)), n_steps)
    draws = sampler.get_chain(discard=int(DISCARDED * n_steps), flat=True)
    return Draws(draws, np.full(len(draws), 1.0 / len(draws)))
