"""Densities that are difficult, forms of input, and every error with the input that causes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.sampling.kit import Floats

import paims
from paims.sampling import Scheme

BOX = paims.Uniform([-2.0, -2.0], [2.0, 2.0])


def gaussian(x: Floats) -> Floats:
    return -0.5 * np.sum(x**2, axis=1) / 0.04


def sample(density: Any = gaussian, reference: Any = BOX, n: int = 200, **options: Any) -> Any:
    return paims.sample(density, reference, n, random_state=0, **options)


LOG_Z = np.log(2 * np.pi * 0.04)


class TestDifficultDensities:
    def test_half_of_the_box_is_zero(self) -> None:
        result = sample(lambda x: np.where(x[:, 0] > 0, gaussian(x), -np.inf), n=400)
        assert abs(result.log_evidence - (LOG_Z - np.log(2))) < 5 * result.log_evidence_error
        assert np.all(result.draws[:, 0] > 0)
        assert np.all(np.isfinite(result.log_density))
        assert result.warnings == ()

    def test_a_constant_density(self) -> None:
        result = sample(lambda x: np.full(len(x), -7.5), n=400)
        assert result.log_evidence == pytest.approx(np.log(16) - 7.5, abs=0.03)
        sd = 4 / np.sqrt(12)
        np.testing.assert_allclose(result.sd, sd, rtol=5 / np.sqrt(result.effective_size))
        assert result.levels["beta"].tolist()[0] == 1.0

    @pytest.mark.parametrize("goal", ["posterior", "optimum"])
    @pytest.mark.parametrize("value", [0.0, -1.234, 1e6])
    def test_a_constant_density_of_any_height(self, value: float, goal: str) -> None:
        result = sample(lambda x: np.full(len(x), value), goal=goal, max_levels=30)
        assert result.status.name == "converged"

    def test_the_reference_itself(self) -> None:
        result = sample(lambda x: stats.norm.logpdf(x).sum(axis=1), paims.Normal([0.0, 0.0]))
        assert result.log_evidence == pytest.approx(0.0, abs=0.05)
        assert result.warnings == ()

    def test_flat_likelihood(self) -> None:
        result = paims.sample(
            log_likelihood=lambda x: np.zeros(len(x)), prior=paims.Normal([1.0]), n_samples=200,
            random_state=0,
        )  # fmt: skip
        assert result.log_evidence == pytest.approx(0.0, abs=0.05)

    def test_huge_and_tiny_scales(self) -> None:
        reference = paims.Uniform([-2e9, -2e-9], [2e9, 2e-9])
        result = sample(lambda x: gaussian(x / [1e9, 1e-9]), reference, n=400)
        assert abs(result.log_evidence - LOG_Z) < 5 * result.log_evidence_error
        np.testing.assert_allclose(result.sd, [0.2e9, 0.2e-9], rtol=0.1)

    def test_a_density_far_above_any_exponential(self) -> None:
        result = sample(lambda x: gaussian(x) + 1e5)
        assert abs(result.log_evidence - 1e5 - LOG_Z) < 5 * result.log_evidence_error

    def test_a_degenerate_ridge(self) -> None:
        # a line of width 1e-4 across the box
        width = 1e-4
        result = sample(
            lambda x: -0.5 * ((x[:, 0] - x[:, 1]) / width) ** 2 - 0.5 * x[:, 0] ** 2 / 0.04, n=1000
        )
        truth = np.log(2 * np.pi * 0.2 * width)
        assert abs(result.log_evidence - truth) < 5 * result.log_evidence_error + 0.05

    def test_edge_of_the_support(self) -> None:
        # the density is largest at a corner of the box
        result = sample(lambda x: 5 * np.sum(x, axis=1), n=400)
        truth = 2 * np.log((np.exp(10) - np.exp(-10)) / 5)
        assert abs(result.log_evidence - truth) < 5 * result.log_evidence_error + 0.02
        assert np.max(result.draws) <= 2.0


class TestNaN:
    def density(self, x: Floats) -> Floats:
        return np.where(x[:, 0] < -1.0, np.nan, gaussian(x))

    def test_counts_as_zero_and_is_reported(self) -> None:
        seen = []

        def counting(x: Floats) -> Floats:
            seen.append(np.count_nonzero(x[:, 0] < -1.0))
            return self.density(x)

        with pytest.warns(paims.SamplingWarning, match="NaN at .* zero density") as caught:
            result = sample(counting)
        assert result.n_nan == sum(seen) > 0
        assert f"NaN at {result.n_nan} of {result.n_evaluations}" in str(caught[0].message)
        assert any("NaN" in text for text in result.warnings)
        assert np.min(result.draws[:, 0]) >= -1.0
        assert caught[0].filename == __file__

    def test_everywhere_is_zero_almost_everywhere(self) -> None:
        with pytest.raises(ValueError, match="zero at 200 of the 200 points"):
            sample(lambda x: np.full(len(x), np.nan))


class TestCalls:
    def test_never_outside_the_support(self) -> None:
        def strict(x: Floats) -> Floats:
            assert np.all(np.abs(x) <= 2.0)
            return 5 * x[:, 0]

        sample(strict)

    def test_evaluations_are_counted(self) -> None:
        sizes = []

        def counting(x: Floats) -> Floats:
            sizes.append(len(x))
            return gaussian(x)

        result = sample(counting)
        assert result.n_evaluations == sum(sizes)
        assert result.search is not None
        spent = 200 + result.levels["n_evaluations"].sum() + result.search.n_evaluations
        assert result.n_evaluations == spent
        assert max(sizes) <= 200

    def test_a_density_that_writes_to_its_input(self) -> None:
        def rude(x: Floats) -> Floats:
            value = gaussian(x)
            x[:] = np.nan
            return value

        np.testing.assert_array_equal(sample(rude).draws, sample().draws)

    def test_lists_and_integers_are_numbers(self) -> None:
        result = sample(lambda x: [int(v) for v in np.round(gaussian(x))])
        assert result.log_evidence == pytest.approx(LOG_Z, abs=0.2)
        assert np.isfinite(sample(lambda x: x[:, 0] > 0).log_evidence)

    def test_one_point_at_a_time(self) -> None:
        def single(x: Floats) -> float:
            assert x.shape == (2,)
            return float(-0.5 * np.sum(x**2) / 0.04)

        result = sample(single, vectorized=False)
        np.testing.assert_allclose(result.draws, sample().draws)
        top = result.modes(climb=True)[0]
        np.testing.assert_allclose(top.location, 0.0, atol=1e-4)

    def test_exceptions_of_the_density_come_through(self) -> None:
        def broken(x: Floats) -> Floats:
            raise ZeroDivisionError("mine")

        with pytest.raises(paims.sampling.DensityError, match="ZeroDivisionError: mine") as seen:
            sample(broken)
        assert isinstance(seen.value.__cause__, ZeroDivisionError)


class TestForms:
    def test_likelihood_and_prior_are_density_and_reference(self) -> None:
        prior = paims.Normal([0.5, -0.5], [0.3, 0.6])

        def joint(x: Floats) -> Floats:
            return gaussian(x) + prior.log_density(x)

        one = paims.sample(log_likelihood=gaussian, prior=prior, n_samples=300, random_state=1)
        two = paims.sample(joint, prior, 300, random_state=1)
        np.testing.assert_array_equal(one.draws, two.draws)
        np.testing.assert_allclose(one.weights, two.weights)
        np.testing.assert_allclose(one.log_density, two.log_density)
        assert one.log_evidence == pytest.approx(two.log_evidence)
        np.testing.assert_array_equal(one.best[0], two.best[0])
        for a, b in zip(one.modes(climb=True), two.modes(climb=True), strict=True):
            np.testing.assert_allclose(a.location, b.location, atol=1e-6)
        # N(0, .04) and N(m, v): the evidence is a Gaussian density at m
        truth = (
            LOG_Z + stats.norm([0.5, -0.5], np.sqrt(np.array([0.3, 0.6]) + 0.04)).logpdf(0).sum()
        )
        assert abs(one.log_evidence - truth) < 5 * one.log_evidence_error

    def test_modes_are_those_of_prior_times_likelihood(self) -> None:
        result = paims.sample(
            log_likelihood=lambda x: -0.5 * ((x[:, 0] - 4) / 2) ** 2,
            prior=paims.Normal([0.0, 0.0]),
            n_samples=400,
            random_state=0,
        )
        (mode,) = result.modes(climb=True)
        np.testing.assert_allclose(mode.location, [0.8, 0.0], atol=1e-3)
        assert np.linalg.norm(result.best[0] - [0.8, 0.0]) < 0.3

    def test_climbing_stays_in_the_support(self) -> None:
        result = sample(lambda x: 3 * np.sum(x, axis=1), n=400)
        for mode in result.modes(climb=True):
            assert np.all(mode.location <= 2.0)

    def test_a_reference_of_ones_own(self) -> None:
        class Mine:
            def sample(self, n: int, rng: np.random.Generator) -> Floats:
                return rng.standard_normal((n, 2))

            def log_density(self, x: Floats) -> Floats:
                return stats.norm.logpdf(x).sum(axis=1)

        result = sample(reference=Mine(), n=400)
        assert abs(result.log_evidence - LOG_Z) < 5 * result.log_evidence_error + 0.02

    def test_names(self) -> None:
        assert sample().names == ("x1", "x2")
        assert sample(names=["length", "width"]).names == ("length", "width")

    def test_number_of_points_by_dimension(self) -> None:
        first = next(paims.anneal(gaussian, BOX, random_state=0))
        assert len(first.state.points) == 2000
        wide = paims.Uniform([-2.0] * 9, [2.0] * 9)
        first = next(paims.anneal(gaussian, wide, random_state=0))
        assert len(first.state.points) == 2700

    def test_a_scheme_of_ones_own(self) -> None:
        scheme = Scheme(
            n_islands=2, shrinking=False, equal_chains=True, recycle=True, max_sweeps=3,
            max_correlation=0.7,
        )  # fmt: skip
        result = sample(scheme=scheme, n=600)
        assert abs(result.log_evidence - LOG_Z) < 5 * result.log_evidence_error + 0.1
