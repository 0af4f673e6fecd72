"""A cheap density leads, the exact one follows: right whatever the lead is."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import paims
from paims.sampling import CheckpointError

Floats = NDArray[np.float64]
N_PARAMS = 3
BOX = paims.Uniform([-2.0] * N_PARAMS, [2.0] * N_PARAMS)


def log_gauss(x: Floats, centre: float, sd: float) -> Floats:
    d = x.shape[1]
    return -0.5 * np.sum(((x - centre) / sd) ** 2, axis=1) - d * np.log(sd * np.sqrt(2 * np.pi))


def two(weights: tuple[float, float], sds: tuple[float, float], shift: float = 0.0) -> Any:
    def log_density(x: Floats) -> Floats:
        parts = [log_gauss(x, c + shift, s) for c, s in zip((-0.6, 0.4), sds, strict=True)]
        return np.logaddexp(*(np.log(w) + part for w, part in zip(weights, parts, strict=True)))

    return log_density


target = two((0.2, 0.8), (0.1, 0.13))
good = two((0.4, 0.6), (0.12, 0.15), 0.02)
LEADS = {
    "good": lambda x: good(x) + 5.0,
    "wide": lambda x: log_gauss(x, 0.0, 0.6),
    "wrong masses": two((0.97, 0.03), (0.1, 0.13)),
    "narrow and elsewhere": lambda x: log_gauss(x, 1.5, 0.1),
    "flat": lambda x: np.zeros(len(x)),
}


def sampled(lead: Any, seed: int = 0, **options: Any) -> paims.SampleResult:
    return paims.sample(target, BOX, 1000, lead=lead, random_state=seed, **options)


def off(result: paims.SampleResult) -> float:
    """How far evidence (0) and masses (0.2 and 0.8) are off, in errors and hundredths."""
    masses = sorted(mode.mass for mode in result.modes())
    evidence = abs(result.log_evidence) / (result.log_evidence_error + 0.003)
    lost = 2 - len(masses)
    return max(evidence, 10.0 * lost, abs(masses[0] - 0.2 + 0.8 * lost) / 0.01)


@pytest.mark.parametrize("name", LEADS)
def test_result_is_exact_whatever_the_lead(name: str) -> None:
    assert off(sampled(LEADS[name])) < 4.0


def test_the_check_sees_a_lead_that_is_taken_for_the_target() -> None:
    wrong = paims.sample(good, BOX, 1000, random_state=0)
    assert off(wrong) > 10.0


def test_a_good_lead_saves_most_of_the_evaluations() -> None:
    alone, led = sampled(None), sampled(LEADS["good"])
    assert led.n_evaluations < 0.6 * alone.n_evaluations
    assert alone.n_lead_evaluations == 0 < led.n_lead_evaluations
    assert set(led.levels["leg"]) == {-1, 0}


def test_leads_come_one_after_the_other() -> None:
    result = sampled([LEADS["wide"], LEADS["good"]])
    assert list(dict.fromkeys(result.levels["leg"])) == [-2, -1, 0]
    assert off(result) < 4.0


def test_what_crosses_over_knows_its_densities() -> None:
    lead = LEADS["good"]
    steps = paims.anneal(target, BOX, 400, lead=lead, random_state=0)
    state = next(level.state for level in steps if level.state.leg == (-1, 0))
    assert state.beta == 0.0
    for batch in state.pool:
        assert batch.mixture is not None
        np.testing.assert_allclose(batch.log_q, batch.mixture.log_density(batch.points.theta))
        points = batch.points[np.isfinite(BOX.log_density(batch.points.theta))]
        np.testing.assert_allclose(points.log_pi, target(points.theta))
        np.testing.assert_allclose(points.log_m, lead(points.theta))
    candidates = np.concatenate([batch.points.theta for batch in state.pool])
    assert {tuple(x) for x in state.points.theta} <= {tuple(x) for x in candidates}


def raising(x: Floats) -> Floats:
    if np.any(x[:, 0] > 0.5):
        raise RuntimeError("out of order")
    return good(x)


@pytest.mark.parametrize(
    ("lead", "word"),
    [
        (lambda x: np.full(len(x), np.nan), "began anew without the lead"),
        (lambda x: np.where(x[:, 0] < 0.0, good(x), -np.inf), "zero where the density is not"),
        (raising, "out of order"),
        (lambda x: np.where(np.abs(x[:, 0] - 1.8) < 0.2, 0.0, -np.inf), "began anew"),
    ],
)
def test_a_lead_that_fails_is_reported_and_the_run_goes_on_exactly(lead: Any, word: str) -> None:
    with pytest.warns(paims.SamplingWarning):
        result = sampled(lead)
    assert any(word in text for text in result.warnings)
    assert off(result) < 4.0


def test_prior_and_likelihood_stay_apart() -> None:
    prior = paims.Normal([0.0] * N_PARAMS, 1.0)

    def led(x: Floats) -> Floats:
        return good(x) - prior.log_density(x)

    result = paims.sample(
        log_likelihood=lambda x: target(x) - prior.log_density(x),
        prior=prior,
        lead=led,
        n_samples=1000,
        random_state=0,
    )
    assert off(result) < 4.0
    assert result.log_prior is not None
    np.testing.assert_allclose(result.log_prior, prior.log_density(result.draws))


def test_executors_do_not_change_a_bit() -> None:
    with ThreadPoolExecutor(3) as pool:
        there = sampled(LEADS["good"], executor=pool)
    here = sampled(LEADS["good"])
    np.testing.assert_array_equal(here.draws, there.draws)
    assert here.log_evidence == there.log_evidence


@pytest.mark.parametrize("back", [1, 2, 3, 5])
def test_a_run_goes_on_from_any_level_of_either_leg(tmp_path: Path, back: int) -> None:
    whole = sampled(LEADS["good"])
    max_levels = len(whole.levels) - back
    path = tmp_path / "run.h5"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", paims.SamplingWarning)
        part = sampled(LEADS["good"], checkpoint=path, max_levels=max_levels)
    on_lead = whole.levels["leg"][max_levels - 1] == -1
    assert any("still followed the lead" in text for text in part.warnings) == on_lead
    resumed = paims.resume(path, target, lead=LEADS["good"])
    np.testing.assert_array_equal(resumed.draws, whole.draws)
    assert resumed.n_evaluations == whole.n_evaluations
    assert resumed.n_lead_evaluations == whole.n_lead_evaluations


def test_a_checkpoint_wants_its_leads(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    with pytest.warns(paims.SamplingWarning):
        sampled(LEADS["good"], checkpoint=path, max_levels=3)
    with pytest.raises(CheckpointError, match="1 lead"):
        paims.resume(path, target)
    with pytest.raises(CheckpointError, match="another density"):
        paims.resume(path, target, lead=LEADS["wide"])


def test_limits_count_the_density() -> None:
    with pytest.warns(paims.SamplingWarning, match="before its goal"):
        result = sampled(LEADS["good"], max_evaluations=1500)
    assert result.n_evaluations <= 1500 < result.n_lead_evaluations


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="lead must be a function"):
        sampled([3.0])
