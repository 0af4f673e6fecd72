"""Predictions, leave-one-out and coefficients against definitions and brute force."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from tests.gp.oracle import DIGITS, Oracle

from paims.gp import KERNELS, MEANS, Posterior, PowerExponential
from paims.gp import _predictive as predictive


def runs(n: int = 13, p: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(21)
    X = np.round(rng.random((n, p)), 3)
    return X, np.round(np.sin(5.0 * X[:, 0]) + X[:, -1] ** 2 + 1.0, 3)


def draws(m: int = 5) -> np.ndarray:
    rng = np.random.default_rng(4)
    return np.round(np.column_stack([rng.normal(-0.5, 0.7, (m, 2)), rng.uniform(-9.0, 0.0, m)]), 3)


def new_inputs(k: int = 6) -> np.ndarray:
    return np.round(np.random.default_rng(8).uniform(-0.5, 1.5, (k, 2)), 3)


def as_array(matrix: Any) -> np.ndarray:
    return np.array(matrix.tolist(), dtype=float)


@pytest.mark.parametrize("include_nugget", [True, False])
@pytest.mark.parametrize(
    ("kernel", "mean"),
    [(kernel, "linear") for kernel in KERNELS] + [("squared_exponential", m) for m in MEANS],
)
def test_prediction_equals_oracle(kernel: str, mean: str, include_nugget: bool) -> None:
    X, y = runs()
    u, X_new = draws(2), new_inputs()
    posterior = Posterior(X, y, kernel, mean)
    q = posterior.n_basis
    single = posterior.predict(u, X_new, include_nugget=include_nugget)
    joint = posterior.predict(u, X_new, include_nugget=include_nugget, return_cov=True)
    coefficients = posterior.coefficients(u)
    assert single.dof == joint.dof == coefficients.dof == 13 - q
    for row, (log_phi_1, log_phi_2, z) in enumerate(u):
        with mp.workdps(DIGITS):
            nugget = mp.mpf("1e-12") + (1 - mp.mpf("1e-12")) / (1 + mp.exp(-mp.mpf(z)))
            exact = Oracle(X, y, kernel, 1.9, mean, [log_phi_1, log_phi_2], nugget)
            exact_mean, exact_scale = exact.predict(X_new, include_nugget)
            mean_row, scale_row = as_array(exact_mean)[:, 0], as_array(exact_scale)
            if q:
                beta = as_array(exact.beta)[:, 0]
                beta_scale = as_array(exact.HKH**-1 * exact.S2 / (13 - q))
        np.testing.assert_allclose(single.mean[row], mean_row, rtol=1e-9)
        np.testing.assert_allclose(joint.mean[row], mean_row, rtol=1e-9)
        tolerance = 1e-9 * np.abs(scale_row).max()
        np.testing.assert_allclose(single.scale2[row], np.diag(scale_row), atol=tolerance)
        np.testing.assert_allclose(joint.scale2[row], scale_row, atol=tolerance)
        assert coefficients.S2[row] == pytest.approx(float(exact.S2), rel=1e-9)
        if q:
            np.testing.assert_allclose(coefficients.mean[row], beta, rtol=1e-8)
            np.testing.assert_allclose(
                coefficients.scale2[row], beta_scale, atol=1e-8 * np.abs(beta_scale).max()
            )


def test_shapes() -> None:
    posterior = Posterior(*runs(), mean="zero")
    prediction = posterior.predict(draws(5), new_inputs(6), return_cov=True)
    assert prediction.mean.shape == (5, 6)
    assert prediction.scale2.shape == (5, 6, 6)
    coefficients = posterior.coefficients(draws(5))
    assert coefficients.mean.shape == (5, 0)
    assert coefficients.scale2.shape == (5, 0, 0)
    assert posterior.predict(np.empty((0, 3)), new_inputs(6)).mean.shape == (0, 6)
    assert posterior.predict(draws(5), np.empty((0, 2))).scale2.shape == (5, 0)


def test_variance_is_the_papers() -> None:
    posterior = Posterior(*runs())
    prediction = posterior.predict(draws(), new_inputs())
    S2 = posterior.parts(draws())["S2"]
    correlation_term = prediction.scale2 * 10.0 / S2[:, None]
    np.testing.assert_allclose(prediction.variance, S2[:, None] / 8.0 * correlation_term)


def test_variance_is_infinite_with_two_degrees_of_freedom() -> None:
    X, y = runs(6)
    loo = Posterior(X, y).leave_one_out(draws())
    assert loo.dof == 2
    assert np.isposinf(loo.variance).all()


def test_without_a_nugget_runs_are_interpolated() -> None:
    X, y = runs()
    posterior = Posterior(X, y, "matern32", nugget=0.0)
    prediction = posterior.predict(draws()[:, :2], X)
    np.testing.assert_allclose(prediction.mean, np.broadcast_to(y, (5, 13)), rtol=1e-10)
    joint = posterior.predict(draws()[:, :2], X, return_cov=True).scale2
    for scale2 in (prediction.scale2, np.diagonal(joint, axis1=1, axis2=2)):
        assert (scale2 >= 0.0).all()
        assert (scale2 < 1e-10).all()


def test_scales_are_never_negative() -> None:
    X, y = runs()
    posterior = Posterior(X, y, nugget=1e-10)
    near = np.concatenate([X, X + 1e-9])
    u = np.array([[2.0, 2.0], [1.0, 3.0]])
    for return_cov in (False, True):
        scale2 = posterior.predict(u, near, include_nugget=False, return_cov=return_cov).scale2
        if return_cov:
            np.testing.assert_array_equal(scale2, scale2.swapaxes(1, 2))
            scale2 = np.diagonal(scale2, axis1=1, axis2=2)
        assert (scale2 >= 0.0).all()


def test_nugget_adds_its_variance_to_the_diagonal_only() -> None:
    posterior = Posterior(*runs())
    u, X_new = draws(), new_inputs()
    nugget = posterior.to_physical(u)[1]
    sigma2 = posterior.parts(u)["S2"] / 10.0
    noisy, smooth = (
        posterior.predict(u, X_new, include_nugget=include, return_cov=True).scale2
        for include in (True, False)
    )
    expected = (sigma2 * nugget)[:, None, None] * np.eye(6)
    np.testing.assert_allclose(noisy - smooth, expected, atol=1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_leave_one_out_equals_refits(mean: str) -> None:
    X, y = runs()
    posterior = Posterior(X, y, "matern52", mean)
    u = draws()
    loo = posterior.leave_one_out(u)
    for i in range(13):
        others = np.delete(np.arange(13), i)
        refit = Posterior(X[others], y[others], "matern52", mean).predict(u, X[i : i + 1])
        assert refit.dof == loo.dof
        np.testing.assert_allclose(loo.mean[:, i], refit.mean[:, 0], rtol=1e-8)
        np.testing.assert_allclose(loo.scale2[:, i], refit.scale2[:, 0], rtol=1e-7)


def test_a_failed_draw_is_nan_alone() -> None:
    X, y = runs()
    posterior = Posterior(X, y, nugget=0.0)
    u = np.array([[-3.0, -3.0], [12.0, 12.0], [np.nan, 0.0], [1e3, 0.0], [-2.5, -3.0]])
    good = [0, 4]
    expected = posterior.predict(u[good], new_inputs())
    for values in (
        posterior.predict(u, new_inputs()).mean,
        posterior.predict(u, new_inputs(), return_cov=True).scale2[:, :, 0],
        posterior.leave_one_out(u).scale2,
        posterior.coefficients(u).mean,
        posterior.coefficients(u).S2[:, None],
    ):
        np.testing.assert_array_equal(np.isnan(values).all(axis=1), [0, 1, 1, 1, 0])
        assert np.isfinite(values[good]).all()
    np.testing.assert_array_equal(posterior.predict(u, new_inputs()).mean[good], expected.mean)


def test_blocks_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = runs()
    u, X_new = draws(40), new_inputs(50)
    whole = Posterior(X, y, n_jobs=1).predict(u, X_new)
    np.testing.assert_array_equal(Posterior(X, y, n_jobs=2).predict(u, X_new).mean, whole.mean)
    monkeypatch.setattr(predictive, "_BLOCK_SIZE", 1500)
    monkeypatch.setattr(predictive, "_BLOCK_INPUTS", 7)
    parts = Posterior(X, y, n_jobs=2).predict(u, X_new)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-11)
    np.testing.assert_allclose(parts.scale2, whole.scale2, rtol=1e-9)


def test_far_from_the_runs_only_the_trend_is_left() -> None:
    X, y = runs()
    posterior = Posterior(X, y, PowerExponential(1.5), "constant")
    u = np.array([[-3.0, -3.0, -6.0]])
    far = np.array([[50.0, 50.0]])
    coefficients = posterior.coefficients(u)
    prediction = posterior.predict(u, far, include_nugget=False)
    assert prediction.mean[0, 0] == pytest.approx(coefficients.mean[0, 0], rel=1e-12)
    # The process's own variance, and that of the trend on top of it: added, not subtracted.
    expected = coefficients.S2[0] / prediction.dof + coefficients.scale2[0, 0, 0]
    assert prediction.scale2[0, 0] == pytest.approx(expected, rel=1e-12)


def test_bad_new_inputs() -> None:
    posterior = Posterior(*runs())
    with pytest.raises(ValueError, match="the 2 columns of X; got 3"):
        posterior.predict(draws(), np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"X_new\[0, 1\] is nan"):
        posterior.predict(draws(), np.array([[0.0, np.nan]]))
    with pytest.raises(ValueError, match="u must be a batch"):
        posterior.predict(draws()[0], new_inputs())


def test_a_range_that_overflows_predicts_nothing() -> None:
    # All correlations are 1, and with a nugget the matrix has a factor nonetheless.
    X, y = runs()
    posterior = Posterior(X, y)
    u = draws(3)
    u[1, 0] = 800.0
    prediction = posterior.predict(u, new_inputs())
    for array in (prediction.mean, prediction.scale2):
        assert np.isnan(array).all(axis=1).tolist() == [False, True, False]
