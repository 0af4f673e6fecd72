"""The formulas of the transition: alone, and as detailed balance by definition."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from tests.sampling.kit import (
    TOY,
    Floats,
    as_points,
    brute_kernels,
    labelled_markers,
    mean_z,
    mixture_of,
    points_of,
    wide_target,
)

from paims.sampling import _transition as transition
from paims.sampling._proposal import MarkerMixture
from paims.sampling._transition import (
    Kernel,
    Proposed,
    SecondStage,
    first_stage,
    log1mexp,
    log_alpha_global,
    propose_second,
    second_stage,
)


def proposed(log_p: Any, log_p_hat: Any) -> Proposed:
    log_p = np.atleast_1d(np.asarray(log_p, dtype=float))
    points = points_of(np.zeros((len(log_p), 2)), log_p, np.zeros(len(log_p)))
    return Proposed(points, log_p, np.atleast_1d(np.asarray(log_p_hat, dtype=float)))


@pytest.fixture(scope="module")
def mixture() -> MarkerMixture:
    rng = np.random.default_rng(0)
    theta = TOY.sample(40, rng)
    label = (theta[:, 0] > 0.8).astype(np.int64)
    markers = labelled_markers(theta, TOY.log_density(theta), rng.gamma(1.0, size=40), label)
    return MarkerMixture.shrinking(markers, 0.6)


class TestGlobalAcceptance:
    def test_is_the_ratio_of_importance_weights(self) -> None:
        candidate, state = proposed([-3.0, -1.0], [-2.0, -9.0]), proposed([-1.0, -1.0], [-2.5, -1])
        np.testing.assert_allclose(log_alpha_global(candidate, state), [-2.5, 0.0])

    def test_a_candidate_of_zero_density_is_never_accepted(self) -> None:
        # its p_hat is zero too: the ratio 0/0 must not become an acceptance
        alpha = log_alpha_global(proposed(-np.inf, -np.inf), proposed(-1.0, -2.0))
        assert alpha[0] == -np.inf

    def test_a_state_that_the_mixture_does_not_reach_holds_on(self) -> None:
        alpha = log_alpha_global(proposed(-1.0, -2.0), proposed(-1.0, -np.inf))
        assert alpha[0] == -np.inf

    def test_first_stage_needs_both_acceptances(self) -> None:
        state, candidate = proposed([-1.0] * 4, [-1.0] * 4), proposed([-2.0] * 4, [-1.0] * 4)
        local = np.array([True, True, False, True])
        moved = first_stage(state, candidate, local, np.array([-1.1, -0.9, -5.0, -1.0]))
        np.testing.assert_array_equal(moved, [True, False, False, False])


@pytest.mark.parametrize("x", [-1e-300, -1e-17, -1e-5, -0.69, -0.70, -3.0, -800.0])
def test_log1mexp_to_full_precision(x: float) -> None:
    with mp.workdps(400):
        expected = float(mp.log(1 - mp.exp(mp.mpf(x))))
    np.testing.assert_allclose(log1mexp(np.array([x])), expected, rtol=1e-14)


def test_log1mexp_at_the_ends() -> None:
    np.testing.assert_array_equal(log1mexp(np.array([0.0, -np.inf])), [-np.inf, 0.0])


class TestSecondStage:
    def test_proposal_is_a_step_of_the_drawn_cluster(self, mixture: MarkerMixture) -> None:
        rng = np.random.default_rng(1)
        n = 40_000
        x = np.array([0.9, 0.3])
        state = Proposed.of(as_points(TOY.log_density, np.tile(x, (n, 1))), 1.0, (mixture,))
        clusters = mixture.markers.clusters
        drawn = propose_second(state, (mixture,), lambda size, _: np.full(size, 1.3), rng)
        _, log_rho = clusters.log_responsibilities(x[None])
        share = np.exp(log_rho[0])
        assert share.min() > 0.02
        counts = np.bincount(drawn.cluster, minlength=2)
        z = (counts / n - share) / np.sqrt(share * (1 - share) / n)
        assert np.max(np.abs(z)) < 5
        for r in range(2):
            member = drawn.cluster == r
            np.testing.assert_allclose(drawn.log_rho_here[member], log_rho[0, r])
            step = (drawn.theta[member] - x) @ clusters.inv_chol[r].T / 1.3
            z = [mean_z(step[:, 0]), mean_z(step[:, 1]), mean_z(step[:, 0] * step[:, 1])]
            z += [mean_z(step[:, 0] ** 2, 1.0), mean_z(step[:, 1] ** 2, 1.0)]
            assert np.max(np.abs(z)) < 5

    def test_scales_are_drawn_step_by_step(self, mixture: MarkerMixture) -> None:
        state = Proposed.of(as_points(TOY.log_density, np.zeros((3, 2))), 1.0, (mixture,))
        drawn = propose_second(
            state[np.array([2, 0])],
            (mixture,),
            lambda n, _: np.arange(n, dtype=float),
            np.random.default_rng(0),
        )
        assert np.all(drawn.theta[0] == 0.0)
        assert np.all(drawn.theta[1] != 0.0)

    @pytest.mark.parametrize("local", [True, False])
    def test_acceptance_is_its_formula(self, mixture: MarkerMixture, local: bool) -> None:
        rng = np.random.default_rng(2)
        n = 300
        x, xi, x2 = (
            Proposed.of(as_points(TOY.log_density, TOY.sample(n, rng)), 1.0, (mixture,))
            for _ in range(3)
        )
        clusters = mixture.markers.clusters
        r = rng.integers(2, size=n)
        log_rho = [clusters.log_responsibilities(p.points.theta)[1] for p in (x, x2)]
        here, there = (lr[np.arange(n), r] for lr in log_rho)
        ratio = np.exp(x2.log_p - x.log_p + there - here)
        if local:
            weight = [np.exp(p.log_p - p.log_p_hat) for p in (x, xi, x2)]
            stay, stay2 = (1 - np.minimum(1, weight[1] / w) for w in (weight[0], weight[2]))
            possible = stay > 0  # else the first stage would have moved
            ratio = np.where(possible, ratio * stay2 / np.where(possible, stay, 1.0), np.nan)
        proposal = SecondStage(x2.points.theta, r, here)
        usable = np.isfinite(ratio) & (ratio < 1) & (ratio > 0)
        assert np.count_nonzero(usable) > 50
        for factor, accepted in ((1 - 1e-9, True), (1 + 1e-9, False)):
            log_u = np.log(np.where(usable, ratio * factor, 1.0))
            took = second_stage(x, xi, x2, proposal, np.full(n, local), (mixture,), log_u)
            assert np.all(took[usable] == accepted)

    def test_zero_density_is_never_accepted(self, mixture: MarkerMixture) -> None:
        state = Proposed.of(as_points(TOY.log_density, np.zeros((2, 2))), 1.0, (mixture,))
        first = Proposed(state.points, state.log_p - 1.0, state.log_p_hat)
        dead = Proposed(state.points, np.full(2, -np.inf), np.full(2, -np.inf))
        proposal = SecondStage(state.points.theta, np.zeros(2, int), np.zeros(2))
        for local in (True, False):
            took = second_stage(
                state, first, dead, proposal, np.full(2, local), (mixture,), np.full(2, -1e300)
            )
            assert not np.any(took)


def test_first_stage_is_in_detailed_balance(mixture: MarkerMixture) -> None:
    """The flow between pairs of points, with the density of candidates by its definition.

    p(x) P(x -> dy) with P = p_hat(y) alpha_g(y|x) must be symmetric when p_hat is the density of
    what passes the local acceptance: sum_j w_j q(y|theta_j) min(1, p(y)/p(theta_j)).
    """
    rng = np.random.default_rng(5)
    x, y = TOY.sample(200, rng), TOY.sample(200, rng)

    def passed(z: Floats) -> Floats:
        local = np.minimum(0.0, TOY.log_density(z)[:, None] - mixture.markers.log_p)
        return np.sum(np.exp(brute_kernels(mixture, z) + local), axis=1)

    px, py = (np.exp(TOY.log_density(z)) for z in (x, y))
    state = Proposed.of(as_points(TOY.log_density, x), 1.0, (mixture,))
    candidate = Proposed.of(as_points(TOY.log_density, y), 1.0, (mixture,))
    forth = px * passed(y) * np.exp(log_alpha_global(candidate, state))
    back = py * passed(x) * np.exp(log_alpha_global(state, candidate))
    np.testing.assert_allclose(forth, back, rtol=1e-9)


def test_step_writes_what_the_outcome_says(mixture: MarkerMixture) -> None:
    rng = np.random.default_rng(6)
    target = wide_target()
    n = 500
    theta = TOY.sample(60, rng)
    other = mixture_of(theta, TOY.log_density(theta), 0.9)
    mixtures = (mixture, other)
    island = np.repeat([0, 1], [400, 100])
    state = Proposed.of(target.evaluate(TOY.sample(n, rng), island), 1.0, mixtures)
    drawn = np.concatenate([mixture.sample(400, rng)[0], other.sample(100, rng)[0]])
    candidate = Proposed.of(target.evaluate(drawn, island), 1.0, mixtures)
    local = rng.random(n) < 0.6
    before = target.counts.n_evaluations
    kernel = Kernel(target, 1.0, mixtures, lambda size, _: np.full(size, 0.7))
    after, outcome = transition.step(state, candidate, local, kernel, rng)
    theta = after.points.theta
    moved, second = outcome.globally_accepted, outcome.second_accepted
    np.testing.assert_array_equal(theta[moved], candidate.points.theta[moved])
    stayed = ~moved & ~second
    np.testing.assert_array_equal(theta[stayed], state.points.theta[stayed])
    assert np.all(np.any(theta[second] != state.points.theta[second], axis=1))
    assert min(moved.sum(), second.sum(), stayed.sum()) > 20
    # what is known of the points has moved with them, each in the mixture of its own island
    np.testing.assert_array_equal(after.points.island, island)
    fresh = Proposed.of(target.bare().evaluate(theta, island), 1.0, mixtures)
    np.testing.assert_allclose(after.log_p, fresh.log_p)
    np.testing.assert_allclose(after.log_p_hat, fresh.log_p_hat)
    np.testing.assert_allclose(after.points.log_m, fresh.points.log_m)
    # the second stages of both islands were evaluated, once for each chain that did not move
    assert target.counts.n_evaluations - before == np.count_nonzero(~moved)
    # the states that went in are untouched
    np.testing.assert_allclose(state.log_p, TOY.log_density(state.points.theta))


def test_proposed_looks_up_mixture_density_with_local_acceptance(mixture: MarkerMixture) -> None:
    x = np.array([[0.0, 0.0], [1.5, 0.5]])
    found = Proposed.of(as_points(TOY.log_density, x), 1.0, (mixture,))
    local = np.minimum(0.0, TOY.log_density(x)[:, None] - mixture.markers.log_p)
    expected = np.log(np.sum(np.exp(brute_kernels(mixture, x) + local), axis=1))
    np.testing.assert_allclose(found.log_p_hat, expected)


def test_points_are_looked_up_in_the_mixture_of_their_island(mixture: MarkerMixture) -> None:
    theta = TOY.sample(30, np.random.default_rng(7))
    other = mixture_of(theta, TOY.log_density(theta), 0.9)
    island = np.array([1, 0, 1])
    points = wide_target().evaluate(theta[:3], island)
    found = Proposed.of(points, 1.0, (mixture, other))
    for i, own in enumerate((mixture, other)):
        alone = Proposed.of(as_points(TOY.log_density, theta[:3]), 1.0, (own,))
        np.testing.assert_array_equal(found.log_p_hat[island == i], alone.log_p_hat[island == i])
