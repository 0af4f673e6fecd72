"""The nugget's transformation, its Jacobian and its priors, far into both tails."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_expit
from scipy.stats import beta

from paims.gp import (
    NUGGET_PRIORS,
    BetaNugget,
    EstimatedNugget,
    FixedNugget,
    NuggetPrior,
    Posterior,
    ReferenceNugget,
    SpikeSlabNugget,
)
from paims.gp._nugget import as_nugget, as_nugget_prior

Z = np.array([-40.0, -36.5, -27.6, -20.0, -5.0, 0.0, 3.0, 20.0, 36.5, 40.0])


class Halving(NuggetPrior):
    """A user's prior, proportional to 1 - delta."""

    def log_density(self, z, nugget, lower):
        return np.log(2.0 / (1.0 - lower)) + log_expit(-z)


# The reference prior's mass is not one; it has tests of its own.
PRIORS = [cls() for cls in NUGGET_PRIORS.values() if not cls.uses_information]
PRIORS += [BetaNugget(2.0, 3.0), SpikeSlabNugget(1e-3, 0.3, 0.9), Halving()]


def exact(z: float) -> tuple[mp.mpf, mp.mpf]:
    """Nugget and Jacobian with the digits that doubles lack."""
    lower, s = mp.mpf(1e-12), 1 / (1 + mp.exp(-mp.mpf(z)))
    return lower + (1 - lower) * s, (1 - lower) * s * (1 - s)


def test_value_and_jacobian_keep_their_digits() -> None:
    nugget = EstimatedNugget()
    with mp.workdps(60):
        values, jacobians = zip(*(exact(z) for z in Z), strict=True)
        logs = [float(mp.log(j)) for j in jacobians]
    np.testing.assert_allclose(nugget.value(Z[:, None]), [float(v) for v in values], rtol=4e-16)
    np.testing.assert_allclose(nugget.log_jacobian(Z[:, None]), logs, rtol=4e-16)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (2.0, 3.0)])
def test_beta_keeps_its_digits(a: float, b: float) -> None:
    with mp.workdps(60):
        expected = [
            float(
                mp.log(v ** (a - 1) * (1 - v) ** (b - 1))
                - mp.log(mp.betainc(a, b, mp.mpf(1e-12), 1))
            )
            for v, _ in map(exact, Z)
        ]
    actual = EstimatedNugget(BetaNugget(a, b)).log_prior(Z[:, None])
    np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("low", "high", "probability"), [(1e-8, 1e-5, 0.1), (1e-12, 1.0, 0.99), (1e-4, 2e-4, 0.01)]
)
def test_spike_and_slab_keeps_its_digits(low: float, high: float, probability: float) -> None:
    with mp.workdps(60):
        a, b, w, lower = mp.mpf(low), mp.mpf(high), mp.mpf(probability), mp.mpf(1e-12)

        def spike(v: mp.mpf) -> mp.mpf:
            return v / ((v**2 + a**2) * (1 + (v / b) ** 2))

        ends = sorted({mp.log(v) for v in (lower, a, b, mp.mpf(1))})
        mass = mp.quad(lambda t: spike(mp.exp(t)) * mp.exp(t), ends)
        expected = [
            float(mp.log(w / mass * spike(v) + (1 - w) / (1 - lower))) for v, _ in map(exact, Z)
        ]
    actual = EstimatedNugget(SpikeSlabNugget(low, high, probability)).log_prior(Z[:, None])
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def test_the_spike_has_its_probability() -> None:
    nugget = EstimatedNugget(SpikeSlabNugget(1e-8, 1e-5, 0.3))
    z = np.linspace(-60.0, nugget.parameter(np.array([1e-3]))[0, 0], 200_001)[:, None]
    mass = np.trapezoid(np.exp(nugget.log_prior(z) + nugget.log_jacobian(z)), z[:, 0])
    # The spike, but for what it has above a hundred times its upper end, and 1/1000 of the slab.
    assert mass == pytest.approx(0.3 + 0.7e-3, abs=1e-5)


def test_beta_is_scipys_away_from_the_ends() -> None:
    z = np.array([[-4.0], [0.0], [2.0]])
    nugget = EstimatedNugget("beta")
    expected = beta(0.5, 0.5).logpdf(nugget.value(z)) - beta(0.5, 0.5).logsf(1e-12)
    np.testing.assert_allclose(nugget.log_prior(z), expected, rtol=1e-12)


def test_jacobian_is_the_derivative() -> None:
    nugget, step = EstimatedNugget(lower=0.05), 1e-5
    z = np.linspace(-4.0, 4.0, 9)[:, None]
    difference = (nugget.value(z + step) - nugget.value(z - step)) / (2.0 * step)
    np.testing.assert_allclose(np.exp(nugget.log_jacobian(z)), difference, rtol=1e-9)


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
@pytest.mark.parametrize("lower", [1e-12, 0.1])
def test_priors_have_mass_one_in_z(prior: NuggetPrior, lower: float) -> None:
    nugget = EstimatedNugget(prior, lower)

    def density(z: float) -> float:
        point = np.array([[z]])
        return float(np.exp(nugget.log_prior(point) + nugget.log_jacobian(point))[0])

    mass = sum(quad(density, a, a + 20.0, epsabs=1e-12)[0] for a in np.arange(-60.0, 100.0, 20.0))
    assert mass == pytest.approx(1.0, abs=1e-9)


def test_reference_is_flat_in_log_nugget() -> None:
    z = np.linspace(-10.0, 5.0, 7)[:, None]
    nugget, step = EstimatedNugget("reference"), 1e-5
    log_derivative = (np.log(nugget.value(z + step)) - np.log(nugget.value(z - step))) / (2 * step)
    np.testing.assert_allclose(
        nugget.log_prior(z) + nugget.log_jacobian(z), np.log(log_derivative), atol=1e-8
    )
    assert nugget.uses_information
    assert not EstimatedNugget("beta").uses_information


@pytest.mark.parametrize("treatment", [EstimatedNugget(), FixedNugget(0.01)], ids=repr)
def test_parameter_inverts_value(treatment) -> None:
    z = np.linspace(-12.0, 12.0, 7)[:, None][:, : treatment.n_params]
    np.testing.assert_allclose(treatment.parameter(treatment.value(z)), z, atol=1e-9)
    assert treatment.log_prior(z).shape == treatment.log_jacobian(z).shape == (7,)


def test_names_and_errors() -> None:
    for name in ("uniform", "beta", "spike_slab", "reference"):
        assert as_nugget_prior(name).name == name
        assert as_nugget("estimate", name, 2).prior.name == name
    assert as_nugget(0, "uniform", 2).nugget == 0.0
    assert as_nugget(np.float64(0.5), "uniform", 2).nugget == 0.5
    fixed = FixedNugget(0.1)
    assert as_nugget(fixed, "uniform", 2) is fixed
    with pytest.raises(ValueError, match=r"'uniform'.*got 'gamma'"):
        as_nugget("estimate", "gamma", 2)
    with pytest.raises(ValueError, match=r"'estimate'.*got 'optimise'"):
        as_nugget("optimise", "uniform", 2)
    for bad in (True, None, [0.1]):
        with pytest.raises(ValueError, match="'estimate'"):
            as_nugget(bad, "uniform", 2)
    for bad in (-1e-3, np.nan, np.inf):
        with pytest.raises(ValueError, match="not negative"):
            as_nugget(bad, "uniform", 2)
    with pytest.raises(ValueError, match=r"lower must be in \(0, 1\)"):
        EstimatedNugget(lower=0.0)
    with pytest.raises(ValueError, match="positive"):
        BetaNugget(0.0, 1.0)
    with pytest.raises(ValueError, match=r"low < high <= 1; got 0\.1 and 0\.01"):
        SpikeSlabNugget(0.1, 0.01)
    with pytest.raises(ValueError, match=r"probability must be in \(0, 1\); got 1"):
        SpikeSlabNugget(probability=1)
    for bad in (1e-12, 1.0, -1.0):
        with pytest.raises(ValueError, match=r"lies in \(1e-12, 1\)"):
            EstimatedNugget().parameter(np.array([0.5, bad]))
    with pytest.raises(ValueError, match=r"fixed at 0\.1"):
        fixed.parameter(np.array([0.2]))
    assert isinstance(as_nugget_prior(ReferenceNugget()), ReferenceNugget)


@pytest.mark.parametrize(("n_inputs", "low"), [(1, 1e-10), (3, 1e-10), (4, 1e-8), (20, 1e-8)])
def test_the_spike_of_few_inputs_reaches_further_down(n_inputs: int, low: float) -> None:
    X = np.random.default_rng(0).random((30, n_inputs))
    named = Posterior(X, np.sin(9.0 * X[:, 0]), nugget_prior="spike_slab").nugget
    assert isinstance(named, EstimatedNugget)
    assert repr(named.prior) == repr(SpikeSlabNugget(low))
    own = as_nugget("estimate", SpikeSlabNugget(1e-7), n_inputs)
    assert isinstance(own, EstimatedNugget)
    assert repr(own.prior) == repr(SpikeSlabNugget(1e-7))
