"""Sobol' indices against dense quadrature, sampling, and functions with known indices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import qmc
from tests.diagnostics.problems import brute_force, draws, emulator, gauss_grid

from paims import diagnostics, simulators
from paims.diagnostics import _separable
from paims.diagnostics._effects import box_points, deviations
from paims.diagnostics._separable import SeparableMeans, products_of_others
from paims.gp import Posterior, PowerExponential

KERNELS = ["squared_exponential", "matern32", "matern52", "power_exponential"]
MEANS = ["zero", "constant", "linear", "quadratic"]


def on_grid(posterior: Posterior, u: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, list]:
    nodes, weights = gauss_grid(box)
    points = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1)
    values = posterior.predict(u, points.reshape(-1, 2)).mean
    return values.reshape(len(u), *points.shape[:2]), weights


def training_box(posterior: Posterior) -> np.ndarray:
    return np.column_stack([posterior.X.min(axis=0), posterior.X.max(axis=0)])


@pytest.mark.parametrize(
    ("kernel", "mean", "tolerance"),
    [("squared_exponential", mean, 1e-8) for mean in MEANS]
    + [("matern52", "linear", 1e-7), ("matern32", "linear", 1e-6)]
    + [("power_exponential", "linear", 1e-5)],
)
def test_equals_dense_quadrature(kernel: str, mean: str, tolerance: float) -> None:
    posterior = emulator(kernel, mean)
    u = draws(posterior)
    result = diagnostics.sobol_indices(posterior, u)
    values, weights = on_grid(posterior, u, training_box(posterior))
    for s in range(len(u)):
        parts, variance = brute_force(values[s], weights)
        assert result.variance_draws[s] == pytest.approx(variance, rel=tolerance)
        np.testing.assert_allclose(result.first_draws[s], parts[:2] / variance, atol=tolerance)
        np.testing.assert_allclose(result.total_draws[s], parts[2:] / variance, atol=tolerance)


def test_mixture_of_draws_that_disagree() -> None:
    posterior = emulator()
    # Three ranges that make very different means.
    u = np.array([[-6.0, 2.0, -2.0], [2.0, -6.0, -2.0], [0.0, 0.0, -8.0]])
    w = np.array([0.5, 0.2, 0.3])
    result = diagnostics.sobol_indices(posterior, u, w)
    values, weights = on_grid(posterior, u, training_box(posterior))
    parts, variance = brute_force(np.tensordot(w, values, 1), weights)
    np.testing.assert_allclose(
        result.first * result.variance, parts[:2], rtol=1e-8, err_msg="exact for the mixture"
    )
    assert result.variance == pytest.approx(variance, rel=2e-3)
    np.testing.assert_allclose(result.total, parts[2:] / variance, atol=2e-3)
    # The average over draws is not the index of the mean: the correction is at work.
    assert w @ result.variance_draws > 1.05 * variance


def test_survives_nearly_singular_correlation_matrices() -> None:
    """Coefficients of 1e7: the quadratic form has no digit left in double precision."""
    posterior = emulator(n=20)
    u = np.array([[3.0, 3.0, -25.0], [1.0, 2.0, -27.0]])
    result = diagnostics.sobol_indices(posterior, u)
    values, weights = on_grid(posterior, u, training_box(posterior))
    for s in range(2):
        parts, variance = brute_force(values[s], weights)
        np.testing.assert_allclose(result.total_draws[s], parts[2:] / variance, atol=1e-5)
        np.testing.assert_allclose(result.first_draws[s], parts[:2] / variance, atol=1e-5)
    means = SeparableMeans(posterior, u)
    block = next(means.blocks())
    c, remaining = means.without_mean(block)
    moments = np.ones((2, means.n_terms, means.n_terms))
    for rule, side in zip(means.rules, block.sides, strict=True):
        moments *= side.swapaxes(1, 2) @ (rule.weights[:, None] * side)
    naive = np.einsum("bi,bij,bj->b", c, moments, c) - remaining**2
    assert np.abs(c).max() > 1e5
    assert (np.abs(naive / result.variance_draws - 1.0) > 1e-4).any()


def test_linear_function() -> None:
    X = qmc.LatinHypercube(3, rng=2).random(30)
    rng = np.random.default_rng(0)
    y = 3.0 * X[:, 0] - X[:, 1] + 1e-6 * rng.normal(size=30)
    posterior = Posterior(X, y)
    result = diagnostics.sobol_indices(posterior, [[4.0, 4.0, 4.0, -3.0]], box=[[0.0, 1.0]] * 3)
    np.testing.assert_allclose(result.first, [0.9, 0.1, 0.0], atol=1e-6)
    np.testing.assert_allclose(result.total, [0.9, 0.1, 0.0], atol=1e-6)
    assert result.variance == pytest.approx(10.0 / 12.0, rel=1e-5)
    assert result.interactions == pytest.approx(0.0, abs=1e-6)


def test_ishigami() -> None:
    unit = qmc.Sobol(3, rng=3).random_base2(8)
    y = simulators.ishigami(-np.pi + 2.0 * np.pi * unit)
    posterior = Posterior(unit, (y - y.mean()) / y.std(), mean="constant")
    u = np.array([[-1.78, -2.34, -1.75, -16.0]])
    result = diagnostics.sobol_indices(posterior, u, box=[[0.0, 1.0]] * 3)
    np.testing.assert_allclose(result.first, [0.3139, 0.4424, 0.0], atol=0.005)
    np.testing.assert_allclose(result.total, [0.5576, 0.4424, 0.2437], atol=0.005)


@pytest.mark.parametrize("p", [1, 4])
def test_equals_sampling_in_other_dimensions(p: int) -> None:
    posterior = emulator("matern52", n=30, p=max(p, 2))
    if p == 1:
        posterior = Posterior(posterior.X[:, :1], posterior.y, "matern52")
    u = draws(posterior, 1)
    result = diagnostics.sobol_indices(posterior, u)
    box = training_box(posterior)
    sample = qmc.Sobol(2 * p, rng=4).random_base2(13)
    A, B = (box[:, 0] + part * np.diff(box)[:, 0] for part in (sample[:, :p], sample[:, p:]))
    f_A, f_B = (posterior.predict(u, part).mean[0] for part in (A, B))
    variance = np.var(np.concatenate([f_A, f_B]))
    for i in range(p):
        mixed = A.copy()
        mixed[:, i] = B[:, i]
        f_mixed = posterior.predict(u, mixed).mean[0]
        total = 0.5 * np.mean((f_A - f_mixed) ** 2) / variance
        first = np.mean(f_B * (f_mixed - f_A)) / variance
        assert result.total[i] == pytest.approx(total, abs=2e-3)
        assert result.first[i] == pytest.approx(first, abs=5e-3)


def test_units_of_inputs_and_outputs_do_not_matter() -> None:
    posterior = emulator()
    u = draws(posterior)
    scale = np.array([1e4, 1e-3])
    other = Posterior(posterior.X * scale + [5.0, 7e-3], 1e3 * posterior.y + 1e6)
    moved = u + np.concatenate([2.0 * np.log(scale), [0.0]])
    plain = diagnostics.sobol_indices(posterior, u)
    scaled = diagnostics.sobol_indices(other, moved)
    np.testing.assert_allclose(scaled.total_draws, plain.total_draws, rtol=1e-6)
    np.testing.assert_allclose(scaled.first_draws, plain.first_draws, rtol=1e-6)
    assert scaled.variance == pytest.approx(1e6 * plain.variance, rel=1e-6)


def test_another_box() -> None:
    posterior = emulator()
    u = draws(posterior, 1)
    box = np.array([[0.2, 0.6], [-0.1, 1.2]])
    result = diagnostics.sobol_indices(posterior, u, box=box, names=["a", "b"])
    values, weights = on_grid(posterior, u, box)
    parts, variance = brute_force(values[0], weights)
    np.testing.assert_allclose(result.total, parts[2:] / variance, atol=1e-8)
    assert result.names == ("a", "b")


def test_summaries_over_draws() -> None:
    posterior = emulator()
    u = draws(posterior, 6)
    w = np.array([0.1, 0.3, 0.0, 0.2, 0.25, 0.15])
    result = diagnostics.sobol_indices(posterior, u, w)
    assert result.total_draws.shape == (5, 2)
    np.testing.assert_allclose(result.weights, w[w > 0.0])
    mean = result.weights @ result.total_draws
    expected = np.sqrt(result.weights @ (result.total_draws - mean) ** 2)
    np.testing.assert_allclose(result.total_std, expected)
    mean = result.weights @ result.first_draws
    expected = np.sqrt(result.weights @ (result.first_draws - mean) ** 2)
    np.testing.assert_allclose(result.first_std, expected)
    assert (result.total_interval[0] >= result.total_draws.min(axis=0)).all()
    assert (result.total_interval[1] <= result.total_draws.max(axis=0)).all()
    assert (result.total_draws >= result.first_draws).all()
    assert "x1" in result.verdict


def test_terms_add_up_to_the_prediction() -> None:
    for kernel in KERNELS:
        posterior = emulator(kernel, "quadratic")
        u = draws(posterior)
        means = SeparableMeans(posterior, u)
        block = next(means.blocks())
        points = box_points(means.box, 6)
        factors = [means.factor(block.rows, i, points[:, i]) for i in range(2)]
        f = np.einsum("bki,bki,bi->bk", *factors, block.coefficients)
        np.testing.assert_allclose(f, posterior.predict(u, points).mean, rtol=1e-8)
        average = (block.coefficients * block.integrals.prod(axis=0)).sum(axis=1)
        np.testing.assert_allclose(
            deviations(means, block, points)[0], f - average[:, None], atol=1e-9
        )


@pytest.mark.parametrize("mean", MEANS)
def test_the_constant_takes_the_mean(mean: str) -> None:
    plain = emulator("matern52", mean)
    posterior = Posterior(plain.X, plain.y + 1e3, "matern52", mean)
    means = SeparableMeans(posterior, draws(posterior))
    block = next(means.blocks())
    average = (block.coefficients * block.integrals.prod(axis=0)).sum(axis=1)
    c, remaining = means.without_mean(block)
    assert (average > 900.0).all()
    if mean == "zero":
        np.testing.assert_array_equal(c, block.coefficients)
        np.testing.assert_allclose(remaining, average)
    else:
        np.testing.assert_allclose(remaining, 0.0, atol=1e-6)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = emulator()
    u = draws(posterior, 5)
    whole = diagnostics.sobol_indices(posterior, u)
    monkeypatch.setattr(_separable, "_BLOCK_SIZE", 1)
    single = diagnostics.sobol_indices(posterior, u)
    np.testing.assert_allclose(single.total_draws, whole.total_draws, rtol=1e-10)
    np.testing.assert_allclose(single.total, whole.total, rtol=1e-10)


def test_short_ranges_get_more_nodes() -> None:
    posterior = emulator("matern32")
    short = SeparableMeans(posterior, [[-3.0, 0.0, -5.0]])
    assert len(short.rules[0].nodes) > 4 * len(short.rules[1].nodes)
    smooth = Posterior(posterior.X, posterior.y, PowerExponential(2.0))
    rough = Posterior(posterior.X, posterior.y, PowerExponential(1.5))
    n_nodes = [len(SeparableMeans(p, [[1.0, 1.0, -5.0]]).rules[0].nodes) for p in (smooth, rough)]
    assert n_nodes[0] < n_nodes[1]


def test_products_of_others_survive_zeros() -> None:
    values = np.array([[2.0], [0.0], [5.0]])
    np.testing.assert_array_equal(products_of_others(values), [[0.0], [10.0], [0.0]])


def test_bad_input_is_refused() -> None:
    posterior = emulator()
    u = draws(posterior)
    with pytest.raises(ValueError, match="row \\(lower, upper\\) for each of the 2"):
        diagnostics.sobol_indices(posterior, u, box=[[0.0, 1.0]])
    with pytest.raises(ValueError, match="input 1 has"):
        diagnostics.sobol_indices(posterior, u, box=[[0.0, 1.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match="one for each of the 2 inputs"):
        diagnostics.sobol_indices(posterior, u, names=["a"])
    with pytest.raises(ValueError, match="no draw"):
        diagnostics.sobol_indices(posterior, np.empty((0, 3)))
    with pytest.raises(ValueError, match="could not be factorised"):
        diagnostics.sobol_indices(Posterior(posterior.X, posterior.y, nugget=0.0), [[60.0, 60.0]])
    user = Posterior(posterior.X, posterior.y, mean=lambda X: np.column_stack([X[:, 0] ** 3]))
    radial = Posterior(posterior.X, posterior.y, "radial_matern72")
    with pytest.raises(ValueError, match=r"product of one factor per input.*RadialMatern72"):
        diagnostics.sobol_indices(radial, u)
    with pytest.raises(ValueError, match="polynomial trend"):
        diagnostics.sobol_indices(user, u)
