"""Joint errors and the Mahalanobis distance against definitions and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.diagnostics.fakes import FakeMixture, mixture

from paims import diagnostics
from paims.diagnostics import Mahalanobis


def one(k: int = 6, dof: float = 7.0) -> FakeMixture:
    return mixture(m=1, k=k, dof=dof, seed=2)


def test_cholesky_errors_follow_bastos_and_ohagan() -> None:
    fake = one()
    cov, y = fake.cov(), fake.sample(1, 0)[0]
    result = diagnostics.cholesky_errors(y, fake.mean, cov, dof=7.0)
    assert sorted(result.order) == list(range(6))
    left = list(range(6))
    difference = y - fake.mean
    for place, output in enumerate(result.order):
        done = list(result.order[:place])
        A = cov[np.ix_(done, done)]
        weights = np.linalg.solve(A, cov[np.ix_(done, left)]) if done else np.zeros((0, len(left)))
        variance = np.diag(cov)[left] - np.sum(weights * cov[np.ix_(done, left)], axis=0)
        # The next output has the largest variance given those before it ...
        assert output == left[np.argmax(variance)]
        # ... and its error is the standardised difference from what they predict.
        j = left.index(output)
        expected = (difference[output] - weights[:, j] @ difference[done]) / np.sqrt(variance[j])
        assert result.errors[place] == pytest.approx(expected, rel=1e-9)
        left.remove(output)
    assert result.bound == pytest.approx(stats.t(7.0).ppf(0.975) * np.sqrt(5.0 / 7.0))
    assert result.reference == "student-t"


def test_errors_have_unit_covariance_and_sum_to_the_distance() -> None:
    fake = mixture(m=3, k=5)
    cov = fake.cov()
    samples = fake.sample(4000, 1)
    for function in (diagnostics.cholesky_errors, diagnostics.eigen_errors):
        errors = np.array([function(y, fake.mean, cov).errors for y in samples])
        np.testing.assert_allclose(errors.T @ errors / 4000, np.eye(5), atol=0.15)
        distance2 = diagnostics.mahalanobis(samples[0], fake.mean, cov).distance2
        assert np.sum(errors[0] ** 2) == pytest.approx(distance2, rel=1e-9)
    difference = samples[0] - fake.mean
    assert distance2 == pytest.approx(difference @ np.linalg.solve(cov, difference), rel=1e-9)


def test_eigen_errors_go_by_falling_eigenvalue() -> None:
    fake = one()
    value, vector = np.linalg.eigh(fake.cov())
    y = fake.mean + 3.0 * np.sqrt(value[-1]) * vector[:, -1]
    result = diagnostics.eigen_errors(y, fake.mean, fake.cov())
    np.testing.assert_allclose(np.abs(result.errors), [3.0, 0, 0, 0, 0, 0], atol=1e-7)
    assert result.order[0] == np.argmax(np.abs(vector[:, -1]))
    assert result.kind == "eigen"


@pytest.mark.parametrize(("dof", "reference"), [(7.0, "scaled F"), (np.inf, "chi-square")])
def test_distance_of_one_component_has_its_exact_distribution(dof: float, reference: str) -> None:
    fake = one(k=20, dof=dof)
    results = [
        diagnostics.mahalanobis(y, fake.mean, fake.cov(), dof=dof) for y in fake.sample(2000, 3)
    ]
    assert results[0].reference == reference
    assert stats.kstest([r.p_value for r in results], "uniform").pvalue > 1e-3
    inside = np.mean([r.lower <= r.distance2 <= r.upper for r in results])
    assert inside == pytest.approx(0.95, abs=0.02)
    # Negative control: the other family's reference is wrong for these samples.
    wrong = np.inf if np.isfinite(dof) else 5.0
    p = [
        diagnostics.mahalanobis(y, fake.mean, fake.cov(), dof=wrong).p_value
        for y in fake.sample(2000, 3)
    ]
    assert stats.kstest(p, "uniform").pvalue < 1e-6


def test_distance_of_a_mixture_by_simulation() -> None:
    fake = mixture(m=3, k=5, dof=6.0, spread=2.0)
    samples = fake.sample(1000, 4)
    p = [
        diagnostics.mahalanobis(y, fake.mean, fake.cov(), samples=samples).p_value
        for y in fake.sample(500, 5)
    ]
    assert stats.kstest(p, "uniform").pvalue > 1e-3
    exact_only_for_one = [
        diagnostics.mahalanobis(y, fake.mean, fake.cov(), dof=6.0).p_value
        for y in fake.sample(500, 5)
    ]
    assert stats.kstest(exact_only_for_one, "uniform").pvalue < 1e-3


def test_simulated_bound_of_single_errors() -> None:
    fake = one(k=4, dof=5.0)
    exact = diagnostics.cholesky_errors(fake.mean, fake.mean, fake.cov(), dof=5.0).bound
    simulated = diagnostics.cholesky_errors(
        fake.mean, fake.mean, fake.cov(), samples=fake.sample(5000, 6)
    )
    assert simulated.reference == "simulation"
    assert simulated.bound == pytest.approx(exact, rel=0.04)


def test_repeated_outputs_count_once() -> None:
    fake = one(k=3)
    twice = [0, 1, 2, 1]
    cov = fake.cov()[np.ix_(twice, twice)]
    y = fake.sample(1, 7)[0]
    result = diagnostics.mahalanobis(y[twice], fake.mean[twice], cov, dof=7.0)
    plain = diagnostics.mahalanobis(y, fake.mean, fake.cov(), dof=7.0)
    assert (result.rank, result.n_outputs) == (3, 4)
    assert result.distance2 == pytest.approx(plain.distance2, rel=1e-6)
    assert result.p_value == pytest.approx(plain.p_value, rel=1e-6)
    for function in (diagnostics.cholesky_errors, diagnostics.eigen_errors):
        errors = function(y[twice], fake.mean[twice], cov)
        assert errors.rank == 3
        assert "1 outputs are determined" in errors.verdict


def test_round_off_of_a_smooth_covariance_does_not_count() -> None:
    """Sixty near-by outputs, three degrees of freedom, a covariance with errors of 1e-13."""
    rng = np.random.default_rng(3)
    G = np.vander(np.linspace(0.9, 1.0, 60), 3)
    noise = 1e-13 * rng.normal(size=(60, 60))
    cov = G @ G.T + noise + noise.T
    y = G @ rng.normal(size=3)
    result = diagnostics.mahalanobis(y, np.zeros(60), cov)
    assert result.rank <= 3
    assert result.p_value > 1e-3
    assert diagnostics.cholesky_errors(y, np.zeros(60), cov).rank <= 3
    assert diagnostics.eigen_errors(y, np.zeros(60), cov).rank <= 3


def test_verdicts_of_the_distance() -> None:
    def of(p_value: float) -> Mahalanobis:
        return Mahalanobis(10.0, 5, 5, "chi-square", 1.0, 4.0, 12.0, p_value)

    assert of(0.3).passed
    assert "agree" in of(0.3).verdict
    assert not of(0.001).passed
    assert "further off" in of(0.001).verdict
    assert not of(0.999).passed
    assert "cautious" in of(0.999).verdict


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (np.r_[np.full(100, 4.0), np.ones(100)], "early in the order"),
        (np.r_[np.ones(100), np.full(100, 4.0)], "late in the order"),
        (np.full(200, 4.0), "early and late"),
        (np.full(200, 0.3), "too cautious"),
        (np.ones(200), "fit the outputs"),
    ],
)
def test_verdicts_of_joint_errors(factor: np.ndarray, words: str) -> None:
    # Independent outputs of falling variance: the order is known.
    sd = np.linspace(2.0, 1.0, 200)
    y = factor * sd * np.random.default_rng(8).normal(size=200)
    result = diagnostics.cholesky_errors(y, np.zeros(200), np.diag(sd**2))
    np.testing.assert_array_equal(result.order, np.arange(200))
    assert words in result.verdict


def test_bad_input_is_refused() -> None:
    y = np.zeros(2)
    with pytest.raises(ValueError, match=r"shape \(2, 2\) for 2 means"):
        diagnostics.mahalanobis(y, y, np.eye(3))
    with pytest.raises(ValueError, match="no covariance"):
        diagnostics.mahalanobis(y, y, np.eye(2), dof=2.0)
    with pytest.raises(ValueError, match="no positive variance"):
        diagnostics.cholesky_errors(y, y, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="no positive eigenvalue"):
        diagnostics.eigen_errors(y, y, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="at least 100"):
        diagnostics.mahalanobis(y, y, np.eye(2), samples=np.zeros((10, 2)))
