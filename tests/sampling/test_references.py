"""Reference distributions: one conformance suite for all, and closed forms for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit
from tests.sampling.kit import Floats

import paims
from paims.sampling import Reference

COV = np.array([[2.0, 0.6], [0.6, 0.5]])
ONE = {
    "uniform": (paims.Uniform(-1.0, 3.0), stats.uniform(-1, 4).cdf),
    "normal": (paims.Normal([0.5], 4.0), stats.norm(0.5, 2).cdf),
    "product": (paims.Product(stats.gamma(3.0, scale=0.7)), stats.gamma(3.0, scale=0.7).cdf),
}
TWO: dict[str, Any] = {
    "uniform": paims.Uniform([-1.0, 2.0], [3.0, 2.5]),
    "soft uniform": paims.SoftUniform([-1.0, 0.0], [3.0, 1.0], [0.3, 0.8]),
    "normal": paims.Normal([0.5, -1.0], COV),
    "product": paims.Product(stats.lognorm(0.5), stats.t(5, loc=1.0)),
}


def soft_cdf(x: Floats, a: float, b: float, s: float) -> Floats:
    """Integral of the logistic CDF: the CDF of a uniform plus s times a logistic variable."""
    return s / (b - a) * (np.logaddexp(0, (x - a) / s) - np.logaddexp(0, (x - b) / s))


@pytest.mark.parametrize("name", TWO)
class TestConformance:
    def test_is_a_reference_of_two_parameters(self, name: str) -> None:
        assert isinstance(TWO[name], Reference)
        assert TWO[name].n_params == 2
        assert TWO[name].sample(7, np.random.default_rng(0)).shape == (7, 2)
        assert TWO[name].log_density(np.zeros((5, 2))).shape == (5,)

    def test_density_integrates_to_one(self, name: str) -> None:
        # The quantile map takes the unit square to the space: 1 = E[density |Jacobian|].
        reference = TWO[name]
        nodes, weights = np.polynomial.legendre.leggauss(200)
        u = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1).reshape(-1, 2) * 0.4999 + 0.5
        h = 1e-6
        step = np.array([[h, 0.0], [0.0, h]])
        columns = [(reference.quantile(u + e) - reference.quantile(u - e)) / (2 * h) for e in step]
        jacobian = columns[0][:, 0] * columns[1][:, 1] - columns[0][:, 1] * columns[1][:, 0]
        integrand = np.exp(reference.log_density(reference.quantile(u))) * np.abs(jacobian)
        total = np.outer(weights, weights).ravel() @ integrand * 0.4999**2
        assert total == pytest.approx(0.9998**2, abs=2e-6)

    def test_draws_are_the_quantiles_of_uniform_variables(self, name: str) -> None:
        reference = TWO[name]
        expected = reference.quantile(np.random.default_rng(3).random((50, 2)))
        np.testing.assert_array_equal(reference.sample(50, np.random.default_rng(3)), expected)

    def test_repr_names_the_class(self, name: str) -> None:
        assert repr(TWO[name]).startswith(type(TWO[name]).__name__ + "(")


@pytest.mark.parametrize("name", ONE)
def test_quantile_inverts_the_cdf(name: str) -> None:
    reference, cdf = ONE[name]
    u = np.concatenate([[1e-9, 1 - 1e-9], np.linspace(0.01, 0.99, 23)])
    np.testing.assert_allclose(cdf(reference.quantile(u[:, None])[:, 0]), u, rtol=1e-7)


@pytest.mark.parametrize("name", ONE)
def test_draws_follow_the_distribution(name: str) -> None:
    reference, cdf = ONE[name]
    x = reference.sample(20_000, np.random.default_rng(0))[:, 0]
    assert stats.kstest(x, cdf).pvalue > 1e-4


class TestUniform:
    def test_density_is_flat_inside_closed_box_and_zero_outside(self) -> None:
        box = paims.Uniform([0.0, 0.0], [2.0, 5.0])
        x = np.array([[1.0, 1.0], [0.0, 5.0], [-1e-9, 1.0], [1.0, 5.0001]])
        expected = [-np.log(10.0), -np.log(10.0), -np.inf, -np.inf]
        np.testing.assert_allclose(box.log_density(x), expected)

    def test_scalar_and_vector_are_broadcast(self) -> None:
        assert paims.Uniform(0.0, [1.0, 2.0]).n_params == 2
        assert paims.Uniform(0.0, 1.0).n_params == 1

    def test_keeps_its_own_copy_of_the_box(self) -> None:
        lower = np.array([0.0, 0.0])
        box = paims.Uniform(lower, [1.0, 1.0])
        lower[0] = 0.9
        assert box.lower[0] == 0.0


class TestSoftUniform:
    BOX = (-2.0, 5.0, 0.7)

    def test_density_is_the_convolution_of_uniform_and_logistic(self) -> None:
        a, b, s = self.BOX
        reference = paims.SoftUniform(a, b, s)
        for x in (-8.0, -2.0, -1.5, 1.0, 5.0, 9.0):
            value, _ = quad(
                lambda t, x=x: stats.logistic.pdf((x - t) / s) / s / (b - a), a, b, epsabs=1e-13
            )
            density = np.exp(reference.log_density(np.array([[x]])))
            np.testing.assert_allclose(density, value, rtol=1e-9)

    def test_density_is_the_difference_of_logistic_cdfs(self) -> None:
        a, b, s = self.BOX
        x = np.linspace(-10.0, 12.0, 40)
        expected = (expit((x - a) / s) - expit((x - b) / s)) / (b - a)
        found = np.exp(paims.SoftUniform(a, b, s).log_density(x[:, None]))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)

    @pytest.mark.parametrize("side", [-1.0, 1.0])
    def test_far_tails_are_exponential_and_finite(self, side: float) -> None:
        a, b, s = self.BOX
        middle, half = (a + b) / 2, (b - a) / 2
        far = middle + side * (half + s * np.array([100.0, 2000.0, 1e5]))
        found = paims.SoftUniform(a, b, s).log_density(far[:, None])
        # (1 - e^-r) e^-t / (b - a), t the distance from the box in widths
        expected = np.log1p(-np.exp(-(b - a) / s)) - np.array([100.0, 2000.0, 1e5]) - np.log(b - a)
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_quantile_inverts_the_cdf_into_both_tails(self) -> None:
        a, b, s = self.BOX
        reference = paims.SoftUniform(a, b, s)
        u = np.array([1e-250, 1e-12, 0.01, 0.3, 0.5, 0.99, 1 - 1e-12])
        x = reference.quantile(u[:, None])[:, 0]
        np.testing.assert_allclose(soft_cdf(x[2:6], a, b, s), u[2:6], rtol=1e-10)
        # the tail of the CDF is (s/(b-a)) (1 - e^(-(b-a)/s)) e^((x-a)/s)
        scale = (b - a) / s / -np.expm1(-(b - a) / s)
        np.testing.assert_allclose(x[:2], a + s * np.log(u[:2] * scale), rtol=1e-12)
        np.testing.assert_allclose(x[-1], a + b - x[1], rtol=1e-5)

    def test_quantile_of_the_ends_is_finite(self) -> None:
        assert np.all(np.isfinite(paims.SoftUniform(0.0, 1.0, 2.0).quantile(np.array([[0], [1]]))))

    @pytest.mark.parametrize("width", [0.01, 1.0, 50.0])
    def test_draws_follow_the_distribution(self, width: float) -> None:
        x = paims.SoftUniform(-2.0, 5.0, width).sample(20_000, np.random.default_rng(1))[:, 0]
        assert stats.kstest(x, lambda t: soft_cdf(t, -2.0, 5.0, width)).pvalue > 1e-4

    def test_narrow_width_is_the_box(self) -> None:
        x = np.array([[0.5], [0.1], [0.9]])
        found = paims.SoftUniform(0.0, 1.0, 1e-4).log_density(x)
        np.testing.assert_allclose(found, 0.0, atol=1e-12)


def test_normal_is_scipys() -> None:
    x = np.random.default_rng(0).normal(size=(20, 2)) * 3
    expected = stats.multivariate_normal([0.5, -1.0], COV).logpdf(x)
    np.testing.assert_allclose(TWO["normal"].log_density(x), expected, rtol=1e-12)
    draws = TWO["normal"].sample(100_000, np.random.default_rng(2))
    np.testing.assert_allclose(np.cov(draws.T), COV, atol=5 * 2.0 * np.sqrt(2 / 1e5))


@pytest.mark.parametrize("cov", [2.0, [2.0, 2.0], [[2.0, 0.0], [0.0, 2.0]]])
def test_normal_takes_scalar_vector_and_matrix(cov: Any) -> None:
    x = np.array([[1.0, 0.0]])
    expected = stats.norm(0, np.sqrt(2.0)).logpdf([1.0, 0.0]).sum()
    assert paims.Normal([0.0, 0.0], cov).log_density(x)[0] == pytest.approx(expected)


def test_product_is_zero_outside_a_factors_support() -> None:
    x = np.array([[-0.1, 0.0], [1.0, 0.0]])
    assert np.array_equal(np.isfinite(TWO["product"].log_density(x)), [False, True])


BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda: paims.Uniform([0, 1], [1, 1]), ValueError, r"below upper.*got lower=\[0.0, 1.0\]"),
    (lambda: paims.Uniform([0, 0], [1, np.inf]), ValueError, "both finite"),
    (lambda: paims.Uniform(np.nan, 1), ValueError, "both finite"),
    (lambda: paims.Uniform([[0, 0]], [[1, 1]]), ValueError, r"vectors.*got shape"),
    (lambda: paims.Uniform([0, 0], [1, 1, 1]), ValueError, r"same length.*\(2,\) and \(3,\)"),
    (lambda: paims.SoftUniform(0, 1, 0.0), ValueError, "width must be positive and finite"),
    (lambda: paims.SoftUniform(0, 1, np.nan), ValueError, "width must be positive and finite"),
    (lambda: paims.SoftUniform([0, 0], [1, 1], [1, 1, 1]), ValueError, "width and lower"),
    (lambda: paims.SoftUniform(0, 1, [1, 1]), ValueError, "must be a scalar or have 1 entries"),
    (lambda: paims.Normal([0, 0], np.eye(3)), ValueError, r"cov must be.*got shape \(3, 3\)"),
    (lambda: paims.Normal([0, 0], [[1, 2], [2, 1]]), ValueError, "positive definite"),
    (lambda: paims.Normal([0, 0], [[1, 0.5], [0, 1]]), ValueError, "symmetric"),
    (lambda: paims.Normal([0, np.nan]), ValueError, "mean must be finite"),
    (paims.Product, ValueError, "at least one distribution"),
    (lambda: paims.Product(stats.norm(), 3.0), TypeError, "frozen continuous.*got 3.0"),
    (lambda: paims.Product(stats.poisson(3.0)), TypeError, "frozen continuous"),
]


@pytest.mark.parametrize(("make", "kind", "text"), BAD, ids=[text for _, _, text in BAD])
def test_bad_input_is_refused_with_what_came(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


@pytest.mark.parametrize(
    "bound", [np.array(["2020-01-01"], "M8[D]"), "0.5", np.ma.masked_equal([1.0], 1.0), 2**60 + 1]
)
def test_bounds_that_are_no_numbers(bound: object) -> None:
    with pytest.raises(ValueError, match=r"text|dates|masked|rounded"):
        paims.Uniform(bound, 2.0**70)
    with pytest.raises(ValueError, match=r"text|dates|masked|rounded"):
        paims.Normal(bound, [1.0])
