"""To the bit: the same seed gives the same draws, for any number of threads."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests import targets
from tests.sampling.kit import reference_of

import paims
from paims.sampling import SampleResult

TARGET = targets.two_gaussians(3)


def run(random_state: Any = 3, n_jobs: int | None = 1, **options: Any) -> SampleResult:
    return paims.sample(
        TARGET.log_density,
        reference_of(TARGET),
        options.pop("n_samples", 300),
        random_state=random_state,
        n_jobs=n_jobs,
        **options,
    )


def assert_same(a: SampleResult, b: SampleResult) -> None:
    for name in ("draws", "weights", "log_density", "levels"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    for name in ("log_evidence", "log_evidence_error", "pareto_k", "n_evaluations", "status"):
        assert getattr(a, name) == getattr(b, name), name


@pytest.mark.parametrize("goal", ["posterior", "optimum"])
def test_any_number_of_threads(goal: str) -> None:
    one = run(n_jobs=1, goal=goal)
    assert_same(one, run(n_jobs=2, goal=goal))
    assert_same(one, run(n_jobs=None, goal=goal))


def test_any_number_of_threads_with_the_papers_scheme() -> None:
    one, two = (run(n_jobs=n, scheme="paper", n_samples=500) for n in (1, 2))
    assert one.draws.tobytes() == two.draws.tobytes()
    assert one.log_evidence == two.log_evidence


def test_another_seed_is_another_run() -> None:
    a, b = run(3), run(4)
    assert a.log_evidence != b.log_evidence
    rows = [{row.tobytes() for row in result.draws} for result in (a, b)]
    assert not rows[0] & rows[1]


def test_no_seed_is_another_run_each_time() -> None:
    assert run(None).log_evidence != run(None).log_evidence


def test_generators_are_accepted_and_move_on() -> None:
    a = run(np.random.default_rng(5))
    assert_same(a, run(np.random.default_rng(5)))
    rng = np.random.default_rng(5)
    first = run(rng)
    assert_same(a, first)
    assert run(rng).log_evidence != first.log_evidence


def test_random_state_objects_are_accepted() -> None:
    assert_same(run(np.random.RandomState(5)), run(np.random.RandomState(5)))
    assert run(np.random.RandomState(6)).log_evidence != run(np.random.RandomState(5)).log_evidence


def test_integers_of_numpy_are_integers() -> None:
    assert_same(run(3), run(np.int64(3)))


def test_global_random_state_is_untouched_and_not_used() -> None:
    np.random.seed(1)  # noqa: NPY002 - to show that nobody reads it
    random.seed(1)
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    a = run()
    after = np.random.get_state()[1], random.getstate()  # noqa: NPY002
    assert np.array_equal(before[0], after[0])
    assert before[1] == after[1]
    np.random.seed(2)  # noqa: NPY002
    assert_same(a, run())


def test_error_state_of_numpy_is_untouched() -> None:
    before = np.geterr()
    run()
    assert np.geterr() == before


def test_runs_in_threads_do_not_disturb_each_other() -> None:
    alone = [run(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda seed: run(seed, n_jobs=2), range(3)))
    for a, b in zip(alone, together, strict=True):
        assert_same(a, b)


def test_stepping_by_hand_is_the_same_run() -> None:
    result = run()
    levels = list(
        paims.anneal(TARGET.log_density, reference_of(TARGET), 300, random_state=3, n_jobs=1)
    )
    assert levels[0].info is None
    assert levels[0].state.beta == 0.0
    assert levels[-1].state.beta == 1.0
    # the reference's draws and the search for missed modes are no levels
    infos = [level.info for level in levels if level.info is not None]
    assert len(infos) == len(levels) - 2
    for name in ("beta", "spread", "n_evaluations", "global_acceptance"):
        np.testing.assert_array_equal([getattr(i, name) for i in infos], result.levels[name])
    assert levels[-1].state.log_z == result.island_log_evidence
    drawn = {row.tobytes() for batch in levels[-1].state.pool for row in batch.points.theta}
    assert {row.tobytes() for row in result.draws} <= drawn


def test_stepping_towards_the_optimum_is_the_same_run() -> None:
    result = run(goal="optimum")
    *_, last = paims.anneal(
        TARGET.log_density, reference_of(TARGET), 300, goal="optimum", random_state=3, n_jobs=1
    )
    assert last.state.beta == result.levels["beta"][-1]
    np.testing.assert_array_equal(last.state.points.theta, result.draws)
