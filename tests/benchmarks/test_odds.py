"""Odds of kernels as frequencies: the reckoning, and a small run of it."""

from __future__ import annotations

import numpy as np
from benchmarks.odds import Reliability

from benchmarks import odds


def simulated(shift: float) -> Reliability:
    """Kernels drawn by their probabilities; what is said is off by a log total."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0, 1.0, 1.0], 400)
    made = np.array([rng.multinomial(1, row) for row in p], dtype=float)
    said = p * np.exp([shift, 0.0, 0.0])
    return Reliability(said / said.sum(axis=1, keepdims=True), made)


def test_deviations_see_a_total_left_out() -> None:
    assert simulated(0.0).passed
    assert not simulated(np.log(4.0)).passed
    assert "squared_exponential" in simulated(0.0).table()
    assert simulated(0.0).table().count("+-") == len(odds.EDGES) - 1


def test_the_truth_is_mostly_the_more_probable() -> None:
    found = odds.measure(6, 200)
    assert len(found) == len(odds.WAYS)
    for one in found:
        np.testing.assert_allclose(one.probability.sum(axis=1), 1.0)
    right, control, _ = found
    # What is left out favours the squared exponential, by the square of two for two inputs.
    log_odds = np.log(control.probability / right.probability)
    np.testing.assert_allclose(log_odds[:, 0] - log_odds[:, 1], np.log(4.0), rtol=1e-9)
    assert np.mean(np.sum(right.probability * right.made, axis=1)) > 1.0 / 3.0
