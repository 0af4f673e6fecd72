"""Ours."""

from __future__ import annotations

import numpy as np

import paims
from benchmarks.peers.problems import Draws, Problem

SETTINGS = {f"N = {n}": n for n in (250, 500, 1000, 2000, 4000, 8000, 16000)}
HOW = "batches of points"


def warm_up(problem: Problem, setting: str) -> None:
    """Load the compiled loops."""
    del setting
    paims.sample(problem.density_fn, problem.reference, 500, random_state=0, progress=False)


def run(problem: Problem, setting: str, seed: int) -> Draws:
    """Sample with N points at each level."""
    result = paims.sample(
        problem.log_density,
        problem.reference,
        SETTINGS[setting],
        random_state=seed,
        n_jobs=1,
        progress=False,
    )
    return Draws(np.asarray(result.draws), np.asarray(result.weights), result.log_evidence)
