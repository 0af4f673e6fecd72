"""Errors of masses and means, agreement of the islands, and what the result says it checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.sampling.kit import Floats, rms

import paims
from paims.sampling import Check
from paims.sampling._errors import Weighting

MASS, WIDTHS = 0.3, (0.1, 0.2)


def log_density(x: Floats) -> Floats:
    parts = [
        np.log(mass) - 2 * np.log(width) - 0.5 * np.sum((x - c) ** 2, axis=1) / width**2
        for mass, width, c in zip((MASS, 1 - MASS), WIDTHS, (-0.7, 0.7), strict=True)
    ]
    return np.logaddexp(*parts) - np.log(2 * np.pi)


def run(seed: int = 0, **options: Any) -> paims.SampleResult:
    options = {"n_samples": 800} | options
    return paims.sample(
        log_density, paims.Uniform([-2.0] * 2, [2.0] * 2), random_state=seed, **options
    )


@pytest.fixture(scope="module")
def result() -> paims.SampleResult:
    return run()


class TestErrors:
    def test_are_those_that_are_made(self) -> None:
        results = [run(seed) for seed in range(20)]
        z_mass, z_mean = [], []
        for found in results:
            left = min(found.modes(), key=lambda mode: mode.location[0])
            z_mass.append((left.mass - MASS) / left.mass_error)
            z_mean += list((found.mean - (0.7 * (1 - 2 * MASS))) / found.mean_error)
        # rms of 20 standard normal values: 0.16 about 1
        assert 0.5 < rms(z_mass) < 1.6
        assert 0.5 < rms(z_mean) < 1.6

    def test_of_independent_replicates(self) -> None:
        rng = np.random.default_rng(0)
        replicate = np.repeat(np.arange(400), 50)
        weight = np.full(len(replicate), 1.0 / len(replicate))
        values = rng.standard_normal(len(replicate))
        by_replicates = Weighting(weight, None, replicate).error(values)
        plain = Weighting(weight, None, None).error(values)
        assert plain == pytest.approx(1 / np.sqrt(len(values)), rel=0.02)
        assert by_replicates == pytest.approx(plain, rel=0.15)

    def test_replicates_that_differ_are_seen(self) -> None:
        replicate = np.repeat(np.arange(4), 50)
        weight = np.full(200, 1.0 / 200)
        values = 1.0 * (replicate % 2)
        error = Weighting(weight, None, replicate).error(values)
        assert error == pytest.approx(np.sqrt(1 / 12))  # blocks of mean 0, 1, 0, 1
        assert error > 5 * Weighting(weight, None, None).error(values)

    def test_islands_that_are_apart_count(self) -> None:
        island = np.repeat([0, 1], 500)
        values = island + np.random.default_rng(0).standard_normal(1000) * 0.01
        found = Weighting(np.full(1000, 1e-3), island, None)
        assert found.error(values) == pytest.approx(0.5, rel=0.01)
        assert found.error(values - island) < 0.001

    def test_last_level_has_no_replicates(self) -> None:
        found = run(scheme="paper")
        assert found.replicate is None
        assert np.all(found.mean_error > 0)


class TestAgreement:
    def test_formula(self) -> None:
        island = np.repeat([0, 1], 2)
        found = Weighting(np.full(4, 0.25), island, None)
        values = np.array([0.0, 1.0, 1.0, 2.0])  # means 0.5 and 1.5, variance 0.5
        assert found.r_hat(values) == pytest.approx(np.sqrt(2.0))
        assert found.r_hat(np.zeros(4)) == 1.0

    def test_of_a_good_run(self, result: paims.SampleResult) -> None:
        assert 1.0 <= result.island_agreement < 1.002

    def test_sees_means(self, result: paims.SampleResult) -> None:
        assert result.island is not None
        moved = replace(result, draws=result.draws + 0.3 * result.island[:, None])
        assert moved.island_agreement > 1.01

    def test_sees_masses_that_the_means_hide(self) -> None:
        rng = np.random.default_rng(0)
        island = np.repeat([0, 1], 3000)
        # Islands have the middle mode or the outer two more often: the same means.
        middle = rng.random(6000) < np.where(island == 0, 0.3, 0.6)
        centre = np.where(middle, 0.0, rng.choice([-6.0, 6.0], 6000))
        draws = centre[:, None] + rng.standard_normal((6000, 1)) * 0.3
        log_pi = -0.5 * ((draws - centre[:, None]) ** 2)[:, 0] / 0.09
        found = replace(
            run(), draws=draws, log_density=log_pi, weights=np.full(6000, 1 / 6000), names=("x",),
            island=island, replicate=None,
        )  # fmt: skip
        assert found._weighting.r_hat(draws[:, 0]) < 1.002
        assert found.island_agreement > 1.01

    def test_one_island_has_none(self) -> None:
        assert np.isnan(run(scheme="paper").island_agreement)


def outcome(result: paims.SampleResult, what: str) -> Check:
    (found,) = [check for check in result.checks if check.what.startswith(what)]
    return found


class TestChecks:
    def test_of_a_good_run(self, result: paims.SampleResult) -> None:
        assert all(check.passed for check in result.checks)
        assert len(result.checks) == 6

    @pytest.mark.parametrize(
        ("changes", "what", "words"),
        [
            ({"pareto_k": 0.63}, "tail", "Pareto k = 0.63, not below 0.5"),
            ({"wanted_size": 1e6}, "effective size", "of 1000000 aimed at, when"),
            ({"island_gap": (0.9, 0.01)}, "log evidences", "0.900 apart where about 0.010"),
        ],
    )
    def test_what_fails(
        self, result: paims.SampleResult, changes: dict[str, Any], what: str, words: str
    ) -> None:
        changed = replace(result, **changes)
        check = outcome(changed, what)
        assert check.passed is False
        assert words in check.outcome
        text = changed.summary()
        assert f"NOT OK  {check.what}" in text
        assert "result.rerun(n_samples=1600)" in text

    def test_what_could_not_be_checked(self) -> None:
        found = run(scheme="paper")
        unknown = {check.what for check in found.checks if check.passed is None}
        assert len(unknown) == 5
        assert "not made" in outcome(found, "search").outcome
        assert "no two islands" in outcome(found, "means and masses").outcome

    def test_the_search_says_what_it_may_have_missed(self, result: paims.SampleResult) -> None:
        assert result.search is not None
        check = outcome(result, "search")
        assert f"{result.search.n_screened} points screened" in check.outcome
        assert f"less than about {3 / result.search.n_screened:.1g} of" in check.outcome

    def test_a_run_that_was_stopped(self) -> None:
        with pytest.warns(paims.SamplingWarning, match="ended before its goal"):
            found = run(max_levels=1)
        assert outcome(found, "the goal").passed is False
        assert "let the run go on" in found.summary()

    def test_of_an_optimum_are_those_of_its_posterior(self) -> None:
        found = run(goal="optimum")
        assert found.posterior is not None
        assert found.checks[1:] == found.posterior.checks[1:]


def test_summary_has_it_all(result: paims.SampleResult) -> None:
    text = result.summary()
    assert "2 modes:" in text
    for mode in result.modes():
        assert f"mass {mode.mass:.4f} +- {mode.mass_error:.4f} at [" in text
    assert f"R-hat = {result.island_agreement:.4f}" in text
    assert "what to do: nothing" in text
