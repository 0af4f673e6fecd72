"""The marginal mixtures against SciPy's distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.diagnostics.fakes import FakeComponents, FakeMixture, mixture

from paims.diagnostics._marginals import Marginals, as_marginals, as_outputs, as_weights


@pytest.mark.parametrize("dof", [3.0, 14.0, np.inf])
def test_cdf_density_and_moments_are_those_of_the_mixture(dof: float) -> None:
    fake = mixture(dof=dof)
    marginals = as_marginals(fake)
    y = np.array([-0.7, 0.1, 0.4, 3.0])
    family = stats.norm if np.isinf(dof) else stats.t(dof)
    c = fake.components
    z = (y - c.means) / c.scales
    np.testing.assert_allclose(marginals.cdf(y), fake.weights @ family.cdf(z), rtol=1e-12)
    density = fake.weights @ (family.pdf(z) / c.scales)
    np.testing.assert_allclose(marginals.logpdf(y), np.log(density), rtol=1e-12)
    np.testing.assert_allclose(marginals.mean, fake.mean, rtol=1e-12)
    np.testing.assert_allclose(marginals.std**2, np.diag(fake.cov()), rtol=1e-12)


def test_both_tails_keep_their_digits() -> None:
    one = Marginals(np.zeros((1, 2)), np.ones((1, 2)), np.ones((1, 1)), np.inf)
    below, above = one.tails(np.array([-20.0, 20.0]))
    assert below[0] == pytest.approx(stats.norm.cdf(-20.0), rel=1e-12)
    assert above[1] == pytest.approx(stats.norm.cdf(-20.0), rel=1e-12)
    np.testing.assert_allclose(one.scores(np.array([-20.0, 20.0])), [-20.0, 20.0], rtol=1e-12)


def test_scores_of_right_predictions_are_standard_normal() -> None:
    fake = mixture(m=4, k=1, dof=4.0, spread=2.0)
    y = fake.sample(20_000, 1)[:, 0]
    c = fake.components
    many = Marginals(
        np.repeat(c.means, len(y), axis=1),
        np.repeat(c.scales, len(y), axis=1),
        fake.weights[:, None],
        4.0,
    )
    scores = many.scores(y)
    assert stats.kstest(scores, "norm").pvalue > 1e-3
    # Plain standardised residuals are not: the mixture has heavy tails.
    assert stats.kstest((y - many.mean) / many.std, "norm").pvalue < 1e-6


def test_far_out_densities_do_not_overflow() -> None:
    one = Marginals(np.zeros((1, 2)), np.ones((1, 2)), np.ones((1, 1)), 3.0)
    far = one.logpdf(np.array([1e200, 1e10]))
    assert far[1] == pytest.approx(stats.t(3.0).logpdf(1e10), rel=1e-12)
    assert far[0] == pytest.approx(far[1] - 4.0 * np.log(1e190), rel=1e-12)


def test_a_component_without_spread_is_a_point() -> None:
    point = Marginals(np.zeros((1, 3)), np.zeros((1, 3)), np.ones((1, 1)), 5.0)
    y = np.array([-1.0, 0.0, 1.0])
    np.testing.assert_array_equal(point.cdf(y), [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(point.logpdf(y), [-np.inf, np.inf, -np.inf])


def test_two_degrees_of_freedom_have_no_variance() -> None:
    assert np.isposinf(as_marginals(mixture(dof=2.0)).std).all()


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="one value for each draw, 3; got 2"):
        as_weights([0.5, 0.5], 3)
    with pytest.raises(ValueError, match="not be negative"):
        as_weights([-0.5, 1.5], 2)
    with pytest.raises(ValueError, match="not all zero"):
        as_weights([0.0, 0.0], 2)
    with pytest.raises(ValueError, match="each of the 4 predictions; got 2"):
        as_outputs([1.0, 2.0], 4)
    with pytest.raises(ValueError, match="nothing to compare"):
        as_outputs([], 0)
    with pytest.raises(ValueError, match=r"y\[1\] is nan"):
        as_outputs([0.0, np.nan], 2)
    fake = mixture()
    fake.dof = 0.0
    with pytest.raises(ValueError, match="dof must be positive"):
        as_marginals(fake)


def test_shapes_of_components_must_agree() -> None:
    class Wrong(FakeMixture):
        @property
        def components(self) -> FakeComponents:
            return FakeComponents(np.zeros((2, 3)), np.ones((2, 4)), 5.0)

    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 4\)"):
        as_marginals(Wrong(np.zeros((2, 3)), np.ones((2, 3, 3)), 5.0, np.full(2, 0.5)))
