"""The predictive mixture against SciPy, brute force and its own samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from sklearn.base import clone

import paims
from paims._student import solve_increasing
from paims.emulator._mixture import MixturePrediction
from paims.emulator._scaling import OutputScaling

UNIT = OutputScaling(0, 0.0, 1.0)
RNG = np.random.default_rng(11)
LOCATION = RNG.normal(0.0, 2.0, (7, 5))
SCALE = np.exp(RNG.normal(-1.0, 1.0, (7, 5)))
WEIGHTS = RNG.dirichlet(np.ones(7))


def mixture(dof: float, output: OutputScaling = UNIT) -> MixturePrediction:
    return MixturePrediction(LOCATION, SCALE, WEIGHTS, dof, output)


def by_scipy(dof: float, name: str, y: np.ndarray) -> np.ndarray:
    """Weighted sum of a function of SciPy's distributions."""
    family = stats.norm(LOCATION, SCALE) if np.isinf(dof) else stats.t(dof, LOCATION, SCALE)
    return WEIGHTS @ getattr(family, name)(y)


@pytest.mark.parametrize("dof", [3.0, 11.0, np.inf])
def test_cdf_and_density_are_the_weighted_sums_of_the_components(dof: float) -> None:
    y = np.linspace(-6.0, 6.0, 5)
    np.testing.assert_allclose(mixture(dof).cdf(y), by_scipy(dof, "cdf", y), rtol=1e-13)
    np.testing.assert_allclose(
        mixture(dof).logpdf(y), np.log(by_scipy(dof, "pdf", y)), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("dof", [3.0, 11.0, np.inf])
def test_moments_are_those_of_a_mixture(dof: float) -> None:
    family = stats.norm(LOCATION, SCALE) if np.isinf(dof) else stats.t(dof, LOCATION, SCALE)
    mean = WEIGHTS @ family.mean()
    square = WEIGHTS @ (family.var() + family.mean() ** 2)
    np.testing.assert_allclose(mixture(dof).mean, mean, rtol=1e-13)
    np.testing.assert_allclose(mixture(dof).std, np.sqrt(square - mean**2), rtol=1e-12)


def test_density_is_the_derivative_of_the_cdf() -> None:
    y = np.linspace(-4.0, 4.0, 20_001)[:, None]
    density = np.exp(mixture(4.0).logpdf(y))
    area = trapezoid(density, y, axis=0)
    np.testing.assert_allclose(area, np.ptp(mixture(4.0).cdf(y), axis=0), rtol=1e-6)


@pytest.mark.parametrize("dof", [3.0, 11.0, np.inf])
@pytest.mark.parametrize("q", [1e-12, 1e-5, 0.025, 0.3, 0.5, 0.7, 0.975, 1.0 - 1e-6])
def test_quantiles_invert_the_cdf(dof: float, q: float) -> None:
    y = mixture(dof).quantile(q)
    tail = by_scipy(dof, "cdf", y) / q if q <= 0.5 else by_scipy(dof, "sf", y) / (1.0 - q)
    np.testing.assert_allclose(tail, 1.0, rtol=1e-10)


def test_quantiles_of_a_single_component_are_its_own() -> None:
    one = MixturePrediction(LOCATION[:1], SCALE[:1], np.ones(1), 6.0, UNIT)
    for q in (0.001, 0.5, 0.9):
        np.testing.assert_allclose(
            one.quantile(q), stats.t(6.0, LOCATION[0], SCALE[0]).ppf(q), rtol=1e-11, atol=1e-12
        )


def test_quantiles_of_components_of_very_different_scales() -> None:
    location = np.array([[0.0], [1.0], [1.0 + 1e-9]])
    scale = np.array([[1.0], [1e-6], [1e3]])
    weights = np.array([0.4, 0.35, 0.25])
    predicted = MixturePrediction(location, scale, weights, 5.0, UNIT)
    for q in (1e-4, 0.2, 0.4, 0.6, 0.9, 0.9999):
        y, near = predicted.quantile(q), 1e-11 * predicted.std
        assert predicted.cdf(y - near)[0] <= q <= predicted.cdf(y + near)[0]


def test_solver_does_not_creep() -> None:
    calls = []

    def steep(x: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        calls.append(len(x))
        rise = np.exp(200.0 * x)  # Halley's steps from the right are 1/100 each.
        return rise, 200.0 * rise, 200.0**2 * rise

    one = np.ones(1)
    x = solve_increasing(steep, 1.0, 2.0 * one, -one, 2.0 * one, one / 200.0, 1e-12 * one)
    assert abs(x[0]) < 1e-12
    assert len(calls) < 40


def test_component_without_spread_is_a_step() -> None:
    location, scale = np.array([[0.0], [2.0]]), np.array([[0.0], [0.0]])
    predicted = MixturePrediction(location, scale, np.array([0.3, 0.7]), 5.0, UNIT)
    np.testing.assert_array_equal(
        predicted.cdf([[-0.1], [0.0], [1.9], [2.0]])[:, 0], [0, 0.3, 0.3, 1]
    )
    np.testing.assert_allclose(
        predicted.quantile([0.1, 0.29, 0.31, 0.9])[:, 0], [0, 0, 2, 2], atol=1e-9
    )
    assert predicted.logpdf([1.0])[0] == -np.inf
    assert predicted.logpdf([2.0])[0] == np.inf


def test_probabilities_at_the_ends() -> None:
    predicted = mixture(4.0)
    assert (predicted.quantile(0.0) == -np.inf).all()
    assert (predicted.quantile(1.0) == np.inf).all()
    assert predicted.quantile([[0.1, 0.2], [0.3, 0.4]]).shape == (2, 2, 5)
    with pytest.raises(ValueError, match=r"\[0, 1\]; got 1.5"):
        predicted.quantile(1.5)
    with pytest.raises(ValueError, match="level must be in"):
        predicted.interval(1.0)
    with pytest.raises(ValueError, match="broadcast with the 5 points"):
        predicted.cdf(np.zeros(4))


def test_interval_leaves_equal_tails() -> None:
    lower, upper = mixture(8.0).interval(0.8)
    np.testing.assert_allclose(by_scipy(8.0, "cdf", lower), 0.1, rtol=1e-10)
    np.testing.assert_allclose(by_scipy(8.0, "sf", upper), 0.1, rtol=1e-10)


def test_output_units_are_applied_everywhere() -> None:
    output = OutputScaling(3, 5.0, 0.25)  # y = 8 (5 + t / 4)
    plain, scaled = mixture(8.0), mixture(8.0, output)
    np.testing.assert_allclose(scaled.mean, 40.0 + 2.0 * plain.mean)
    np.testing.assert_allclose(scaled.std, 2.0 * plain.std)
    np.testing.assert_allclose(scaled.quantile(0.2), 40.0 + 2.0 * plain.quantile(0.2))
    np.testing.assert_allclose(scaled.cdf(40.0 + 2.0 * LOCATION[0]), plain.cdf(LOCATION[0]))
    np.testing.assert_allclose(
        scaled.logpdf(40.0 + 2.0 * LOCATION[0]), plain.logpdf(LOCATION[0]) - np.log(2.0)
    )
    np.testing.assert_allclose(scaled.components.means, 40.0 + 2.0 * LOCATION)
    np.testing.assert_allclose(scaled.components.scales, 2.0 * SCALE)


@pytest.mark.parametrize("predictive", ["student_t", "gaussian"])
def test_samples_have_the_mixtures_joint_moments(
    emulator: paims.Emulator, runs: tuple[np.ndarray, np.ndarray], predictive: str
) -> None:
    X = np.array([[0.2, 12.0], [0.25, 12.0], [0.9, 28.0], [1.3, 35.0]])
    # Same draws; only the family differs.
    other = clone(emulator).set_params(predictive=predictive).fit(*runs)
    predicted = other.predict_distribution(X)
    samples = predicted.sample(40_000, random_state=1)
    cov = predicted.cov()
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), predicted.std, rtol=1e-9)
    error = predicted.std / np.sqrt(len(samples))
    assert (np.abs(samples.mean(axis=0) - predicted.mean) < 5 * error).all()
    correlation = np.corrcoef(samples.T) - cov / np.outer(predicted.std, predicted.std)
    assert np.abs(correlation).max() < 0.03
    for q in (0.05, 0.5, 0.99):
        share = (samples <= predicted.quantile(q)).mean(axis=0)
        assert (np.abs(share - q) < 5 * np.sqrt(q * (1 - q) / len(samples))).all()
    # Neighbours move together, as samples of one function do.
    assert np.corrcoef(samples.T)[0, 1] > 0.5


def test_families_differ_in_the_tails_only(
    emulator: paims.Emulator, runs: tuple[np.ndarray, np.ndarray]
) -> None:
    gaussian = clone(emulator).set_params(predictive="gaussian").fit(*runs)
    X = [[0.5, 20.0], [2.0, 50.0]]
    t, n = emulator.predict_distribution(X), gaussian.predict_distribution(X)
    np.testing.assert_allclose(t.mean, n.mean, rtol=1e-12)
    np.testing.assert_allclose(t.std, n.std, rtol=1e-12)
    assert (t.quantile(0.9999) > n.quantile(0.9999)).all()
    assert np.isinf(n.components.dof)
    assert t.components.dof == 20 - 3
