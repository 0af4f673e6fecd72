"""The posterior object: Jacobians, failures that stay local, what a user may rely on."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy import stats
from scipy.special import roots_legendre

from paims.gp import (
    FixedNugget,
    Kernel,
    Matern52,
    Posterior,
    PowerExponential,
    SquaredExponential,
    _twin,
)


class ViaTwin(SquaredExponential):
    """A kernel that might have changed a formula."""

    def factor(self, distance, phi):
        return super().factor(distance, phi)


def runs(n: int = 14, p: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    X = rng.random((n, p))
    return X, np.sin(5.0 * X[:, 0]) + X[:, -1] ** 2


def points(m: int, posterior: Posterior, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    u = rng.normal(-0.5, 1.0, (m, posterior.n_params))
    if posterior.nugget.n_params:
        u[:, -1] = rng.uniform(-12.0, 1.0, m)
    return u


def physical_log_density(
    X: np.ndarray, y: np.ndarray, phi: float, nugget: float, nugget_prior: str
) -> float:
    """Posterior density in (phi, nugget) itself, p = 1, with inverses as in the formulas."""
    n, q = len(y), 2
    d2 = (X - X.T) ** 2
    K0 = np.exp(-0.5 * d2 / phi)
    K_inv = np.linalg.inv(K0 + nugget * np.eye(n))
    H = np.column_stack([np.ones(n), X])
    HKH = H.T @ K_inv @ H
    Q = K_inv - K_inv @ H @ np.linalg.solve(HKH, H.T @ K_inv)
    derivatives = [0.5 * d2 / phi**2 * K0]
    if nugget_prior == "reference":
        derivatives.append(np.eye(n))
    W = [dK @ Q for dK in derivatives]
    traces = np.array([np.trace(A) for A in W])
    products = np.array([[np.trace(A @ B) for B in W] for A in W])
    information = np.block([[np.array([[n - q]]), traces], [traces[:, None], products]])
    result = -0.5 * (n - q) * np.log(y @ Q @ y) + 0.5 * np.linalg.slogdet(K_inv)[1]
    result += -0.5 * np.linalg.slogdet(HKH)[1] + 0.5 * np.linalg.slogdet(information)[1]
    if nugget_prior == "beta":
        result += stats.beta(0.5, 0.5).logpdf(nugget)
    return result


@pytest.mark.parametrize("nugget_prior", ["uniform", "beta", "reference"])
def test_mass_is_the_same_in_u_and_in_physical_parameters(nugget_prior: str) -> None:
    X, y = runs(10, 1)
    posterior = Posterior(X, y, nugget_prior=nugget_prior)
    corners = np.array([[-3.0, -4.0], [0.0, 1.0]])
    nodes, weights = roots_legendre(48)

    def grid(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        axes = [0.5 * (b - a) * nodes + 0.5 * (a + b) for a, b in zip(low, high, strict=True)]
        mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        return mesh, np.outer(weights, weights).ravel() * np.prod(0.5 * (high - low))

    u, weights_u = grid(*corners)
    phi, nugget = posterior.to_physical(corners)
    theta, weights_theta = grid(*np.column_stack([phi, nugget]))
    log_physical = [physical_log_density(X, y, *point, nugget_prior) for point in theta]
    mass_u = weights_u @ np.exp(posterior(u))
    mass_theta = weights_theta @ np.exp(log_physical)
    # The Beta's truncation at 1e-12 leaves out 6e-7 of its mass.
    assert mass_u == pytest.approx(mass_theta, rel=1e-6 if nugget_prior == "beta" else 1e-8)


@pytest.mark.parametrize("kernel", ["squared_exponential", ViaTwin(), "matern32"], ids=repr)
@pytest.mark.parametrize("nugget_prior", ["uniform", "reference"])
def test_failures_are_local(kernel: str | Kernel, nugget_prior: str) -> None:
    X, y = runs()
    posterior = Posterior(X, y, kernel, nugget_prior=nugget_prior)
    u = points(40, posterior)
    expected = posterior(u)
    assert np.isfinite(expected).all()
    bad = {
        0: [1e3, 0.0, 0.0],
        5: [np.nan, 0.0, 0.0],
        6: [0.0, 0.0, np.nan],
        17: [np.inf, 0.0, 0.0],
        18: [-np.inf, 0.0, 0.0],
        19: [-1e3, -1e3, 0.0],
        39: [1e3, -1e3, -1e3],
    }
    before = posterior.n_evaluations, posterior.n_failures
    u[list(bad)] = list(bad.values())
    actual = posterior(u)
    rest = np.setdiff1d(np.arange(40), list(bad))
    np.testing.assert_array_equal(actual[list(bad)], -np.inf)
    np.testing.assert_array_equal(actual[rest], expected[rest])
    assert (posterior.n_evaluations, posterior.n_failures) == (
        before[0] + 40,
        before[1] + len(bad),
    )


@pytest.mark.parametrize("kernel", ["squared_exponential", ViaTwin()], ids=repr)
def test_singular_matrices_are_local(kernel: str | Kernel) -> None:
    X, y = runs(20)
    posterior = Posterior(X, y, kernel, prior="log_normal", nugget=0.0)
    u = np.full((12, 2), -2.5)
    u[[2, 7]] = 9.0
    values = posterior(u)
    np.testing.assert_array_equal(np.isneginf(values), np.isin(np.arange(12), [2, 7]))
    assert posterior.n_failures == 2
    np.testing.assert_array_equal(np.delete(values, [2, 7]), posterior(u[:1])[0])
    parts = posterior.parts(u)
    assert np.isnan(parts["log_det_K"][[2, 7]]).all()
    assert np.isfinite(parts["log_prior"]).all()


@pytest.mark.parametrize(
    "kernel", ["squared_exponential", ViaTwin(), "power_exponential"], ids=repr
)
def test_a_value_does_not_depend_on_its_company(kernel: str | Kernel) -> None:
    X, y = runs()
    u = points(201, Posterior(X, y))
    expected = Posterior(X, y, kernel, n_jobs=1)(u)
    np.testing.assert_array_equal(Posterior(X, y, kernel, n_jobs=2)(u), expected)
    posterior = Posterior(X, y, kernel)
    np.testing.assert_array_equal(posterior(u[::-1])[::-1], expected)
    np.testing.assert_array_equal(posterior(u[137:140]), expected[137:140])


def test_a_prior_that_is_nan_is_zero_density() -> None:
    X, y = runs()
    # An inverse range that overflows: a log t - b t is infinity minus infinity.
    robust = Posterior(X, y, "matern52", prior="jointly_robust")
    u = np.array([[0.0, 0.0, -2.0], [-730.0, 0.0, -2.0]])
    assert np.isnan(robust.parts(u)["log_prior"][1])
    values = robust(u)
    assert np.isfinite(values[0])
    assert np.isneginf(values[1])


def test_parts_add_up() -> None:
    X, y = runs()
    posterior = Posterior(X, y, nugget_prior="beta")
    u = points(7, posterior)
    parts = posterior.parts(u)
    total = -0.5 * (14 - 3) * np.log(parts["S2"]) - 0.5 * parts["log_det_K"]
    total += parts["log_prior"] + parts["log_nugget_prior"] + parts["log_jacobian"]
    total -= 0.5 * parts["log_det_HKH"]
    np.testing.assert_allclose(posterior(u), total, rtol=1e-14)
    assert posterior.n_evaluations == 7


def test_physical_parameters() -> None:
    X, y = runs()
    posterior = Posterior(X, y)
    assert posterior.parameter_names == ["log_phi_1", "log_phi_2", "z"]
    assert posterior.n_params == 3
    u = points(9, posterior)
    phi, nugget = posterior.to_physical(u)
    np.testing.assert_allclose(phi, np.exp(u[:, :2]))
    np.testing.assert_allclose(posterior.from_physical(phi, nugget), u, rtol=1e-9)
    fixed = Posterior(X, y, nugget=0.01)
    assert fixed.parameter_names == ["log_phi_1", "log_phi_2"]
    np.testing.assert_array_equal(fixed.to_physical(u[:, :2])[1], 0.01)
    np.testing.assert_allclose(fixed.from_physical(phi), u[:, :2], rtol=1e-12)
    with pytest.raises(ValueError, match="needs its value"):
        posterior.from_physical(phi)
    with pytest.raises(ValueError, match="positive and finite"):
        posterior.from_physical(-phi, nugget)


def test_fixed_and_estimated_nugget_share_the_likelihood() -> None:
    X, y = runs()
    estimated = Posterior(X, y)
    u = points(5, estimated)
    u[:, 2] = -4.0
    nugget = estimated.to_physical(u)[1][0]
    fixed = Posterior(X, y, nugget=FixedNugget(nugget))
    parts = estimated.parts(u)
    expected = estimated(u) - parts["log_nugget_prior"] - parts["log_jacobian"]
    np.testing.assert_allclose(fixed(u[:, :2]), expected, rtol=1e-12)


def test_scaling_of_y_moves_the_posterior_by_a_constant() -> None:
    X, y = runs()
    u = points(6, Posterior(X, y))
    shift = Posterior(X, 1e6 * y + 3.0 + X[:, 0])(u) - Posterior(X, y)(u)
    np.testing.assert_allclose(shift, -11.0 * np.log(1e6), rtol=1e-7)


def test_units_of_inputs_are_the_users() -> None:
    X, y = runs()
    scale = np.array([1e3, 1e-4])
    posterior = Posterior(X, y, "matern52")
    u = points(6, posterior)
    moved = u + np.append(np.log(scale), 0.0)
    shift = Posterior(X * scale + 5.0, y, "matern52")(moved) - posterior(u)
    np.testing.assert_allclose(shift, shift[0], atol=1e-6)


def test_input_is_not_changed_and_not_shared() -> None:
    X, y = runs()
    X_before, y_before = X.copy(), y.copy()
    posterior = Posterior(X, y)
    u = points(4, posterior)
    u_before = u.copy()
    expected = posterior(u)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)
    np.testing.assert_array_equal(u, u_before)
    X[:] = 0.0
    np.testing.assert_array_equal(posterior(u), expected)


def test_empty_batch_and_lists() -> None:
    X, y = runs()
    posterior = Posterior(X.tolist(), y.tolist())
    assert posterior(np.empty((0, 3))).shape == (0,)
    assert posterior([[0.0, 0.0, -5.0]]).shape == (1,)


@pytest.mark.parametrize("kernel", ["squared_exponential", ViaTwin()], ids=repr)
def test_pickle(kernel: str | Kernel) -> None:
    X, y = runs()
    posterior = Posterior(X, y, kernel)
    u = points(8, posterior)
    copy = pickle.loads(pickle.dumps(posterior))
    np.testing.assert_array_equal(copy(u), posterior(u))
    assert copy.n_evaluations == 8


def test_process_pool() -> None:
    X, y = runs()
    posterior = Posterior(X, y, n_jobs=1)
    u = points(8, posterior)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there = pool.submit(posterior, u).result()
    np.testing.assert_array_equal(there, posterior(u))


@pytest.mark.parametrize("kernel", ["squared_exponential", ViaTwin()], ids=repr)
def test_threads(kernel: str | Kernel) -> None:
    X, y = runs()
    posterior = Posterior(X, y, kernel)
    u = points(64, posterior)
    u[3] = np.nan
    expected = Posterior(X, y, kernel)(u)
    gate = threading.Barrier(4)

    def call() -> np.ndarray:
        gate.wait()
        return posterior(u)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(call) for _ in range(4)]:
            np.testing.assert_array_equal(future.result(), expected)
    assert (posterior.n_evaluations, posterior.n_failures) == (256, 4)


def test_built_in_kernels_run_compiled_and_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = runs()
    u = points(2, Posterior(X, y))

    def refuse(*args: object) -> None:
        raise AssertionError("the twin was called")

    monkeypatch.setattr(_twin, "core_terms", refuse)
    Posterior(X, y, Matern52())(u)
    with pytest.raises(AssertionError, match="the twin was called"):
        Posterior(X, y, ViaTwin())(u)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, 0], y), r"X must have shape \(n, p\).*reshape\(-1, 1\)"),
        (
            lambda X, y: (X, y[:, None]),
            r"y must have shape \(n,\); got an array of shape \(14, 1\)",
        ),
        (lambda X, y: (X[1:], y), "as many rows; got 13 and 14"),
        (lambda X, y: (np.where(X[3, 1] == X, np.nan, X), y), r"X\[3, 1\] is nan \(1 such"),
        (lambda X, y: (X, np.where(y == y[2], np.inf, y)), r"y\[2\] is inf"),
        (lambda X, y: (X.astype(str) + "a", y), "X holds text where numbers are needed"),
        (lambda X, y: (X + 1j, y), "X must hold real numbers"),
        (lambda X, y: (X[:, :0], y), "at least one column"),
        (lambda X, y: (np.column_stack([X, np.ones(14)]), y), r"Column\(s\) \[2\] of X"),
        (lambda X, y: (X, 0.0 * y), "reproduced exactly"),
        (lambda X, y: (X, 2.0 - 3.0 * X[:, 1]), "reproduced exactly"),
    ],
)
def test_bad_runs(change, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Posterior(*change(*runs()))


def test_bad_combinations() -> None:
    X, y = runs()
    with pytest.raises(ValueError, match="n_jobs must be a positive integer"):
        Posterior(X, y, n_jobs=0)
    with pytest.raises(ValueError, match="needs prior='reference'"):
        Posterior(X, y, prior="flat", nugget_prior="reference")
    X[3] = X[4]
    with pytest.raises(ValueError, match=r"1 repeated row.*nugget='estimate'"):
        Posterior(X, y, nugget=0.0)
    assert np.isfinite(Posterior(X, y)([[0.0, 0.0, -3.0]])).all()


@pytest.mark.parametrize("u", [np.zeros(3), np.zeros((4, 2)), np.zeros((1, 1, 3)), 0.0])
def test_bad_batches(u: object) -> None:
    X, y = runs()
    with pytest.raises(ValueError, match=r"u must be a batch of shape \(m, 3\)"):
        Posterior(X, y)(u)


def test_import_is_light() -> None:
    code = (
        "import sys, paims, paims.gp; "
        "heavy = {'numba', 'sklearn', 'matplotlib', 'pandas', 'h5py'} & set(sys.modules); "
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_a_residual_lost_to_underflow_is_a_failure() -> None:
    X, y = runs()
    posterior = Posterior(X, 1e-170 * y)
    u = points(5, posterior)
    assert (posterior.parts(u)["S2"] == 0.0).all()
    assert np.isneginf(posterior(u)).all()
    assert (posterior.n_evaluations, posterior.n_failures) == (5, 5)


def test_another_kernel_is_seen_at_the_next_call() -> None:
    X, y = runs()
    posterior = Posterior(X, y, PowerExponential(1.9))
    u = points(5, posterior)
    posterior(u)
    posterior.kernel = PowerExponential(1.3)
    np.testing.assert_array_equal(posterior(u), Posterior(X, y, PowerExponential(1.3))(u))
    posterior.kernel.power = 1.5
    np.testing.assert_array_equal(posterior(u), Posterior(X, y, PowerExponential(1.5))(u))
