"""The diagnostics take what an emulator gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import qmc

import paims
from paims import diagnostics


def simulator(X: np.ndarray) -> np.ndarray:
    return np.asarray(1e3 * np.sin(0.05 * X[:, 0]) + 600.0 * np.cos(X[:, 1]))


@pytest.fixture(scope="module")
def problem() -> tuple[paims.Emulator, np.ndarray, np.ndarray]:
    X = qmc.LatinHypercube(2, rng=1).random(45) * [60.0, 5.0]
    y = simulator(X)
    emulator = paims.Emulator(n_samples=1000, random_state=0).fit(X[:20], y[:20])
    return emulator, X, y


def test_validation_uses_the_mixture_as_it_is(
    problem: tuple[paims.Emulator, np.ndarray, np.ndarray],
) -> None:
    emulator, X, y = problem
    X, y = X[20:], y[20:]
    mixture = emulator.predict_distribution(X)
    result = diagnostics.validate(y, mixture, n_simulations=200)
    np.testing.assert_allclose(result.uniformity.pit, mixture.cdf(y), rtol=1e-9)
    assert result.scores.nlpd == pytest.approx(-np.mean(mixture.logpdf(y)), rel=1e-9)
    assert result.scores.rmse == pytest.approx(np.sqrt(np.mean((y - mixture.mean) ** 2)))
    np.testing.assert_allclose(result.residuals.std, mixture.std, rtol=1e-9)
    lower, upper = mixture.interval(0.95)
    assert result.scores.coverage_95 == np.mean((lower <= y) & (y <= upper))
    assert result.mahalanobis.reference == "simulation"
    assert result.scores.q2 > 0.99


def test_leave_one_out_and_screening_of_the_ensemble(
    problem: tuple[paims.Emulator, np.ndarray, np.ndarray],
) -> None:
    emulator, X, _ = problem
    X = X[:20]
    posterior, ensemble = emulator.posterior_, emulator.ensemble_
    loo = diagnostics.leave_one_out(
        posterior.y, posterior.leave_one_out(ensemble.draws), ensemble.weights
    )
    assert loo.summary.q2 > 0.9
    result = diagnostics.screen(posterior, ensemble.draws, ensemble.weights)
    # The function is a sum: its indices are the shares of the two variances over the runs' range.
    x1, x2 = (np.linspace(*ends, 2001) for ends in zip(X.min(axis=0), X.max(axis=0), strict=True))
    parts = np.array([1e6 * np.var(np.sin(0.05 * x1)), 600.0**2 * np.var(np.cos(x2))])
    np.testing.assert_allclose(result.sobol.first, parts / parts.sum(), atol=0.03)
    assert result.inertness.active == ("x1", "x2")
