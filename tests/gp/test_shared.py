"""One correlation for several outputs."""

from __future__ import annotations

import numpy as np
import pytest

from paims.gp import Posterior
from paims.gp._shared import SharedPosterior, effective_outputs, outputs_terms


@pytest.fixture
def runs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((30, 3))
    Y = np.column_stack([np.sin(4 * X[:, 0]), X[:, 1] ** 2 + X[:, 0], np.cos(3 * X[:, 2])])
    u = np.column_stack([rng.normal(-1.0, 1.0, (6, 3)), rng.normal(-6.0, 2.0, 6)])
    return X, Y, u


@pytest.mark.parametrize("prior", ["jointly_robust", "reference"])
def test_each_output_has_the_posterior_of_one_on_its_own(
    runs: tuple[np.ndarray, np.ndarray, np.ndarray], prior: str
) -> None:
    X, Y, u = runs
    shared = SharedPosterior(X, Y, prior=prior)
    alone = np.column_stack([Posterior(X, y, prior=prior)(u) for y in Y.T])
    np.testing.assert_allclose(shared.log_posteriors(u), alone, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["squared_exponential", "matern52"])
@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_compiled_terms_are_those_of_the_twin(
    runs: tuple[np.ndarray, np.ndarray, np.ndarray], kernel: str, mean: str
) -> None:
    from paims.gp import _compiled

    X, Y, u = runs
    posterior = SharedPosterior(X, Y, kernel, mean, prior="jointly_robust")
    phi, nugget = posterior.to_physical(u)
    given = (X, posterior.H, Y, posterior.kernel, phi, nugget)
    np.testing.assert_allclose(
        _compiled.outputs_terms(*given), outputs_terms(*given), rtol=1e-8, atol=1e-8
    )
    one = _compiled.outputs_terms(*given, n_jobs=1)
    assert one.tobytes() == _compiled.outputs_terms(*given, n_jobs=2).tobytes()


def test_the_density_is_the_tempered_product(
    runs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, Y, u = runs
    shared = SharedPosterior(X, Y, prior="jointly_robust", effective=1.5)
    each = shared.log_likelihoods(u)
    prior = shared.log_posteriors(u)[:, 0] - each[:, 0]
    np.testing.assert_allclose(shared(u), 0.5 * each.sum(axis=1) + prior, rtol=1e-10)


def test_one_output_is_the_posterior_of_one(
    runs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, Y, u = runs
    one = Posterior(X, Y[:, 1], prior="jointly_robust")
    np.testing.assert_allclose(
        SharedPosterior(X, Y[:, 1:2], prior="jointly_robust")(u), one(u), rtol=1e-9
    )


def test_missing_values_leave_the_other_runs(
    runs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, Y, u = runs
    gaps = Y.copy()
    gaps[3, 1] = gaps[7:9, 2] = np.nan
    shared = SharedPosterior(X, gaps, prior="jointly_robust")
    new = np.random.default_rng(1).random((5, 3))
    found = shared.predict_outputs(u, new)
    for j in range(3):
        rows = ~np.isnan(gaps[:, j])
        alone = Posterior(X[rows], Y[rows, j], prior="jointly_robust").predict(u, new)
        np.testing.assert_allclose(found.mean[:, :, j], alone.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.scale2[:, :, j], alone.scale2, rtol=1e-9)
        assert found.dof[j] == alone.dof


def test_a_point_that_fails_is_no_density(
    runs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, Y, u = runs
    u = u.copy()
    u[2, 0] = np.nan
    values = SharedPosterior(X, Y, prior="jointly_robust")(u)
    assert values[2] == -np.inf
    assert np.isfinite(np.delete(values, 2)).all()


def test_outputs_without_a_residual_are_refused(
    runs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, Y, _ = runs
    with pytest.raises(ValueError, match="reproduced exactly"):
        SharedPosterior(X, np.column_stack([Y, 1.0 + X @ [1.0, 2.0, 3.0]]))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_effective_number_of_outputs(correlation: float) -> None:
    """Truth: m / (1 + (m - 1) rho^2); the noise of 40 runs is not taken for correlation."""
    m, freedom = 12, 40
    rng = np.random.default_rng(2)
    root = np.linalg.cholesky((1.0 - correlation) * np.eye(m) + correlation)
    found = []
    for _ in range(200):
        E = rng.standard_normal((freedom, m)) @ root.T
        found.append(1.0 / effective_outputs(E / np.linalg.norm(E, axis=0)))
    truth = (1.0 + (m - 1) * correlation**2) / m
    error = np.std(found) / np.sqrt(len(found))
    # Estimates below 1/m are cut off, so without correlation the mean is a little higher.
    assert abs(np.mean(found) - truth) < 4.0 * error + 0.004


def test_curvature_and_slope_agree_only_when_tempered() -> None:
    """The variance of the slope is the expected curvature, as for a likelihood.

    One parameter, the log length: outputs of correlation 0.9 drawn from the model. Without the
    power the ratio is the number of outputs over its effective number, 6.6 here.
    """
    m, n, h = 8, 15, 0.05
    rng = np.random.default_rng(3)
    X = np.linspace(0.0, 1.0, n)[:, None]
    root = np.linalg.cholesky(0.1 * np.eye(m) + 0.9)
    K = np.exp(-((X - X.T) ** 2) / (2 * 0.3**2)) + 1e-4 * np.eye(n)
    L = np.linalg.cholesky(K)
    truth = np.log(0.3**2)
    u = np.array([[truth - h], [truth], [truth + h]])
    effective = m**2 / (m + m * (m - 1) * 0.81)
    slopes, curvatures = [], []
    for _ in range(300):
        Y = L @ rng.standard_normal((n, m)) @ root.T
        shared = SharedPosterior(X, Y, mean="constant", prior="flat", nugget=1e-4)
        value = (effective / m) * shared.log_likelihoods(u).sum(axis=1)
        slopes.append((value[2] - value[0]) / (2 * h))
        curvatures.append(-(value[2] - 2 * value[1] + value[0]) / h**2)
    ratio = np.var(slopes) / np.mean(curvatures)
    assert 0.75 < ratio < 1.3
    assert ratio * m / effective > 4.0  # the control: without the power


@pytest.mark.parametrize("kernel", ["squared_exponential", "matern52"])
@pytest.mark.parametrize("mean", ["zero", "linear"])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_gradient_is_that_of_the_tempered_product(
    runs: tuple[np.ndarray, np.ndarray, np.ndarray], kernel: str, mean: str, gaps: bool
) -> None:
    """Truth: the gradients of the outputs' own posteriors, of which the prior's counts once."""
    X, Y, u = runs
    Y = Y.copy()
    if gaps:
        Y[3, 1] = Y[7:9, 2] = np.nan
    u = np.vstack([u, np.full(4, np.nan)])
    model = (kernel, mean, "log_normal")  # which does not look at the runs
    shared = SharedPosterior(X, Y, *model, effective=1.5)
    value, gradient = shared.value_and_gradient(u)
    np.testing.assert_allclose(value[:-1], shared(u)[:-1], rtol=1e-8)
    assert value[-1] == -np.inf
    assert not gradient[-1].any()
    rows = [~np.isnan(y) for y in Y.T]
    each = [Posterior(X[k], y[k], *model) for k, y in zip(rows, Y.T, strict=True)]
    total = sum(one.value_and_gradient(u[:-1])[1] for one in each)
    nothing = SharedPosterior(X, Y, *model, effective=1e-300).value_and_gradient(u[:-1])[1]
    truth = 0.5 * (total - 3.0 * nothing) + nothing
    np.testing.assert_allclose(gradient[:-1], truth, rtol=1e-6, atol=1e-6)
    again = SharedPosterior(X, Y, *model, effective=1.5, n_jobs=1).value_and_gradient(u)
    assert again[1].tobytes() == gradient.tobytes()


def test_there_is_no_gradient_of_a_reference_prior(
    runs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, Y, u = runs
    with pytest.raises(NotImplementedError, match="no gradient"):
        SharedPosterior(X, Y, prior="reference").value_and_gradient(u)
