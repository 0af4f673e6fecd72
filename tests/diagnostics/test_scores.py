"""Scores, residuals and their quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.diagnostics.fakes import FakeMixture, mixture

from paims import diagnostics


def independent(k: int, dof: float = np.inf, scale: float = 1.0) -> FakeMixture:
    return FakeMixture(np.zeros((1, k)), scale**2 * np.eye(k)[None], dof, np.ones(1))


def test_scores_are_what_they_say() -> None:
    fake = mixture(m=3, k=40)
    y = fake.sample(1, 5)[0]
    result = diagnostics.scores(y, fake)
    assert result.n == 40
    assert result.rmse == pytest.approx(np.sqrt(np.mean((y - fake.mean) ** 2)))
    assert result.rmse == pytest.approx(diagnostics.rmse(y, fake.mean))
    c = fake.components
    density = fake.weights @ (stats.t(9.0).pdf((y - c.means) / c.scales) / c.scales)
    assert result.nlpd == pytest.approx(-np.mean(np.log(density)))
    assert result.nlpd == pytest.approx(diagnostics.nlpd(y, fake))
    assert result.nlpd_error == pytest.approx(np.std(np.log(density), ddof=1) / np.sqrt(40))
    assert result.crps == pytest.approx(np.mean(diagnostics.crps(y, fake)))
    inside = [0.025 <= fake.cdf(j, y[j]) <= 0.975 for j in range(40)]
    assert result.coverage_95 == np.mean(inside)
    assert result.q2 == pytest.approx(1.0 - np.mean((y - fake.mean) ** 2) / np.var(y))


def test_verdict_of_scores() -> None:
    y = np.linspace(-1.0, 1.0, 20)
    good = FakeMixture(y[None] + 0.01, 1e-4 * np.eye(20)[None], np.inf, np.ones(1))
    assert "leaves 0.02" in diagnostics.scores(y, good).verdict
    assert "no better than" in diagnostics.scores(y, independent(20)).verdict
    flat = diagnostics.scores(np.zeros(3), independent(3))
    assert np.isnan(flat.q2)
    assert "all equal" in flat.verdict


def test_residuals_of_a_normal_are_the_scores() -> None:
    y = np.random.default_rng(1).normal(size=60)
    result = diagnostics.standardised_residuals(2.0 * y, independent(60, scale=2.0))
    np.testing.assert_allclose(result.standardised, y, rtol=1e-12)
    np.testing.assert_allclose(result.scores, y, rtol=1e-9)
    assert result.n_outside == np.sum(np.abs(y) > 1.959964)
    assert result.worst == np.argmax(np.abs(y))


def test_residuals_pass_for_right_predictions() -> None:
    fake = independent(100, dof=5.0)
    p_outside, p_largest = [], []
    for seed in range(200):
        result = diagnostics.standardised_residuals(fake_sample(fake, seed), fake)
        p_outside.append(result.p_outside)
        p_largest.append(result.p_largest)
    assert stats.kstest(p_largest, "uniform").pvalue > 1e-3
    assert np.mean(np.array(p_outside) < 0.05) < 0.1


def fake_sample(fake: FakeMixture, seed: int) -> np.ndarray:
    """Independent outputs (a joint Student-t would have a common stretch)."""
    rng = np.random.default_rng(seed)
    k = fake.means.shape[1]
    return np.asarray(rng.normal(size=k) if np.isinf(fake.dof) else rng.standard_t(fake.dof, k))


@pytest.mark.parametrize(("factor", "words"), [(2.0, "too sure of itself"), (0.2, "too cautious")])
def test_residuals_tell_a_wrong_scale(factor: float, words: str) -> None:
    y = factor * np.random.default_rng(3).normal(size=200)
    result = diagnostics.standardised_residuals(y, independent(200))
    assert not result.passed
    assert words in result.verdict


def test_residuals_tell_a_single_outlier() -> None:
    y = np.random.default_rng(4).normal(size=100)
    y[17] = 6.0
    result = diagnostics.standardised_residuals(y, independent(100))
    assert not result.passed
    assert "output 17" in result.verdict
    assert "check that run" in result.verdict


def test_quantile_quantile_band_holds_order_statistics() -> None:
    inside = np.zeros(30)
    for seed in range(500):
        scores = np.random.default_rng(seed).normal(size=30)
        result = diagnostics.quantile_quantile(scores)
        np.testing.assert_array_equal(result.ordered, scores[result.order])
        assert (np.diff(result.ordered) >= 0.0).all()
        inside += (result.lower <= result.ordered) & (result.ordered <= result.upper)
    # Binomial(500, 0.95) has a standard deviation of 4.9.
    assert (np.abs(inside - 475.0) < 22.0).all()
    np.testing.assert_allclose(result.theoretical, -result.theoretical[::-1], atol=1e-12)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="mean must be finite"):
        diagnostics.rmse([0.0], [np.inf])
    with pytest.raises(ValueError, match="each of the 2 predictions; got 3"):
        diagnostics.scores([0.0, 1.0, 2.0], independent(2))
