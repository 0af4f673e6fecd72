"""Every prior of phi: its mass, its tails, its Jacobian."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import roots_legendre

from paims.gp import (
    KERNELS,
    PRIORS,
    JointlyRobust,
    LogLaplace,
    LogNormal,
    Posterior,
    Prior,
    Reference,
    SciPyPrior,
)
from paims.gp._kernels import as_kernel
from paims.gp._priors import as_prior

NORMALISED = [
    JointlyRobust(include_nugget=False),
    JointlyRobust(a=0.5, b=1.5, include_nugget=False),
    LogNormal(),
    LogNormal(-1.0, 0.5),
    LogLaplace(),
    LogLaplace(1.0, 0.7),
    SciPyPrior(stats.gamma(2.0, scale=3.0)),
    SciPyPrior([stats.invgamma(2.0)]),
]
EVERY = [cls() for cls in PRIORS.values()]
EVERY += [SciPyPrior(stats.gamma(2.0)), SciPyPrior([stats.lognorm(1.0), stats.invgamma(2.0)])]


def runs(n: int = 12, p: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.random((n, p))
    return X, np.sin(4.0 * X[:, 0]) + X[:, -1] ** 2


def log_density(prior: Prior, log_phi: Any, kernel: str = "matern52", nugget: float = 0.0) -> Any:
    log_phi = np.asarray(log_phi, dtype=float)
    X, _ = runs(p=log_phi.shape[1])
    m = len(log_phi)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return prior.log_density(
            log_phi,
            nugget=np.full(m, nugget),
            X=X,
            kernel=as_kernel(kernel),
            log_det_information=np.zeros(m),
        )


@pytest.mark.parametrize("kernel", ["squared_exponential", "matern52"])
@pytest.mark.parametrize("prior", NORMALISED, ids=repr)
def test_mass_is_one_in_log_phi(prior: Prior, kernel: str) -> None:
    def density(t: float) -> float:
        return float(np.exp(log_density(prior, [[t]], kernel))[0])

    ends = np.array([-60.0, -20.0, -5.0, -1.0, 0.0, 1.0, 5.0, 20.0, 60.0, 200.0])
    mass = sum(quad(density, a, b, epsabs=1e-10)[0] for a, b in pairwise(ends))
    assert mass == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("kernel", ["squared_exponential", "matern52"])
def test_jointly_robust_has_mass_one_for_two_inputs(kernel: str) -> None:
    nodes, weights = roots_legendre(120)
    halving = as_kernel(kernel).phi_power
    t = halving * (25.0 * nodes + 10.0)
    grid = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(log_density(JointlyRobust(include_nugget=False), grid, kernel))
    mass = np.outer(weights, weights).ravel() @ density * (25.0 * halving) ** 2
    assert mass == pytest.approx(1.0, abs=1e-5)


def test_jointly_robust_as_published() -> None:
    X, _ = runs()
    n, p = X.shape
    ranges = np.exp(np.random.default_rng(0).normal(size=(6, 2)))
    a, b = 0.2, (0.2 + p) / n ** (1 / p)
    for nugget, kernel in [(0.0, "matern52"), (0.3, "squared_exponential")]:
        t = (np.ptp(X, axis=0) / n ** (1 / p) / ranges).sum(axis=1) + nugget
        published = a * np.log(t) - b * t - np.log(ranges).sum(axis=1)
        log_phi = as_kernel(kernel).phi_power * np.log(ranges)
        difference = log_density(JointlyRobust(), log_phi, kernel, nugget) - published
        np.testing.assert_allclose(difference, difference[0], atol=1e-12)


def test_scipy_distribution_is_a_prior_of_phi() -> None:
    # A log-normal distribution of phi is a normal one of log phi.
    log_phi = np.array([[-1.0, 0.3], [2.0, 1.0]])
    expected = log_density(LogNormal(0.0, [0.8, 1.1]), log_phi)
    prior = SciPyPrior([stats.lognorm(0.8), stats.lognorm(1.1)])
    np.testing.assert_allclose(log_density(prior, log_phi), expected, rtol=1e-13)
    same = log_density(SciPyPrior(stats.lognorm(0.8)), log_phi)
    np.testing.assert_allclose(same, log_density(LogNormal(0.0, 0.8), log_phi), rtol=1e-13)


def test_laplace_is_scipys() -> None:
    log_phi = np.array([[-1.0, 0.3], [2.0, 1.0]])
    expected = stats.laplace([0.5, 1.0], 0.7).logpdf(log_phi).sum(axis=1)
    prior = LogLaplace([0.5, 1.0], 0.7)
    np.testing.assert_allclose(log_density(prior, log_phi), expected, rtol=1e-13)


DIRECTIONS = [(1, 0, 0), (0, 1, 0), (1, 1, 0), (1, -1, 0), (0, 0, 1), (1, 1, 1), (1, 1, -1)]


def tail(posterior: Posterior, direction: tuple[int, ...], sign: int) -> np.ndarray:
    """Log posterior far out in a direction, at points 4 apart.

    Not farther: from about log phi = 20 on, rows of the information matrix with the nugget are
    parallel to within double precision, and its determinant is round-off, if a small one.
    """
    distances = np.array([12.0, 16.0, 20.0])[:, None]
    return posterior(np.array([0.0, 0.0, -3.0]) + sign * distances * np.array(direction))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("prior", "nugget_prior"),
    [(Reference(), "reference")]
    + [(prior, name) for prior in EVERY if prior.proper for name in ("uniform", "beta")],
    ids=repr,
)
def test_posterior_falls_in_every_direction(prior: Prior, nugget_prior: str, kernel: str) -> None:
    X, y = runs()
    posterior = Posterior(X, y, kernel, prior=prior, nugget_prior=nugget_prior)
    for direction in DIRECTIONS:
        for sign in (1, -1):
            for nearer, farther in pairwise(tail(posterior, direction, sign)):
                falls = np.isneginf(farther) or farther < nearer - 0.2 * 4.0
                assert falls, (direction, sign, nearer, farther)


def test_flat_prior_does_not_claim_to_be_proper() -> None:
    X, y = runs()
    posterior = Posterior(X, y, prior="flat")
    assert not posterior.prior.proper
    for direction, sign in [((1, 0, 0), 1), ((1, 1, 0), 1), ((1, 1, 0), -1)]:
        np.testing.assert_allclose(np.diff(tail(posterior, direction, sign)), 0.0, atol=1e-3)


@pytest.mark.parametrize("prior", EVERY, ids=repr)
def test_conformance(prior: Prior) -> None:
    X, y = runs()
    u = np.random.default_rng(2).normal(size=(9, 3))
    posterior = Posterior(X, y, prior=prior)
    values = posterior.parts(u)["log_prior"]
    assert values.shape == (9,)
    assert np.isfinite(values).all()
    single = np.concatenate([posterior.parts(row[None])["log_prior"] for row in u])
    np.testing.assert_array_equal(values, single)


def test_own_prior() -> None:
    class Cauchy(Prior):
        proper = True

        def log_density(self, log_phi, **context):
            return stats.cauchy.logpdf(log_phi).sum(axis=1)

    X, y = runs()
    u = np.array([[0.5, -1.0, -2.0]])
    parts = Posterior(X, y, prior=Cauchy()).parts(u)
    assert parts["log_prior"][0] == pytest.approx(stats.cauchy.logpdf([0.5, -1.0]).sum())


def test_repr_says_which_distributions() -> None:
    assert repr(SciPyPrior(stats.gamma(2.0, scale=3.0))) == "SciPyPrior(gamma(2.0, scale=3.0))"
    both = SciPyPrior([stats.lognorm(1.0), stats.norm()])
    assert repr(both) == "SciPyPrior([lognorm(1.0), norm()])"


def test_names_and_errors() -> None:
    assert {"flat", "jointly_robust", "log_laplace", "log_normal", "reference"} <= set(PRIORS)
    for name in PRIORS:
        assert as_prior(name).name == name
    assert isinstance(as_prior(stats.gamma(2.0)), SciPyPrior)
    assert isinstance(as_prior([stats.gamma(2.0)] * 2), SciPyPrior)
    with pytest.raises(ValueError, match=r"'reference'.*got 'jeffreys'"):
        as_prior("jeffreys")
    with pytest.raises(TypeError, match="frozen continuous"):
        as_prior([stats.gamma(2.0), 3.0])
    with pytest.raises(ValueError, match="sd must be positive"):
        LogNormal(0.0, -1.0)
    with pytest.raises(ValueError, match="location must be a finite"):
        LogLaplace(np.nan)
    with pytest.raises(ValueError, match="b must be positive"):
        JointlyRobust(b=0.0)
    X, y = runs()
    for prior, message in [
        (LogNormal([0.0, 1.0, 2.0], 1.0), "3 inputs, X has 2"),
        (LogLaplace([0.0, 1.0, 2.0]), "3 inputs, X has 2"),
        ([stats.gamma(2.0)] * 3, "each of the 2 inputs; got 3"),
        (JointlyRobust(a=-2.0), "-p = -2"),
    ]:
        with pytest.raises(ValueError, match=message):
            Posterior(X, y, prior=prior)
