"""Student-t mixtures against SciPy and, at the edges, against many digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import optimize, special, stats

from paims._student import StudentMixtures, StudentT

RNG = np.random.default_rng(3)
DOFS = [1.0, 3.0, 14.0, 199.0, 200.0, 1e5, 1e9, np.inf]


def mixtures(dof: float, m: int = 5, k: int = 4) -> StudentMixtures:
    return StudentMixtures(
        RNG.normal(size=(m, k)), np.exp(RNG.normal(size=(m, k))),
        RNG.dirichlet(np.ones(m), k).T, dof,
    )  # fmt: skip


def one(location: float, scale: float, dof: float) -> StudentMixtures:
    return StudentMixtures(np.array([[location]]), np.array([[scale]]), np.ones((1, 1)), dof)


def log_density_by_definition(z: float, dof: float, scale: float = 1.0) -> float:
    with mpmath.workdps(60):
        z, scale = mpmath.mpf(z) / mpmath.mpf(scale), mpmath.mpf(scale)
        if np.isinf(dof):
            value = -z * z / 2 - mpmath.log(2 * mpmath.pi) / 2
        else:
            nu = mpmath.mpf(dof)
            value = (
                mpmath.loggamma((nu + 1) / 2) - mpmath.loggamma(nu / 2)
                - mpmath.log(nu * mpmath.pi) / 2 - (nu + 1) / 2 * mpmath.log(1 + z * z / nu)
            )  # fmt: skip
        return float(value - mpmath.log(scale))


def cdf_by_definition(z: float, dof: float) -> float:
    """Lower tail, z < 0, by the incomplete beta function."""
    with mpmath.workdps(60):
        z = mpmath.mpf(z)
        if np.isinf(dof):
            return float(mpmath.ncdf(z))
        nu = mpmath.mpf(dof)
        x = nu / (nu + z * z)
        return float(mpmath.betainc(nu / 2, 0.5, 0, x, regularized=True) / 2)


@pytest.mark.parametrize("dof", DOFS)
@pytest.mark.parametrize("z", [0.0, 1e-9, 0.3, -4.0, 37.0, 1e7, -1e8, 1e9])
def test_log_density_has_all_digits(dof: float, z: float) -> None:
    expected = log_density_by_definition(z, dof)
    assert StudentT(dof).log_density(np.array(z)) == pytest.approx(expected, rel=2e-15, abs=1e-15)


@pytest.mark.parametrize("dof", [1.0, 3.0, 14.0, 200.0, 1e5])
@pytest.mark.parametrize(
    ("y", "scale"), [(1e149, 1.0), (1e151, 1.0), (-1e200, 1.0), (1e308, 1e-3), (1.0, 1e-320)]
)
def test_far_tail_of_the_log_density_is_the_power_law(dof: float, y: float, scale: float) -> None:
    expected = log_density_by_definition(y, dof, scale)
    found = one(0.0, scale, dof).logpdf(np.array([y]))[0]
    assert np.isfinite(found)
    assert found == pytest.approx(expected, rel=1e-13)


def test_far_tail_of_the_normal() -> None:
    found = one(0.0, 1.0, np.inf).logpdf(np.array([1e100]))
    assert found[0] == pytest.approx(-0.5e200, rel=1e-15)
    assert one(0.0, 1.0, np.inf).logpdf(np.array([1e200]))[0] == -np.inf  # below -1e308


@pytest.mark.parametrize("dof", [2.5, 3.0, 14.0, 200.0, np.inf])
@pytest.mark.parametrize("z", [-1e-8, -0.7, -5.0, -30.0])
def test_both_tails_keep_their_digits(dof: float, z: float) -> None:
    expected = cdf_by_definition(z, dof)
    below, _ = one(0.0, 1.0, dof).tails(np.array([z]))
    _, above = one(0.0, 1.0, dof).tails(np.array([-z]))
    assert below[0] == pytest.approx(expected, rel=1e-11, abs=0.0)
    assert above[0] == pytest.approx(expected, rel=1e-11, abs=0.0)
    assert one(0.0, 1.0, dof).cdf(np.array([z]))[0] == pytest.approx(expected, rel=1e-11, abs=0.0)


@pytest.mark.parametrize("dof", [2.5, 14.0, np.inf])
def test_scale_zero_is_a_step_that_is_continuous_from_the_right(dof: float) -> None:
    step = one(2.0, 0.0, dof)
    at = [np.nextafter(2.0, 0.0), 2.0, np.nextafter(2.0, 3.0), -np.inf, np.inf]
    assert [step.cdf(np.array([y]))[0] for y in at] == [0.0, 1.0, 1.0, 0.0, 1.0]
    assert [step.logpdf(np.array([y]))[0] for y in at] == [-np.inf, np.inf, *[-np.inf] * 3]
    below, above = step.tails(np.array([2.0]))
    assert (below[0], above[0]) == (0.5, 0.5)
    assert step.normal_scores(np.array([2.0]))[0] == 0.0
    assert (step.mean[0], step.std[0]) == (2.0, 0.0)
    for q in (1e-9, 0.5, 0.9):
        assert step.quantile(q)[0] == 2.0


def test_a_step_beside_a_component_with_spread() -> None:
    both = StudentMixtures(np.zeros((2, 1)), np.array([[0.0], [1.0]]), np.full((2, 1), 0.5), 5.0)
    assert both.cdf(np.zeros(1))[0] == 0.75
    assert both.tails(np.zeros(1))[0][0] == 0.5
    assert both.logpdf(np.zeros(1))[0] == np.inf
    assert both.logpdf(np.ones(1))[0] == pytest.approx(stats.t(5.0).logpdf(1.0) - np.log(2.0))
    assert both.quantile(0.6)[0] == pytest.approx(0.0, abs=1e-11)


def test_a_component_without_weight_does_not_count() -> None:
    weights = np.array([[0.0], [1.0]])
    with_it = StudentMixtures(np.array([[3.0], [0.0]]), np.array([[0.0], [1.0]]), weights, 5.0)
    y = np.array([3.0])
    assert with_it.cdf(y)[0] == pytest.approx(stats.t(5.0).cdf(3.0), rel=1e-14)
    assert with_it.logpdf(y)[0] == pytest.approx(stats.t(5.0).logpdf(3.0), rel=1e-14)


@pytest.mark.parametrize("dof", [1.5, 3.0, 14.0, np.inf])
def test_mixtures_are_weighted_sums(dof: float) -> None:
    many = mixtures(dof)
    family = stats.norm if np.isinf(dof) else stats.t(dof)
    y = np.array([-0.7, 0.1, 0.4, 3.0])
    z = (y - many.location) / many.scale
    cdf = (many.weights * family.cdf(z)).sum(axis=0)
    np.testing.assert_allclose(many.cdf(y), cdf, rtol=1e-12)
    density = (many.weights * family.pdf(z) / many.scale).sum(axis=0)
    np.testing.assert_allclose(many.logpdf(y), np.log(density), rtol=1e-12, atol=1e-14)
    for q in (1e-6, 0.2, 0.5, 0.9):
        np.testing.assert_allclose(many.cdf(many.quantile(q)), q, rtol=1e-9)
    some = many[np.array([2, 0])]
    np.testing.assert_array_equal(some.cdf(y[[2, 0]]), many.cdf(y)[[2, 0]])


def test_normal_scores_of_right_predictions_are_standard_normal() -> None:
    m, n = 4, 20_000
    few = mixtures(4.0, m, 1)
    rng = np.random.default_rng(1)
    chosen = rng.choice(m, n, p=few.weights[:, 0])
    y = few.location[chosen, 0] + few.scale[chosen, 0] * rng.standard_t(4.0, n)
    many = few[np.zeros(n, dtype=np.intp)]
    assert stats.kstest(many.normal_scores(y), "norm").pvalue > 1e-3
    # Plain standardised residuals are not: the mixture has heavy tails.
    assert stats.kstest((y - many.mean) / many.std, "norm").pvalue < 1e-6
    assert one(0.0, 1.0, np.inf).normal_scores(np.array([20.0]))[0] == pytest.approx(20.0)


def test_moments_that_do_not_exist_are_infinite() -> None:
    assert np.isposinf(mixtures(2.0).std).all()
    assert StudentT(2.0).variance == np.inf
    assert StudentT(4.0).variance == 2.0


@pytest.mark.parametrize("dof", [1.5, 2.0, 3.0, 14.0, 94.0, 1e6, np.inf])
def test_table_equals_scipy(dof: float) -> None:
    rng = np.random.default_rng(1)
    z = np.concatenate([3.0 * rng.normal(size=5000), 1e3 * rng.normal(size=1000), [1e300, -1e300]])
    expected = special.ndtr(z) if np.isinf(dof) else special.stdtr(dof, z)
    np.testing.assert_allclose(StudentT(dof).tabulated_cdf()(z), expected, atol=1e-9)


@pytest.mark.parametrize("dof", [10.0, 10.5, 14.0, 94.0, 3e3, 1e6, 1e9])
def test_table_keeps_the_digits_of_small_probabilities(dof: float) -> None:
    z = special.stdtrit(dof, np.geomspace(1e-10, 0.5, 3001))
    z = np.concatenate([z, -z])
    cdf = StudentT(dof).tabulated_cdf()
    np.testing.assert_allclose(cdf(z), special.stdtr(dof, z), rtol=1e-11)
    assert (np.diff(cdf(np.sort(z))) >= 0.0).all()
    np.testing.assert_array_equal(np.isnan(cdf(np.array([np.nan, np.inf, -np.inf]))), [1, 0, 0])


@pytest.mark.parametrize("q", [1e-8, 1e-6, 1e-3, 0.025, 0.5, 0.8, 0.975, 1.0 - 1e-6])
@pytest.mark.parametrize("dof", [3.0, 14.0, 94.0, np.inf])
def test_quantiles_solve_the_distribution_function_of_scipy(dof: float, q: float) -> None:
    # Together, and apart with gaps of little density between the components.
    for apart in (0.5, 6.0):
        many = mixtures(dof, m=30, k=3)
        many = StudentMixtures(apart * many.location, many.scale, many.weights, dof)
        for j, found in enumerate(many.quantile(q)):
            location, scale, weights = many.location[:, j], many.scale[:, j], many.weights[:, j]
            # The smaller tail has the digits: what is above is below when turned round.
            turn, tail = (1.0, q) if q <= 0.5 else (-1.0, 1.0 - q)

            def excess(
                x: float, location=turn * location, scale=scale, weights=weights, tail=tail
            ) -> float:
                z = (x - location) / scale
                below = special.ndtr(z) if np.isinf(dof) else special.stdtr(dof, z)
                return float(np.log(weights @ below) - np.log(tail))

            unit = StudentT(dof).quantile(tail)
            ends = turn * location + unit * scale
            expected = turn * optimize.brentq(
                excess, ends.min() - 1.0, ends.max() + 1.0, xtol=1e-14, rtol=1e-15
            )
            assert abs(found - expected) < 1e-10 * many.std[j]
