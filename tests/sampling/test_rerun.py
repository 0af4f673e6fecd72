"""Going on from a finished run with more points."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.sampling.kit import Floats, mean_z

import paims
from paims.sampling import _rerun

WIDTH = 0.1
LOG_EVIDENCE = np.log(2 * np.pi * WIDTH**2)
BOX = paims.Uniform([-2.0, -2.0], [2.0, 2.0])


def log_density(x: Floats) -> Floats:
    left, right = (-0.5 * np.sum((x - c) ** 2, axis=1) / WIDTH**2 for c in (-0.5, 0.5))
    return np.logaddexp(left + np.log(0.3), right + np.log(0.7))


def run(seed: int = 0, **options: Any) -> paims.SampleResult:
    return paims.sample(log_density, BOX, 400, random_state=seed, **options)


@pytest.fixture(scope="module")
def first() -> paims.SampleResult:
    return run()


@pytest.fixture(scope="module")
def both(first: paims.SampleResult) -> paims.SampleResult:
    return first.rerun(1600, random_state=1)


def test_old_and_new_draws_are_joined(first: paims.SampleResult, both: paims.SampleResult) -> None:
    n = len(first.draws)
    np.testing.assert_array_equal(both.draws[:n], first.draws)
    assert len(both.draws) > 3 * n
    assert both.weights.sum() == pytest.approx(1.0)
    assert both.effective_size > 3 * first.effective_size
    assert both.n_evaluations > first.n_evaluations + 1600
    assert len(both.levels) > len(first.levels)
    assert both.status.name == "converged"
    np.testing.assert_allclose(both.log_density, log_density(both.draws))


def test_shares_follow_the_effective_sizes(
    first: paims.SampleResult, both: paims.SampleResult
) -> None:
    n = len(first.draws)
    new = both.weights[n:] / both.weights[n:].sum()
    sizes = first.effective_size, 1.0 / np.sum(new**2)
    share = both.weights[:n].sum()
    assert share == pytest.approx(sizes[0] / sum(sizes), abs=0.01)  # evidences agree to a percent


def test_replicates_of_the_two_runs_do_not_meet(
    first: paims.SampleResult, both: paims.SampleResult
) -> None:
    n = len(first.draws)
    assert both.replicate is not None
    assert set(both.replicate[:n]).isdisjoint(both.replicate[n:])


def test_is_unbiased() -> None:
    results = [run(seed).rerun(800, random_state=seed) for seed in range(12)]
    masses = np.array([r.weights[r.draws[:, 0] < 0].sum() for r in results])
    assert abs(mean_z(masses, 0.3)) < 4
    assert abs(mean_z(np.array([r.log_evidence for r in results]), LOG_EVIDENCE)) < 4
    assert np.std(masses) < 0.01


def test_same_state_same_draws_and_any_executor(first: paims.SampleResult) -> None:
    here = first.rerun(400, random_state=3)
    with ThreadPoolExecutor(2) as pool:
        there = first.rerun(400, random_state=3, executor=pool)
    np.testing.assert_array_equal(here.draws, there.draws)
    assert not np.array_equal(here.draws, first.rerun(400, random_state=4).draws)


def test_twice_as_many_by_default(first: paims.SampleResult) -> None:
    assert first.rerun(random_state=0).n_samples == 800


def test_again_and_again(both: paims.SampleResult) -> None:
    third = both.rerun(400, random_state=5)
    assert third.effective_size > both.effective_size
    assert len(third.draws) > len(both.draws)


def test_derived_names_and_priors_stay() -> None:
    prior = {"a": stats.uniform(-2, 4), "phi": stats.uniform(-2, 4)}
    old = paims.sample(
        log_likelihood=log_density, prior=prior, n_samples=400, random_state=0,
        periodic=["phi"], derived=lambda x: {"sum": x.sum(axis=1)},
    )  # fmt: skip
    new = old.rerun(400, random_state=1)
    assert new.names == ("a", "phi")
    np.testing.assert_allclose(new.derived["sum"], new.draws.sum(axis=1))
    np.testing.assert_allclose(new.log_likelihood, log_density(new.draws))
    expected = LOG_EVIDENCE - np.log(16)
    assert abs(new.log_evidence - expected) < 5 * new.log_evidence_error


def test_a_limit_that_comes_too_soon_leaves_the_old_draws(first: paims.SampleResult) -> None:
    with pytest.warns(paims.SamplingWarning):
        short = first.rerun(400, random_state=1, max_evaluations=500)
    np.testing.assert_array_equal(short.draws, first.draws)
    assert short.log_evidence == first.log_evidence
    assert short.status.name == "stopped"


def test_runs_that_disagree_say_so(first: paims.SampleResult) -> None:
    wrong = replace(first, log_evidence=first.log_evidence + 0.5)
    with pytest.warns(paims.SamplingWarning, match=r"disagrees with the one before.*0\.5") as told:
        joined = _rerun._joined(wrong, run(7))
    assert joined.log_evidence_error > 0.2
    assert str(told[0].message) in joined.warnings


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda: pickle.loads(pickle.dumps(run())), "rerun needs the density.*from a file"),
        (lambda: run(goal="optimum"), r"Use result\.posterior\.rerun"),
        (lambda: run(scheme="paper"), "rerun joins recycled samples"),
    ],
)
def test_what_cannot_go_on(result: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        result().rerun()


def test_bad_numbers_are_refused(first: paims.SampleResult) -> None:
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 60"):
        first.rerun(3)
    with pytest.raises(ValueError, match="max_seconds must be positive"):
        first.rerun(400, max_seconds=-1.0)


def test_the_posterior_of_an_optimum_can_go_on() -> None:
    found = run(goal="optimum").posterior
    assert found is not None
    assert found.rerun(400, random_state=0).effective_size > found.effective_size
