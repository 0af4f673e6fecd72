"""Main effects, length-scales and inert inputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import qmc
from tests.diagnostics.problems import draws, emulator, gauss_grid

from paims import diagnostics, simulators
from paims.diagnostics._effects import box_points
from paims.diagnostics._screening import _posterior_variances
from paims.diagnostics._separable import SeparableMeans, weighted_quantile
from paims.gp import Posterior


@pytest.mark.parametrize("kernel", ["squared_exponential", "matern52"])
def test_main_effects_equal_brute_force(kernel: str) -> None:
    posterior = emulator(kernel, "quadratic")
    u = draws(posterior, 4)
    w = np.array([0.4, 0.1, 0.2, 0.3])
    effects = diagnostics.main_effects(posterior, u, w, n_points=7)
    box = np.column_stack([posterior.X.min(axis=0), posterior.X.max(axis=0)])
    nodes, weights = gauss_grid(box)
    for i in range(2):
        np.testing.assert_allclose(effects.x[i], np.linspace(*box[i], 7))
        for j, value in enumerate(effects.x[i]):
            points = np.full((len(nodes[1 - i]), 2), value)
            points[:, 1 - i] = nodes[1 - i]
            each = posterior.predict(u, points).mean @ weights[1 - i]
            assert effects.mean[i, j] == pytest.approx(w @ each, abs=1e-7)
            spread = np.sqrt(w @ (each - w @ each) ** 2)
            assert effects.std[i, j] == pytest.approx(spread, abs=1e-7)
            quantiles = weighted_quantile(each, w, np.array([0.05, 0.95]))
            assert effects.lower[i, j] == pytest.approx(quantiles[0], abs=1e-7)
            assert effects.upper[i, j] == pytest.approx(quantiles[1], abs=1e-7)
    grid = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    average = np.outer(*weights).ravel() @ (w @ posterior.predict(u, grid).mean)
    assert effects.overall == pytest.approx(average, abs=1e-7)


def test_main_effects_in_other_units() -> None:
    posterior = emulator()
    effects = diagnostics.main_effects(posterior, draws(posterior))
    other = effects.in_units([10.0, -5.0], [2.0, 100.0], 7.0, 3.0)
    np.testing.assert_allclose(other.x[1], -5.0 + 100.0 * effects.x[1])
    np.testing.assert_allclose(other.mean, 7.0 + 3.0 * effects.mean)
    np.testing.assert_allclose(other.upper - other.lower, 3.0 * (effects.upper - effects.lower))
    np.testing.assert_allclose(other.std, 3.0 * effects.std)
    np.testing.assert_allclose(other.swing, 3.0 * effects.swing)
    assert other.overall == pytest.approx(7.0 + 3.0 * effects.overall)
    with pytest.raises(ValueError, match="y_scale must be positive"):
        effects.in_units(0.0, 1.0, 0.0, -1.0)
    with pytest.raises(ValueError, match="n_points"):
        diagnostics.main_effects(posterior, draws(posterior), n_points=1)


def test_length_scales_are_relative_to_the_range() -> None:
    X = qmc.LatinHypercube(2, rng=0).random(20) * [10.0, 0.1] + [3.0, 0.0]
    posterior = Posterior(X, np.sin(X[:, 0]) + X[:, 1])
    extent = np.ptp(X, axis=0)
    length = np.array([[0.5, 20.0], [1.0, 5.0], [2.0, 10.0]]) * extent
    u = posterior.from_physical(length**2, 1e-3)
    w = [0.2, 0.5, 0.3]
    result = diagnostics.length_scales(posterior, u, w, names=["a", "b"])
    np.testing.assert_allclose(result.relative, length / extent, rtol=1e-9)
    correlation = np.exp(-0.5 * (extent / length) ** 2)
    np.testing.assert_allclose(result.probability_flat, w @ (correlation >= 0.99))
    np.testing.assert_allclose(result.probability_flat, [0.0, 0.5])
    np.testing.assert_allclose(
        result.correlation, weighted_quantile(correlation, np.array(w), result.levels), rtol=1e-9
    )
    assert "does not see" not in result.verdict
    longer = diagnostics.length_scales(posterior, u, w, flat_above=0.97, names=["a", "b"])
    assert "does not see b" in longer.verdict
    with pytest.raises(ValueError, match="flat_above"):
        diagnostics.length_scales(posterior, u, flat_above=1.0)


def test_correlation_is_that_of_the_kernel() -> None:
    posterior = emulator("matern32")
    u = draws(posterior)
    result = diagnostics.length_scales(posterior, u, [1.0, 0.0, 0.0])
    box = np.column_stack([posterior.X.min(axis=0), posterior.X.max(axis=0)])
    phi, _ = posterior.to_physical(u[:1])
    for i in range(2):
        ends = np.full((2, 2), 0.5)
        ends[:, i] = box[i]
        expected = posterior.kernel.correlation(ends[:1], ends[1:], phi)[0, 0, 0]
        np.testing.assert_allclose(result.correlation[:, i], expected, rtol=1e-12)


@pytest.mark.parametrize("mean", ["zero", "linear", "quadratic"])
def test_variances_of_functionals_equal_joint_predictions(mean: str) -> None:
    """Var(f(x) - average of f) from the covariance matrix of x and many points."""
    posterior = emulator("matern52", mean, n=14)
    u = draws(posterior, 2)
    means = SeparableMeans(posterior, u)
    block = next(means.blocks())
    points = box_points(means.box, 2)
    result = _posterior_variances(means, block, points)
    nodes, weights = gauss_grid(means.box, 12)
    for k, point in enumerate(points):
        for i in range(2):
            line = np.tile(point, (len(nodes[i]), 1))
            line[:, i] = nodes[i]
            functional = np.concatenate([[1.0], -weights[i]])
            cov = posterior.predict(
                u, np.vstack([point, line]), include_nugget=False, return_cov=True
            ).variance
            expected = np.einsum("i,bij,j->b", functional, cov, functional)
            np.testing.assert_allclose(result[i + 1, :, k], expected, rtol=1e-4, atol=1e-9)
    nodes, weights = gauss_grid(means.box, 4)
    grid = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    functional = np.concatenate([[1.0], -np.outer(*weights).ravel()])
    cov = posterior.predict(
        u, np.vstack([points[0], grid]), include_nugget=False, return_cov=True
    ).variance
    expected = np.einsum("i,bij,j->b", functional, cov, functional)
    np.testing.assert_allclose(result[0, :, 0], expected, rtol=1e-3, atol=1e-9)


def friedman_with_idle_inputs(n: int) -> Posterior:
    X = qmc.LatinHypercube(7, rng=1).random(n)
    y = simulators.friedman(X[:, :5])
    return Posterior(X, (y - y.mean()) / y.std())


def test_idle_inputs_are_inert_and_linear_ones_are_not() -> None:
    posterior = friedman_with_idle_inputs(60)
    # Ranges near the mode: x4 and x5 act linearly, x6 and x7 not at all.
    u = np.array([[0.1, 0.2, 1.7, 9.0, 9.0, 9.0, 9.0, -18.0]])
    result = diagnostics.screen(posterior, u, names="abcdefg")
    np.testing.assert_array_equal(result.length_scales.probability_flat, [0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(result.inertness.probability, [0, 0, 0, 0, 0, 1, 1])
    assert result.inertness.inert == ("f", "g")
    assert result.inertness.active == tuple("abcde")
    assert result.inertness.undecided == ()
    assert "f, g: inert" in result.verdict
    assert (result.inertness.share[0, 5:] < 1e-3).all()
    # With so many runs little is left open: shares are the total indices.
    np.testing.assert_allclose(result.inertness.share, result.sobol.total_draws, atol=0.01)
    assert "P(inert)" in str(result)


def test_lack_of_runs_does_not_make_an_input_inert() -> None:
    """Runs that hardly vary x2 have a flat mean along it, but nothing is known of it."""
    X = np.random.default_rng(0).random((12, 2))
    X[:, 1] = 0.45 + 0.1 * X[:, 1]
    posterior = Posterior(X, np.sin(3.0 * X[:, 0]), mean="constant")
    u, box = np.array([[0.0, 0.0, -16.0]]), [[0.0, 1.0]] * 2
    total = diagnostics.sobol_indices(posterior, u, box=box).total_draws[0, 1]
    result = diagnostics.inertness(posterior, u, box=box)
    assert total < 0.01
    assert result.share[0, 1] > 0.03
    assert result.probability[1] == 0.0


def test_undecided_inputs_are_named() -> None:
    posterior = friedman_with_idle_inputs(60)
    u = np.array(
        [
            [0.1, 0.2, 1.7, 9.0, 9.0, 9.0, 9.0, -18.0],
            [0.1, 0.2, 1.7, 9.0, 9.0, 9.0, -3.0, -18.0],
        ]
    )
    result = diagnostics.inertness(posterior, u, [0.6, 0.4])
    assert result.probability[6] == pytest.approx(0.6)
    assert result.undecided == ("x7",)
    assert "x7: undecided" in result.verdict
    np.testing.assert_allclose(
        result.interval[1], weighted_quantile(result.share, result.weights, np.array([0.5]))[0]
    )


def test_known_indices_are_used() -> None:
    posterior = emulator()
    u = draws(posterior, 4)
    sobol = diagnostics.sobol_indices(posterior, u)
    plain = diagnostics.inertness(posterior, u)
    np.testing.assert_array_equal(
        diagnostics.inertness(posterior, u, sobol=sobol).share, plain.share
    )
    with pytest.raises(ValueError, match="same 3 draws"):
        diagnostics.inertness(posterior, u[:3], sobol=sobol)
    with pytest.raises(ValueError, match="threshold"):
        diagnostics.inertness(posterior, u, threshold=0.0)


def test_weighted_quantiles() -> None:
    values = np.array([3.0, 1.0, 2.0, -9.0])
    weights = np.array([0.5, 0.25, 0.25, 0.0])
    result = weighted_quantile(values, weights, np.array([0.05, 0.25, 0.26, 0.5, 0.51, 1.0]))
    np.testing.assert_allclose(result, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0])
    many = np.random.default_rng(0).normal(size=(1000, 2, 3))
    equal = weighted_quantile(many, np.full(1000, 1e-3), np.array([0.1, 0.9]))
    expected = np.quantile(many, [0.1, 0.9], axis=0, method="inverted_cdf")
    np.testing.assert_array_equal(equal, expected)
