"""The gradient of the posterior: against 60 digits, differences and the twin, and its promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.gp import oracle

from paims import gp
from paims.gp import Posterior, _compiled, _twin

KERNELS = {name: cls() for name, cls in gp.KERNELS.items()}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
PRIORS: dict[str, Any] = {
    **{name: cls() for name, cls in gp.PRIORS.items() if name != "reference"},
    "without nugget": gp.JointlyRobust(include_nugget=False),
    "by input": gp.LogNormal([0.5, -1.0], [1.0, 2.0]),
    "gamma": gp.SciPyPrior(stats.gamma(2.0)),
    "two": gp.SciPyPrior([stats.gamma(3.0), stats.lognorm(1.0)]),
}
NUGGETS: list[Any] = [name for name in gp.NUGGET_PRIORS if name != "reference"] + [1e-3]


def runs(n: int = 15, p: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.random((n, p))
    return X, np.sin(5.0 * X[:, 0]) + X[:, -1] ** 2 + 0.1 * rng.standard_normal(n)


def make(kernel: Any, prior: Any, nugget: Any, **options: Any) -> Posterior:
    X, y = runs()
    if isinstance(nugget, str):
        return Posterior(X, y, kernel, prior=prior, nugget_prior=nugget, **options)
    return Posterior(X, y, kernel, prior=prior, nugget=nugget, **options)


def points(m: int, posterior: Posterior, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1.5, 1.0, (m, posterior.n_params))
    if posterior.nugget.n_params:
        u[:, -1] = rng.uniform(-9.0, 1.5, m)
    return u


def differences(posterior: Posterior, u: np.ndarray, h: float = 2e-3) -> np.ndarray:
    """Central differences of sixth order."""
    result = np.empty_like(u)
    for i in range(u.shape[1]):
        e = h * np.eye(u.shape[1])[i]
        one, two, three = (posterior(u + k * e) - posterior(u - k * e) for k in (1, 2, 3))
        result[:, i] = (45.0 * one - 9.0 * two + three) / (60.0 * h)
    return result


def disagreement(posterior: Posterior, u: np.ndarray) -> float:
    found = posterior.value_and_gradient(u)[1]
    return float(np.max(np.abs(found - differences(posterior, u)) / (1.0 + np.abs(found))))


@pytest.mark.parametrize("nugget", NUGGETS)
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@each_kernel
def test_agrees_with_differences(kernel: gp.Kernel, prior: gp.Prior, nugget: Any) -> None:
    # truncation about 1e-13 |f7|, rounding about 1e-12 / h
    posterior = make(kernel, prior, nugget)
    assert posterior.has_gradient
    assert disagreement(posterior, points(6, posterior)) < 1e-7


class WrongPrior(gp.LogNormal):
    def gradient(self, log_phi: np.ndarray, **context: Any) -> tuple[np.ndarray, np.ndarray]:
        in_log_phi, in_nugget = super().gradient(log_phi, **context)
        return 1.001 * in_log_phi, in_nugget

    def log_density(self, log_phi: np.ndarray, **context: Any) -> np.ndarray:
        return super().log_density(log_phi, **context)


def test_a_wrong_gradient_is_seen() -> None:
    posterior = make("matern52", WrongPrior(), "uniform")
    assert disagreement(posterior, points(6, posterior)) > 1e-5


PRIORS_OF_CASES = ["jointly_robust", "log_normal", "log_laplace", "flat"]
CASES = [
    (kernel, mean, PRIORS_OF_CASES[i % 4], ["uniform", "beta", "spike_slab"][i % 3], z)
    for i, (kernel, mean, z) in enumerate(
        (kernel, mean, z)
        for kernel in gp.KERNELS
        for mean, z in [("linear", -6.5), ("constant", 0.7), ("zero", None)]
    )
]


@pytest.mark.parametrize(("kernel", "mean", "prior", "nugget_prior", "z"), CASES)
def test_agrees_with_60_digits(
    kernel: str, mean: str, prior: str, nugget_prior: str, z: float | None
) -> None:
    rng = np.random.default_rng([*kernel.encode(), *mean.encode()])
    X = np.round(rng.random((8, 2)), 3)
    y = np.round(np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2, 3)
    log_phi = np.round(rng.normal(-0.5, 1.0, 2), 2)
    case = {
        "X": X.tolist(), "y": y.tolist(), "kernel": kernel, "power": 1.9, "mean": mean,
        "prior": prior, "nugget_prior": nugget_prior, "nugget": 1e-4, "z": z,
        "log_phi": log_phi.tolist(),
    }  # fmt: skip
    expected = oracle.gradient(case)
    nugget: Any = 1e-4 if z is None else "estimate"
    posterior = Posterior(X, y, kernel, mean, prior, nugget, nugget_prior)
    u = [[*log_phi, *([] if z is None else [z])]]
    values, actual = posterior.value_and_gradient(u)
    np.testing.assert_allclose(actual[0], expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(values, posterior(u), rtol=1e-10)


# Long and short lengths with tiny and dominant nuggets; errors about ten times what is reached.
# The inverse has fewer digits than the determinants: K has a condition of up to 1e14 here.
HARD = [
    ("squared_exponential", [9.0, 7.0], -20.0, 1e-3),
    ("squared_exponential", [9.0, 7.0], 2.0, 1e-9),
    ("squared_exponential", [-5.5, 8.0], -7.0, 1e-9),
    ("squared_exponential", [-6.5, -7.5], -2.0, 1e-9),
    ("matern32", [6.0, 5.0], -20.0, 1e-5),
    ("matern72", [4.0, 6.0], -18.0, 1e-3),
    ("power_exponential", [7.0, 7.0], -20.0, 1e-5),
]


@pytest.mark.parametrize(("kernel", "log_phi", "z", "tolerance"), HARD)
def test_far_out(kernel: str, log_phi: list[float], z: float, tolerance: float) -> None:
    X, y = runs(9)
    case = {
        "X": X, "y": y, "kernel": kernel, "power": 1.9, "mean": "linear", "prior": "log_normal",
        "nugget_prior": "beta", "nugget": None, "z": z, "log_phi": log_phi,
    }  # fmt: skip
    posterior = Posterior(X, y, kernel, prior="log_normal", nugget_prior="beta")
    actual = posterior.value_and_gradient([[*log_phi, z]])[1][0]
    error = np.abs(actual - oracle.gradient(case))
    assert (error <= tolerance).all(), error


@pytest.mark.parametrize("q", [0, 1, 3])
@pytest.mark.parametrize(
    ("n", "p"), [(5, 1), (8, 2), (9, 2), (16, 3), (17, 2), (40, 20), (101, 5)]
)
def test_equals_twin(n: int, p: int, q: int) -> None:
    rng = np.random.default_rng([n, p])
    X = rng.random((n, p))
    y = np.sin(5.0 * X[:, 0]) + (X**2).sum(axis=1)
    H = np.hstack([np.ones((n, 1)), X, X**2])[:, :q]
    phi, delta = np.exp(rng.uniform(-2.0, 1.5, (5, p))), np.exp(rng.uniform(-6.0, 0.0, 5))
    for kernel in KERNELS.values():
        arguments = X, H, y, kernel, phi, delta
        expected, actual = _twin.core_gradients(*arguments), _compiled.core_gradients(*arguments)
        for right, found in zip(expected, actual, strict=True):
            assert np.isfinite(right).all()
            np.testing.assert_allclose(found, right, rtol=1e-8, atol=1e-8)


class ViaTwin(gp.Matern52):
    """A kernel that might have changed a formula."""

    def factor(self, distance: np.ndarray, phi: np.ndarray) -> np.ndarray:
        return super().factor(distance, phi)


@pytest.mark.parametrize("kernel", ["matern52", ViaTwin()], ids=["compiled", "twin"])
def test_failures_are_local_and_threads_change_nothing(kernel: Any) -> None:
    posterior = make(kernel, "jointly_robust", "beta", n_jobs=1)
    u = points(70, posterior)
    values, gradients = posterior.value_and_gradient(u)
    assert np.isfinite(values).all()
    assert posterior.n_evaluations == 70
    several = make(kernel, "jointly_robust", "beta", n_jobs=3)
    bad = {3: [np.nan, 0.0, 0.0], 20: [0.0, np.inf, 0.0], 21: [0.0, 0.0, np.nan],
           69: [1e3, -1e3, -1e3]}  # fmt: skip
    spoilt = u.copy()
    spoilt[list(bad)] = list(bad.values())
    found, slopes = several.value_and_gradient(spoilt)
    assert np.isneginf(found[list(bad)]).all()
    assert (slopes[list(bad)] == 0.0).all()
    assert several.n_failures == len(bad)
    rest = np.setdiff1d(np.arange(70), list(bad))
    np.testing.assert_array_equal(found[rest], values[rest])
    np.testing.assert_array_equal(slopes[rest], gradients[rest])
    alone = posterior.value_and_gradient(u[40:41])
    np.testing.assert_array_equal(alone[1], gradients[40:41])


def test_singular_matrices_fail() -> None:
    X, y = runs(20)
    posterior = Posterior(X, y, prior="log_normal", nugget=0.0)
    values, gradients = posterior.value_and_gradient([[-2.5, -2.5], [9.0, 9.0]])
    assert np.isfinite(values).tolist() == [True, False]
    assert gradients.any(axis=1).tolist() == [True, False]


def test_stages_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = make("matern72", "jointly_robust", "uniform")
    u = points(9, posterior)
    expected = posterior.value_and_gradient(u)
    monkeypatch.setattr(_compiled, "_FLOPS", 1.0)  # every stage takes for ever
    for right, found in zip(expected, posterior.value_and_gradient(u), strict=True):
        np.testing.assert_array_equal(found, right)
    monkeypatch.setattr(_compiled, "_LARGE", (0, 0))
    reference = make("matern72", "reference", "uniform")
    slow = reference(u)
    monkeypatch.setattr(_compiled, "_FLOPS", 3e10)
    np.testing.assert_array_equal(reference(u), slow)


class Own(gp.Prior):
    def log_density(self, log_phi: np.ndarray, **context: Any) -> np.ndarray:
        return -0.5 * (log_phi**2).sum(axis=1)


class Changed(gp.LogNormal):
    def log_density(self, log_phi: np.ndarray, **context: Any) -> np.ndarray:
        return 2.0 * super().log_density(log_phi, **context)


class OwnNugget(gp.UniformNugget):
    def log_density(self, z: np.ndarray, nugget: np.ndarray, lower: float) -> np.ndarray:
        return -nugget


@pytest.mark.parametrize(
    ("prior", "nugget_prior"),
    [("reference", "uniform"), (Own(), "uniform"), (Changed(), "beta"), ("flat", OwnNugget())],
    ids=repr,
)
def test_without_a_gradient_it_says_so(prior: Any, nugget_prior: Any) -> None:
    X, y = runs()
    posterior = Posterior(X, y, prior=prior, nugget_prior=nugget_prior)
    assert not posterior.has_gradient
    with pytest.raises(NotImplementedError, match="There is no gradient of"):
        posterior.value_and_gradient(points(2, posterior))


def test_support_of_a_scipy_prior_ends() -> None:
    prior = gp.SciPyPrior(stats.uniform(0.5, 1.0))
    inside, outside = np.log([[1.0]]), np.log([[3.0]])
    np.testing.assert_allclose(prior.gradient(inside)[0], 1.0, rtol=1e-10)  # of log phi alone
    assert prior.gradient(outside)[0] == 0.0
