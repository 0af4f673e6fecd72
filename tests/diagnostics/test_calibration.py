"""Probability-integral transforms, coverage, and their tests with and without dependence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.diagnostics.fakes import FakeMixture, mixture

from paims import diagnostics
from paims.diagnostics._calibration import _two_sided, anderson_darling, anderson_darling_cdf


def dependent(k: int = 40) -> FakeMixture:
    """Outputs that err together."""
    cov = 0.6 * np.ones((k, k)) + 0.4 * np.eye(k)
    return FakeMixture(np.zeros((1, k)), cov[None], np.inf, np.ones(1))


def test_pit_is_the_distribution_function() -> None:
    fake = mixture(m=3, k=4)
    y = np.array([-1.0, 0.0, 0.5, 2.0])
    expected = [fake.cdf(j, y[j]) for j in range(4)]
    np.testing.assert_allclose(diagnostics.pit(y, fake), expected, rtol=1e-12)


def test_coverage_counts_central_intervals() -> None:
    fake = mixture(m=2, k=50, dof=np.inf)
    y = fake.sample(1, 2)[0]
    result = diagnostics.coverage_curve(diagnostics.pit(y, fake), [0.5, 0.8, 0.95])
    for level, share in zip(result.nominal, result.empirical, strict=True):
        tails = 0.5 * (1.0 - level), 0.5 * (1.0 + level)
        inside = [tails[0] <= fake.cdf(j, y[j]) <= tails[1] for j in range(50)]
        assert share == np.mean(inside)
    assert result.level == 0.95
    np.testing.assert_allclose(result.lower, stats.binom.ppf(0.025, 50, result.nominal) / 50)
    assert result.at_level == result.empirical[2]


@pytest.mark.parametrize(
    ("exponent", "words"), [(1.0, "as they say"), (2.5, "too narrow"), (0.2, "wider than")]
)
def test_coverage_verdicts(exponent: float, words: str) -> None:
    scores = exponent * np.random.default_rng(1).normal(size=200)
    result = diagnostics.coverage_curve(stats.norm.cdf(scores))
    assert words in result.verdict
    assert result.passed == (exponent == 1.0)


@pytest.mark.parametrize("n", [5, 30, 150])
def test_p_values_are_uniform_for_independent_outputs(n: int) -> None:
    u = np.random.default_rng(n).random((400, n))
    results = [diagnostics.uniformity(row) for row in u]
    for name in ("ks_p", "ad_p"):
        p = [getattr(result, name) for result in results]
        assert stats.kstest(p, "uniform").pvalue > 1e-3
    expected = stats.kstest(u[0], "uniform")
    assert results[0].ks == pytest.approx(expected.statistic, rel=1e-12)
    assert results[0].ks_p == pytest.approx(expected.pvalue, rel=1e-6)


@pytest.mark.parametrize("n", [5, 40])
def test_distribution_of_anderson_darling(n: int) -> None:
    statistic = anderson_darling(np.random.default_rng(0).random((40_000, n)))
    for level in (0.05, 0.3, 0.5, 0.79, 0.9, 0.99):
        value = float(np.quantile(statistic, level))
        tolerance = 4.0 * np.sqrt(level * (1.0 - level) / 40_000) + 1e-4
        assert anderson_darling_cdf(value, n) == pytest.approx(level, abs=tolerance)
    assert anderson_darling_cdf(0.0, n) == 0.0
    assert anderson_darling_cdf(1e4, n) > 0.9998


def test_extreme_transforms_are_finite() -> None:
    result = diagnostics.uniformity([0.0, 1.0, 0.5])
    assert np.isfinite(result.ad)
    assert result.ad_p < 1e-3


def test_dependence_is_simulated() -> None:
    fake = dependent()
    reference = diagnostics.reference_pit(fake.sample(500, 1))
    simulated, naive = [], []
    for y in fake.sample(200, 2):
        u = diagnostics.pit(y, fake)
        simulated.append(diagnostics.uniformity(u, reference=reference).ks_p)
        naive.append(diagnostics.uniformity(u).ks_p)
    assert stats.kstest(simulated, "uniform").pvalue > 1e-3
    # As if independent, two of three right predictions would be called wrong.
    assert np.mean(np.array(naive) < 0.05) > 0.5


def test_dependence_widens_the_band() -> None:
    fake = dependent()
    reference = diagnostics.reference_pit(fake.sample(1000, 3))
    u = diagnostics.pit(fake.sample(1, 4)[0], fake)
    wide = diagnostics.coverage_curve(u, reference=reference)
    narrow = diagnostics.coverage_curve(u)
    middle = np.abs(wide.nominal - 0.5) < 0.3
    assert (wide.upper - wide.lower > 1.3 * (narrow.upper - narrow.lower))[middle].all()
    assert wide.reference == "simulation"
    p = [
        diagnostics.coverage_curve(diagnostics.pit(y, fake), reference=reference).p_value
        for y in fake.sample(300, 5)
    ]
    assert np.mean(np.array(p) < 0.05) < 0.09
    counts = diagnostics.uniformity(u, reference=reference)
    assert counts.upper > diagnostics.uniformity(u).upper


def test_simulated_p_values_have_two_sides() -> None:
    simulated = np.arange(1.0, 1000.0)
    assert _two_sided(simulated, 500.0) == 1.0
    assert _two_sided(simulated, 10.0) == pytest.approx(2.0 * 11.0 / 1000.0)
    assert _two_sided(simulated, 990.0) == pytest.approx(2.0 * 11.0 / 1000.0)
    assert _two_sided(simulated, 5000.0) == pytest.approx(2.0 / 1000.0)


def test_reference_transforms_are_uniform_by_column() -> None:
    reference = diagnostics.reference_pit(mixture(m=2, k=3).sample(200, 0))
    np.testing.assert_allclose(np.sort(reference[:, 1]), (np.arange(200) + 0.5) / 200)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (lambda z: z + 1.0, "above the predictions"),
        (lambda z: z - 1.0, "below the predictions"),
        (lambda z: 3.0 * z, "too narrow"),
        (lambda z: 0.3 * z, "too wide"),
        (lambda z: z, "No sign against"),
    ],
)
def test_uniformity_verdicts(scores: object, words: str) -> None:
    z = np.random.default_rng(6).normal(size=150)
    result = diagnostics.uniformity(stats.norm.cdf(scores(z)))  # type: ignore[operator]
    assert words in result.verdict
    assert result.passed == (words == "No sign against")


def test_histogram() -> None:
    u = np.random.default_rng(7).random(60)
    result = diagnostics.uniformity(u, n_bins=4)
    np.testing.assert_array_equal(result.counts, np.histogram(u, 4, (0.0, 1.0))[0])
    assert result.lower == stats.binom.ppf(0.025, 60, 0.25)
    assert len(diagnostics.uniformity(u[:12]).counts) == 2


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="probabilities"):
        diagnostics.uniformity([0.2, 1.2])
    with pytest.raises(ValueError, match="probabilities"):
        diagnostics.coverage_curve([])
    with pytest.raises(ValueError, match=r"levels must lie in \(0, 1\)"):
        diagnostics.coverage_curve([0.5], [1.0])
    with pytest.raises(ValueError, match=r"shape \(size, 2\)"):
        diagnostics.uniformity([0.2, 0.4], reference=np.full((200, 3), 0.5))
