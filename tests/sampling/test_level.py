"""One level: pure, with its weights, the other island's markers, and what it tells."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.sampling.kit import TOY, Floats, points_of, target_of

import paims
from paims.sampling import Scheme, default_scheme, paper_scheme
from paims.sampling._level import first_state, next_level, renew
from paims.sampling._markers import _described, _markers, marker_mixtures
from paims.sampling._path import log_incremental_weights, log_tempered
from paims.sampling._proposal import Markers
from paims.sampling._recycling import Recycled
from paims.sampling._state import State
from paims.sampling._target import Points, Target

SCHEME = default_scheme(1)
PAPER = paper_scheme(1)


def narrow_target() -> Target:
    """A density that needs several levels from its reference."""
    box = paims.Uniform([-4.0, -4.0], [4.0, 4.0])
    return target_of(lambda x: 10 * TOY.log_density(x), box)


def stepped(n_levels: int, scheme: Scheme = SCHEME, seed: int = 0) -> tuple[Target, list[State]]:
    target = narrow_target()
    states = [first_state(target, 400, seed, scheme)]
    for _ in range(n_levels):
        states.append(next_level(states[-1], target, scheme)[0])
    return target, states


def theta_of(state: State) -> list[set[bytes]]:
    """The points of each island."""
    return [{row.tobytes() for row in state.points.theta[rows]} for rows in state.islands]


class TestFirstState:
    def test_reference_draws_in_two_islands(self) -> None:
        target, (state,) = stepped(0)
        assert state.beta == 0.0
        assert [len(rows) for rows in state.islands] == [200, 200]
        assert target.counts.n_evaluations == 400
        assert state.initial_sd == pytest.approx(np.std(state.points.log_pi))
        assert len(np.unique(state.points.theta, axis=0)) == 400

    def test_odd_numbers_are_rounded_up(self) -> None:
        state = first_state(narrow_target(), 401, 0, SCHEME)
        assert [len(rows) for rows in state.islands] == [201, 201]

    def test_quantile_references_get_an_even_set(self) -> None:
        _, (state,) = stepped(0)
        for rows in state.islands:
            # Sobol': the mean is far closer to the centre than sd/sqrt(n) of independent draws
            mean = state.points.theta[rows].mean(axis=0)
            assert np.max(np.abs(mean)) < 0.5 * 2.31 / np.sqrt(200)


class TestPurity:
    def test_same_state_same_level(self) -> None:
        target, states = stepped(2)
        again, info = next_level(states[1], target, SCHEME)
        np.testing.assert_array_equal(again.points.theta, states[2].points.theta)
        assert again.log_z == states[2].log_z
        assert info.level == 2

    def test_the_state_is_untouched(self) -> None:
        target, states = stepped(1)
        before = states[0].points.theta.copy(), len(states[0].pool)
        next_level(states[0], target, SCHEME)
        np.testing.assert_array_equal(states[0].points.theta, before[0])
        assert len(states[0].pool) == before[1]

    def test_levels_and_seeds_have_streams_of_their_own(self) -> None:
        target, states = stepped(1)
        other, _ = next_level(replace(states[0], seed=1), target, SCHEME)
        later, _ = next_level(replace(states[0], level=1), target, SCHEME)
        for state in (other, later):
            assert not np.array_equal(state.points.theta, states[1].points.theta)


class TestWeights:
    def test_evidence_of_the_path_adds_up(self) -> None:
        target, states = stepped(3)
        for old, new in pairwise(states):
            assert new.beta > old.beta
            for i in range(2):
                log_w = log_incremental_weights(old.points[old.islands[i]], old.beta, new.beta)
                step = np.log(np.mean(np.exp(log_w)))
                assert new.log_z[i] - old.log_z[i] == pytest.approx(step, rel=1e-9)
        _, info = next_level(states[2], target, SCHEME)
        assert info.log_z == states[3].log_z

    def test_zero_density_lowers_the_evidence(self) -> None:
        box = paims.Uniform([-1.0, -1.0], [1.0, 1.0])
        target = target_of(lambda x: np.where(x[:, 0] > 0, np.log(0.25), -np.inf), box)
        state, _ = next_level(first_state(target, 400, 0, SCHEME), target, SCHEME)
        assert state.beta == 1.0
        for log_z in state.log_z:
            assert log_z == pytest.approx(np.log(0.5), abs=0.05)
        assert np.all(np.isfinite(state.points.log_pi))

    def test_rounds_at_temperature_one_leave_the_evidence(self) -> None:
        target, states = stepped(1)
        at_one = replace(states[1], beta=1.0)
        after, info = next_level(at_one, target, SCHEME)
        assert after.beta == 1.0
        assert after.log_z == at_one.log_z
        assert info.effective_size == pytest.approx(400)

    def test_cooling_goes_past_one(self) -> None:
        target, states = stepped(1)
        at_one = replace(states[1], beta=1.0)
        after, info = next_level(at_one, target, SCHEME, cool=True)
        assert after.beta > 1.0
        assert info.temperature == pytest.approx(1 / after.beta)
        assert len(after.pool) == len(at_one.pool)  # candidates beyond 1 are of another density


def marked(
    points: Points, beta: float, weight: Floats, scheme: Scheme, rng: np.random.Generator
) -> Markers:
    return _markers(_described(points, weight, scheme), beta, scheme, rng)


class TestMarkers:
    def weights(self, state: State, beta: float) -> Floats:
        weight = np.exp(log_incremental_weights(state.points, state.beta, beta))
        for rows in state.islands:
            weight[rows] /= weight[rows].sum()
        return weight

    @pytest.mark.parametrize("shrinking", [True, False])
    def test_each_island_uses_those_of_the_other(self, shrinking: bool) -> None:
        _, states = stepped(1)
        scheme = replace(SCHEME, shrinking=shrinking)
        beta = 0.05
        mixtures, _, _ = marker_mixtures(
            states[0], beta, self.weights(states[0], beta), scheme, np.random.default_rng(0)
        )
        owners = theta_of(states[0])
        for i, mixture in enumerate(mixtures):
            rows = {row.tobytes() for row in mixture.markers.theta}
            assert rows <= owners[1 - i]
            assert not rows & owners[i]

    def test_islands_never_exchange_a_point(self) -> None:
        _, states = stepped(3)
        for state in states:
            rows = theta_of(state)
            assert not rows[0] & rows[1]

    def test_duplicates_are_merged_with_their_weight(self) -> None:
        theta = np.repeat(TOY.sample(50, np.random.default_rng(0)), 3, axis=0)
        points = points_of(theta, TOY.log_density(theta), np.zeros(150))
        weight = np.random.default_rng(1).dirichlet(np.ones(150))
        markers = marked(points, 1.0, weight, SCHEME, np.random.default_rng(2))
        assert len(markers.weight) == 50
        for j, row in enumerate(markers.theta):
            same = np.all(theta == row, axis=1)
            assert markers.weight[j] == pytest.approx(weight[same].sum())
        np.testing.assert_allclose(markers.log_p, TOY.log_density(markers.theta))

    def test_log_p_is_that_of_the_new_level(self) -> None:
        _, states = stepped(1)
        weight, rows = self.weights(states[0], 0.02), states[0].islands[0]
        markers = marked(
            states[0].points[rows], 0.02, weight[rows], SCHEME, np.random.default_rng(0)
        )
        target = narrow_target()
        expected = log_tempered(target.evaluate(markers.theta), 0.02)
        np.testing.assert_allclose(markers.log_p, expected)

    def test_thinning_keeps_the_distribution(self) -> None:
        theta = TOY.sample(3000, np.random.default_rng(3))
        points = points_of(theta, TOY.log_density(theta), np.zeros(3000))
        weight = np.random.default_rng(4).dirichlet(np.ones(3000))
        markers = marked(
            points, 1.0, weight, replace(SCHEME, max_markers=500), np.random.default_rng(5)
        )
        assert len(markers.weight) <= 500
        mean = weight @ theta
        error = np.sqrt(weight @ (theta - mean) ** 2 / 500)
        assert np.all(np.abs(markers.weight @ markers.theta - mean) < 5 * error)

    def test_points_without_weight_are_no_markers(self) -> None:
        theta = TOY.sample(60, np.random.default_rng(6))
        points = points_of(theta, TOY.log_density(theta), np.zeros(60))
        weight = np.where(np.arange(60) < 40, 1 / 40, 0.0)
        markers = marked(points, 1.0, weight, SCHEME, np.random.default_rng(0))
        assert len(markers.weight) == 40

    @pytest.mark.parametrize(("least", "expected"), [(0.05, 0.05 / 1.04), (0.0, 0.01)])
    def test_a_small_cluster_keeps_its_candidates(self, least: float, expected: float) -> None:
        rng = np.random.default_rng(7)
        far = np.arange(2000) < 20
        theta = rng.standard_normal((2000, 2)) + np.where(far, 20.0, 0.0)[:, None]
        points = points_of(theta, np.zeros(2000), np.zeros(2000))
        scheme = replace(SCHEME, least_share=least)
        markers = marked(points, 1.0, np.full(2000, 1 / 2000), scheme, rng)
        share = markers.weight[markers.theta[:, 0] > 10.0].sum()
        # Thinning to 1000 markers leaves a whole number of them.
        assert share == pytest.approx(expected, abs=2 / 1000)

    def test_some_markers_have_wider_kernels(self) -> None:
        theta = np.random.default_rng(8).standard_normal((600, 4))
        points = points_of(theta, np.zeros(600), np.zeros(600))
        weight = np.full(600, 1 / 600)
        rng = np.random.default_rng(9)
        wide = marked(points, 1.0, weight, replace(SCHEME, wide_share=0.1), rng)
        plain = marked(points, 1.0, weight, replace(SCHEME, wide_share=0.0), rng)
        assert (len(wide.clusters), len(plain.clusters)) == (2, 1)
        np.testing.assert_allclose(wide.clusters.chol[0], plain.clusters.chol[0])
        np.testing.assert_allclose(wide.clusters.chol[1], 2.0 * plain.clusters.chol[0])
        assert wide.weight[wide.label == 1].sum() == pytest.approx(0.1)

    def test_paper_has_one_cluster_and_a_decaying_spread(self) -> None:
        _, states = stepped(2, PAPER)
        spreads = []
        for state in states:
            weights = self.weights(state, state.beta + 0.01)
            (mixture,), _, efficiency = marker_mixtures(
                state, state.beta + 0.01, weights, PAPER, np.random.default_rng()
            )
            assert efficiency == 0.0  # there is always a second stage
            assert len(mixture.markers.clusters) == 1
            assert mixture.retained == 1.0
            spreads.append(mixture.spread)
        np.testing.assert_allclose(spreads, 2.38 / np.sqrt(2) * 0.5 ** np.arange(3))


class TestInfo:
    def test_counts_and_rates(self) -> None:
        target, states = stepped(1)
        before = target.counts.n_evaluations
        after, info = next_level(states[1], target, replace(SCHEME, efficient=1.0))
        assert info.n_evaluations == target.counts.n_evaluations - before
        assert 400 * info.n_sweeps < info.n_evaluations <= 800 * info.n_sweeps
        for rate in (info.local_acceptance, info.global_acceptance, info.second_acceptance):
            assert 0 < rate <= 1
        assert info.effective_size == pytest.approx(SCHEME.effective_share * 400, rel=1e-3)
        assert info.sd_log_density == pytest.approx(np.std(after.points.log_pi))
        assert info.best_log_density == np.max(after.points.log_pi)
        unique = len(np.unique(after.points.theta, axis=0)) / 400
        assert info.unique_share == pytest.approx(unique)
        # candidates of both islands are in the pool, once for each sweep
        assert len(after.pool) == len(states[1].pool) + 2 * info.n_sweeps
        for batch in after.pool[len(states[1].pool) :]:
            assert batch.mixture is not None
            np.testing.assert_allclose(
                batch.log_q, batch.mixture.log_density(batch.points.theta), rtol=1e-9
            )


class TestRenew:
    def recycled(self, island: Floats, weight: Floats) -> Recycled:
        theta = np.arange(2.0 * len(island)).reshape(-1, 2)
        points = Points(theta, np.zeros(len(island)), np.zeros(len(island)), island)
        return Recycled(points, np.log(weight), np.arange(len(island)) % 4)

    def test_half_of_each_island_from_its_own_recycled_points(self) -> None:
        _, states = stepped(1)
        rng = np.random.default_rng(0)
        recycled = self.recycled(rng.integers(2, size=5000), rng.gamma(1.0, size=5000))
        renewed = renew(states[1], recycled)
        for i in range(2):
            old = theta_of(states[1])[i]
            own = {row.tobytes() for row in recycled.points.theta[recycled.points.island == i]}
            rows = [row.tobytes() for row in renewed.points.theta[renewed.islands[i]]]
            assert len(rows) == 200
            assert sum(row in own for row in rows) == 100
            assert sum(row in old for row in rows) == 100

    def test_no_point_takes_over(self) -> None:
        _, states = stepped(1)
        weight = np.full(1000, 1e-3)
        weight[:2] = 1.0  # one point of each island has two thirds of its weight
        recycled = self.recycled(np.arange(1000) % 2, weight)
        renewed = renew(states[1], recycled)
        for i, rows in enumerate(renewed.islands):
            heavy = np.all(renewed.points.theta[rows] == recycled.points.theta[i], axis=1)
            # Of 100 draws: without truncation 67, with weights of sqrt(500) means at most 12.
            assert 10 <= np.count_nonzero(heavy) <= 14

    def test_is_repeatable(self) -> None:
        _, states = stepped(1)
        recycled = self.recycled(np.arange(1000) % 2, np.ones(1000))
        a, b = renew(states[1], recycled), renew(states[1], recycled)
        np.testing.assert_array_equal(a.points.theta, b.points.theta)
