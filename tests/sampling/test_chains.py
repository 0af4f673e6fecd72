"""Chains of a level: where they start, how long they are, how they take their candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.sampling.kit import TOY, Floats, labelled_markers, points_of, wide_target
from tests.sampling.test_level import PAPER, SCHEME, stepped

from paims.sampling import Scheme, _sweeps
from paims.sampling._level import next_level
from paims.sampling._proposal import MarkerMixture
from paims.sampling._sweeps import _sweep, correlation_of, draw_candidates, islands_in_turn
from paims.sampling._target import Target
from paims.sampling._transition import Kernel, Outcome, Proposed


def kernel_of(mixture: MarkerMixture, target: Target, scheme: Scheme) -> Kernel:
    return Kernel(target, 1.0, (mixture,), scheme.second_stage(2))


class TestChains:
    def test_equal_chains_start_once_from_each_expected_point(self) -> None:
        weight = np.array([0.5, 0.25, 0.25, 0.0])
        index, length = SCHEME.chains(weight, np.random.default_rng(0))
        np.testing.assert_array_equal(np.bincount(index, minlength=4), [2, 1, 1, 0])
        assert np.all(length == 1)

    def test_paper_chains_have_multinomial_lengths(self) -> None:
        weight = np.array([0.7, 0.2, 0.1, 0.0])
        total = np.zeros(4)
        for seed in range(2000):
            index, length = PAPER.chains(weight, np.random.default_rng(seed))
            assert length.sum() == 4
            assert np.all(length > 0)
            total[index] += length
        np.testing.assert_allclose(total / 8000, weight, atol=5 * np.sqrt(0.21 / 8000))

    def test_paper_level_records_every_state_after_a_transition(self) -> None:
        _, states = stepped(2, PAPER)
        assert [len(state.points) for state in states] == [400, 400, 400]
        # a state is recorded after a transition; rejected ones repeat
        assert len(np.unique(states[1].points.theta, axis=0)) < 400

    def test_two_islands_of_unequal_chains_stay_in_order(self) -> None:
        _, states = stepped(2, replace(SCHEME, equal_chains=False))
        for state in states:
            np.testing.assert_array_equal(state.points.island, np.repeat([0, 1], 200))

    def test_sweeps_go_on_until_the_starts_are_forgotten(self) -> None:
        target, states = stepped(2)
        for wanted in (None, 0.7, 2.0):
            scheme = replace(SCHEME, max_correlation=wanted, max_sweeps=4)
            _, info = next_level(states[2], target, scheme)
            if wanted is None:
                assert info.n_sweeps == 4
            elif wanted == 2.0:
                assert info.n_sweeps == 1
            else:
                assert info.correlation < 0.7 or info.n_sweeps == 4

    def test_high_dimension_asks_for_less(self) -> None:
        scheme = replace(SCHEME, max_correlation=0.7)
        assert not scheme.enough(0.75, 2)
        assert not scheme.enough(0.75, 6)
        assert not scheme.enough(0.85, 10)
        assert scheme.enough(0.75, 10)
        assert scheme.enough(0.85, 20)
        assert not scheme.enough(np.inf, 20)
        assert not replace(scheme, max_correlation=None).enough(-1.0, 20)

    def test_correlation_is_the_largest_over_coordinates_and_log_p(self) -> None:
        rng = np.random.default_rng(0)
        a, b = rng.standard_normal((2, 500, 2))
        b[:, 1] = 0.8 * a[:, 1] + 0.6 * b[:, 1]

        def of(x: Floats, log_p: Floats) -> Proposed:
            return Proposed(points_of(x, log_p, log_p), log_p, log_p)

        flat = np.zeros(500)
        found = correlation_of(of(a, flat), of(b, flat))
        assert found == pytest.approx(np.corrcoef(a[:, 1], b[:, 1])[0, 1])
        log_p = rng.standard_normal(500)
        assert correlation_of(of(a, log_p), of(b, log_p)) == pytest.approx(1.0)


class TestSweep:
    """Candidates of all steps are one batch, and every chain takes its own in turn."""

    LENGTHS = np.array([3, 1, 2])

    def islands_in_turn(self) -> Any:
        return islands_in_turn(np.zeros(3, dtype=np.int64), self.LENGTHS)

    def mixture(self) -> MarkerMixture:
        rng = np.random.default_rng(0)
        theta = TOY.sample(30, rng)
        label = (theta[:, 0] > 0.8).astype(np.int64)
        return MarkerMixture.shrinking(
            labelled_markers(theta, TOY.log_density(theta), np.ones(30), label), 0.5
        )

    def test_every_candidate_is_used_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        used: list[Floats] = []

        def step(state: Any, candidate: Any, local: Any, *rest: Any) -> Any:
            used.append(candidate.points.theta)
            no = np.zeros(len(state), dtype=bool)
            return candidate, Outcome(local, ~no, no)

        monkeypatch.setattr(_sweeps, "step", step)
        mixture, target = self.mixture(), wide_target()
        start = Proposed.of(
            target.evaluate(TOY.sample(3, np.random.default_rng(1))), 1.0, (mixture,)
        )
        kernel, rng = kernel_of(mixture, target, PAPER), np.random.default_rng(2)
        candidates = draw_candidates(self.islands_in_turn(), kernel, rng)
        after, _ = _sweep(start, self.LENGTHS, candidates, kernel, rng)
        (batch,) = candidates.batches
        assert [len(theta) for theta in used] == [3, 2, 1]
        np.testing.assert_array_equal(np.concatenate(used), batch.points.theta)
        np.testing.assert_array_equal(after.points.theta, batch.points.theta)
        assert target.counts.n_evaluations == 3 + 6

    def test_chains_go_on_from_their_own_last_state(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def step(old: Any, candidate: Any, local: Any, *rest: Any) -> Any:
            moved = replace(old.points, theta=old.points.theta + np.array([1.0, 0.0]))
            no = np.zeros(len(old), dtype=bool)
            return Proposed(moved, old.log_p, old.log_p_hat), Outcome(local, no, no)

        monkeypatch.setattr(_sweeps, "step", step)
        mixture, target = self.mixture(), wide_target()
        x = np.array([[0.0, 10.0], [0.0, 20.0], [0.0, 30.0]])
        start = Proposed.of(target.evaluate(x), 1.0, (mixture,))
        kernel, rng = kernel_of(mixture, target, PAPER), np.random.default_rng(2)
        candidates = draw_candidates(self.islands_in_turn(), kernel, rng)
        after, _ = _sweep(start, self.LENGTHS, candidates, kernel, rng)
        found = sorted(map(tuple, after.points.theta.tolist()))
        # the start itself is never recorded: every state comes after a transition
        assert found == [
            (1.0, 10.0),
            (1.0, 20.0),
            (1.0, 30.0),
            (2.0, 10.0),
            (2.0, 30.0),
            (3.0, 10.0),
        ]

    def test_local_acceptance_is_the_ratio_to_the_marker(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The share of candidates accepted locally is E min(1, p(xi)/p(theta_j)).
        mixture, target = self.mixture(), wide_target()
        n = 20_000
        start = Proposed.of(
            target.evaluate(TOY.sample(n, np.random.default_rng(1))), 1.0, (mixture,)
        )
        lengths = np.ones(n, dtype=np.int64)
        drawn: list[Any] = []
        right = MarkerMixture.sample

        def sample(self: MarkerMixture, size: int, rng: np.random.Generator) -> Any:
            drawn.append(right(self, size, rng))
            return drawn[-1]

        monkeypatch.setattr(MarkerMixture, "sample", sample)
        kernel, rng = kernel_of(mixture, target, SCHEME), np.random.default_rng(2)
        candidates = draw_candidates(start.points.island, kernel, rng)
        _, (outcome,) = _sweep(start, lengths, candidates, kernel, rng)
        theta, marker = drawn[0]
        ratio = TOY.log_density(theta) - mixture.markers.log_p[marker]
        chance = np.exp(np.minimum(0.0, ratio))
        excess = outcome.locally_accepted - chance
        assert abs(np.mean(excess)) < 5 * np.sqrt(np.mean(chance * (1 - chance)) / n)
        assert np.all(outcome.locally_accepted[ratio >= 0])


class TestScales:
    def test_paper_steps_are_of_one_length(self) -> None:
        scales = PAPER.second_stage(4)(100, np.random.default_rng(0))
        np.testing.assert_allclose(scales, 2.38 / 2)

    def test_default_steps_are_some_of_them_short(self) -> None:
        scales = SCHEME.second_stage(4)(10_000, np.random.default_rng(0))
        assert np.max(scales) <= 2.38 / 2
        assert np.min(scales) >= 2.38 / 2 / 100 * (1 - 1e-9)
        assert np.median(scales) > 0.5 * 2.38 / 2
        assert 0.05 < np.mean(scales < 0.1 * 2.38 / 2) < 0.4
