"""Periodic parameters: a mode across the end of the period is one mode, and all is exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import i0, ive
from tests.sampling.kit import Floats

import paims
from paims.sampling._periodic import Circles, as_circles

CONCENTRATION, CENTRE = 30.0, 0.05
PRIOR = {"phi": stats.uniform(0.0, 2 * np.pi), "a": stats.norm(0.0, 1.0)}


def log_likelihood(x: Floats) -> Floats:
    """Von Mises about a centre just past the end, times a Gaussian."""
    assert np.all((x[:, 0] >= 0.0) & (x[:, 0] <= 2 * np.pi))
    return CONCENTRATION * np.cos(x[:, 0] - CENTRE) - 0.5 * ((x[:, 1] - 1.0) / 0.5) ** 2


LOG_EVIDENCE = (
    np.log(i0(CONCENTRATION))
    + stats.norm.logpdf(1.0, 0.0, np.sqrt(1.25))
    + 0.5 * np.log(2 * np.pi * 0.25)
)
RESULTANT = ive(1, CONCENTRATION) / ive(0, CONCENTRATION)
CIRCULAR_SD = np.sqrt(-2 * np.log(RESULTANT))


def run(**options: Any) -> paims.SampleResult:
    options = {"periodic": ["phi"], "random_state": 0, "n_samples": 1000} | options
    return paims.sample(log_likelihood=log_likelihood, prior=PRIOR, **options)


@pytest.fixture(scope="module")
def result() -> paims.SampleResult:
    return run()


class TestResult:
    def test_evidence(self, result: paims.SampleResult) -> None:
        assert abs(result.log_evidence - LOG_EVIDENCE) < 5 * result.log_evidence_error
        assert result.log_evidence_error < 0.02

    def test_one_mode_at_the_end_of_the_period(self, result: paims.SampleResult) -> None:
        (mode,) = result.modes()
        assert mode.mass == pytest.approx(1.0)
        off = np.angle(np.exp(1j * (np.array([mode.location[0], mode.mean[0]]) - CENTRE)))
        assert np.max(np.abs(off)) < 0.1
        assert mode.sd[0] == pytest.approx(CIRCULAR_SD, rel=0.1)

    def test_without_it_there_are_two(self) -> None:
        assert len(run(periodic=None).modes()) == 2

    def test_circular_moments(self, result: paims.SampleResult) -> None:
        off = np.angle(np.exp(1j * (result.mean[0] - CENTRE)))
        assert abs(off) < 5 * result.mean_error[0]
        assert result.mean_error[0] < 0.02
        assert result.sd[0] == pytest.approx(CIRCULAR_SD, rel=0.05)
        assert result.mean[1] == pytest.approx(0.8, abs=0.05)  # the others as ever

    def test_quantiles_go_round(self, result: paims.SampleResult) -> None:
        low, middle, high = result.quantile([0.05, 0.5, 0.95])[:, 0]
        spread = stats.vonmises(CONCENTRATION).ppf(0.95)
        assert low == pytest.approx(CENTRE - spread + 2 * np.pi, abs=0.03)
        assert middle == pytest.approx(CENTRE, abs=0.03)
        assert high == pytest.approx(CENTRE + spread, abs=0.03)

    def test_draws_are_within_the_period(self, result: paims.SampleResult) -> None:
        phi = result.draws[:, 0]
        assert phi.min() >= 0.0
        assert phi.max() <= 2 * np.pi
        assert np.allclose(result.log_likelihood, log_likelihood(result.draws))
        for end in (phi < 0.2, phi > 2 * np.pi - 0.2):
            assert result.weights[end].sum() > 0.1

    def test_the_cut_lies_far_from_the_mode(self, result: paims.SampleResult) -> None:
        assert result.circles is not None
        assert abs(np.angle(np.exp(1j * (result.circles.cut[0] - CENTRE)))) > 1.5


@pytest.mark.parametrize("periodic", [[0], ["phi"], [np.int64(0)]])
def test_names_or_numbers(result: paims.SampleResult, periodic: Any) -> None:
    np.testing.assert_array_equal(run(periodic=periodic).draws, result.draws)


def test_interrupted_and_gone_on_from_a_file(result: paims.SampleResult, tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    with pytest.warns(paims.SamplingWarning, match="ended before its goal"):
        run(checkpoint=path, max_levels=2)
    ended = paims.resume(path, log_likelihood, reference=PRIOR)
    np.testing.assert_array_equal(ended.draws, result.draws)
    assert ended.circles == result.circles
    with pytest.raises(paims.sampling.CheckpointError, match="periodic"):
        run(checkpoint=path, periodic=None)


class TestCircles:
    CIRCLES = Circles((1,), (-1.0,), (4.0,), (1.5,))

    def test_laid_out_and_closed_are_inverse(self) -> None:
        x = np.array([[7.0, -1.0], [8.0, 0.4], [9.0, 0.6], [1.0, 2.99]])
        there = self.CIRCLES.laid_out(x)
        np.testing.assert_array_equal(there[:, 0], x[:, 0])
        np.testing.assert_allclose(there[:, 1], [1.5, 2.9, -0.9, 1.49])
        np.testing.assert_allclose(self.CIRCLES.closed(there), x)

    def test_moments_of_draws_about_the_end(self) -> None:
        draws = np.array([[0.0, 2.9], [2.0, -0.7]])  # 0.2 apart on either side of 3 = -1
        weights = np.array([0.5, 0.5])
        mean = self.CIRCLES.mean(draws, weights, weights @ draws)
        np.testing.assert_allclose(mean, [1.0, -0.9])
        values = self.CIRCLES.linearised(draws, weights)
        np.testing.assert_allclose(values[:, 1], [-0.2, 0.2], rtol=0.05)

    def test_cut_is_at_the_lowest_place(self) -> None:
        x = np.linspace(-1.0, 3.0, 1000)[:, None]
        circles = Circles((0,), (-1.0,), (4.0,), (0.0,))
        found = circles.cut_where_lowest(x, np.cos((x[:, 0] - 0.5) * np.pi / 2))
        assert -1.0 + found.cut[0] == pytest.approx(2.5, abs=0.2)


@pytest.mark.parametrize(
    ("periodic", "error", "text"),
    [
        (["psi"], ValueError, "periodic names 'psi', which is no parameter; they are phi, a"),
        ([2], ValueError, "periodic names 2, which is no parameter"),
        (["a"], ValueError, "The periodic parameter a needs a uniform reference"),
        ("phi", TypeError, "periodic must be a list"),
    ],
)
def test_what_cannot_be_periodic(periodic: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        run(periodic=periodic)


def test_references_that_know_no_ends_are_refused() -> None:
    with pytest.raises(ValueError, match="needs a uniform reference"):
        as_circles([0], ["x1"], paims.Normal([0.0], 1.0))
    assert as_circles([], ["x1"], paims.Normal([0.0], 1.0)) is None
    found = as_circles([0], ["x1"], paims.Uniform([-2.0], [5.0]))
    assert found == Circles((0,), (-2.0,), (7.0,), (0.0,))
