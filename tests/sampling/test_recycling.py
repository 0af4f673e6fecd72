"""Recycling: the balance heuristic by brute force, unbiased evidence, and own kernels left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from tests import targets
from tests.sampling.kit import (
    TOY,
    Floats,
    brute_kernels,
    mean_z,
    mixture_of,
    on_islands,
    points_of,
    reference_of,
    rms,
    target_of,
)

import paims
from paims.sampling import _proposal as proposal
from paims.sampling import default_scheme
from paims.sampling._level import next_level
from paims.sampling._proposal import MarkerMixture
from paims.sampling._recycling import (
    RELIABLE_K,
    Batch,
    Recycled,
    joined_replicates,
    pareto_k,
    recycle,
    replicate_variance,
)
from paims.sampling._state import State
from paims.sampling._target import Points, Target

REFERENCE = paims.Normal([0.0, 0.0], 4.0)
TARGET = target_of(TOY.log_density, REFERENCE)


def reference_batch(
    n: int, rng: np.random.Generator, target: Target = TARGET, island: int = 0
) -> Batch:
    """Independent draws of the reference."""
    points = target.evaluate(target.reference.sample(n, rng), np.full(n, island))
    return Batch(None, points, points.log_m)


def batch_of(
    mixture: MarkerMixture, n: int, rng: np.random.Generator, island: int = 0,
    target: Target = TARGET,
) -> Batch:  # fmt: skip
    theta, _ = mixture.sample(n, rng)
    points = target.evaluate(theta, np.full(n, island))
    return Batch(mixture, points, mixture.log_density(theta))


def fresh_mixture(rng: np.random.Generator, n: int = 60, spread: float = 0.6) -> MarkerMixture:
    theta = TOY.sample(n, rng)
    return mixture_of(theta, TOY.log_density(theta), spread)


class TestBalanceHeuristic:
    def test_weights_by_brute_force(self) -> None:
        rng = np.random.default_rng(0)
        first, second = fresh_mixture(rng), fresh_mixture(rng, spread=1.0)
        pool = (
            reference_batch(100, rng),
            batch_of(first, 80, rng, 0),
            batch_of(second, 50, rng, 1),
            batch_of(first, 40, rng, 0),  # the same proposal once more
            reference_batch(70, rng, island=1),
        )
        found = recycle(pool)
        own = [0, 1, 3, 2, 4]  # each island against its own proposals, and half of the evidence
        x = np.concatenate([pool[i].points.theta for i in own])
        island = np.repeat([0, 1], [220, 120])
        log_q = np.column_stack(
            [
                np.log(np.where(island == 0, 100, 70)) + REFERENCE.log_density(x),
                np.log(120) + logsumexp(brute_kernels(first, x), axis=1),
                np.log(50) + logsumexp(brute_kernels(second, x), axis=1),
            ]
        )
        log_q[island == 1, 1] = log_q[island == 0, 2] = -np.inf
        expected = TOY.log_density(x) - logsumexp(log_q, axis=1) - np.log(2)
        np.testing.assert_array_equal(found.points.theta, x)
        np.testing.assert_allclose(found.log_weight, expected, rtol=1e-9)
        assert found.log_evidence == pytest.approx(logsumexp(expected))
        np.testing.assert_array_equal(found.points.island, island)
        w = np.exp(expected - expected.max())
        assert found.effective_size == pytest.approx(w.sum() ** 2 / np.sum(w**2))

    def test_evidence_is_unbiased(self) -> None:
        # Fixed proposals: the mean of the estimate is exactly 1.
        rng = np.random.default_rng(1)
        mixture = fresh_mixture(rng)
        estimates = []
        for _ in range(100):
            pool = (reference_batch(50, rng), batch_of(mixture, 50, rng))
            estimates.append(np.exp(recycle(pool).log_evidence))
        assert abs(mean_z(np.array(estimates), 1.0)) < 5
        assert np.std(estimates) < 0.15

    @pytest.mark.parametrize("drawn", ["independent", "sobol"])
    def test_the_error_of_the_blocks_is_that_of_repetitions(
        self, drawn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if drawn == "independent":
            monkeypatch.setattr(proposal, "sobol", lambda n, n_dims, rng: rng.random((n, n_dims)))
        rng = np.random.default_rng(7)
        mixture = fresh_mixture(rng)
        samples = [
            recycle((reference_batch(100, rng), batch_of(mixture, 100, rng))) for _ in range(300)
        ]
        seen = float(np.std([np.exp(one.log_evidence) for one in samples]))
        reported = rms(
            [
                np.exp(one.log_evidence) * np.sqrt(replicate_variance(one.weight, one.replicate))
                for one in samples
            ]
        )
        # 300 repetitions know a standard deviation to 4 %.
        assert 0.85 * reported < seen < 1.15 * reported
        assert not 0.85 * (0.5 * reported) < seen < 1.15 * (0.5 * reported)

    def test_a_heavy_tail_adds_to_the_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(8)
        pool = (reference_batch(400, rng), batch_of(fresh_mixture(rng), 400, rng))
        errors = []
        for k in (-0.3, 0.0, 0.5):
            monkeypatch.setattr(Recycled, "pareto_k", k)
            errors.append(recycle(pool).log_evidence_error)
        assert errors[0] == errors[1]
        assert errors[2] == pytest.approx(2 * errors[0])

    def test_points_of_zero_density_count_as_drawn(self) -> None:
        # Half of the plane is zero: evidence one half, and those points are not in the sample.
        def half(x: Floats) -> Floats:
            return np.where(x[:, 0] > 0.0, REFERENCE.log_density(x), -np.inf)

        target = target_of(half, REFERENCE)
        rng = np.random.default_rng(2)
        theta = np.abs(REFERENCE.sample(100, rng))
        mixture = mixture_of(theta, half(theta), 0.8, clustered=False)
        pool = (
            reference_batch(2000, rng, target),
            batch_of(mixture, 2000, rng, target=target),
        )
        found = recycle(pool)
        assert len(found.points) < 3500
        assert np.all(found.points.theta[:, 0] > 0)
        assert found.log_evidence == pytest.approx(np.log(0.5), abs=0.05)

    def test_the_answer_is_a_function_of_the_pool(self) -> None:
        """What was asked before, and what is kept of it, changes nothing."""
        rng = np.random.default_rng(3)
        first, second = fresh_mixture(rng), fresh_mixture(rng)
        pool = (
            reference_batch(60, rng),
            batch_of(first, 50, rng),
            batch_of(second, 50, rng),
            batch_of(second, 20, rng),
        )
        whole = recycle(pool).log_weight
        assert all(batch.other_log_q for batch in pool)
        for batch in pool:
            batch.other_log_q.clear()
        for stop in range(1, 5):
            recycle(pool[:stop])
        np.testing.assert_array_equal(recycle(pool).log_weight, whole)
        for batch in pool[1:3]:
            batch.other_log_q.clear()
        np.testing.assert_array_equal(recycle(pool).log_weight, whole)


class TestReplicates:
    """The variance of a sum from four blocks of each proposal."""

    def independent(self, halved: bool) -> float:
        """Squared error of sums of independent values, relative to what is reported of it."""
        rng = np.random.default_rng(0)
        replicate = np.concatenate([np.arange(200) % 4, 4 + np.arange(100) % 4])
        errors, reported = [], []
        for _ in range(400):
            values = rng.gamma(np.repeat([2.0, 5.0], [200, 100]))
            errors.append(values.sum() - 900.0)
            reported.append(replicate_variance(values, replicate))
        return float(np.mean(np.square(errors)) / np.mean(reported) * (4.0 if halved else 1.0))

    def test_independent_sums(self) -> None:
        # 400 squares of a normal variable: the mean is known to 7 %.
        assert self.independent(halved=False) == pytest.approx(1.0, abs=0.3)
        assert self.independent(halved=True) != pytest.approx(1.0, abs=0.3)

    @pytest.mark.parametrize("edge", [0.3, 0.55])
    def test_quasi_random_sums_of_a_step(self, edge: float) -> None:
        # A discontinuity keeps what is gained by evenness small: nothing is promised beyond that.
        rng = np.random.default_rng(1)
        errors, reported = [], []
        for _ in range(200):
            u = proposal.sobol(240, 3, rng)
            values = (np.sum(u, axis=1) < 3 * edge) / 240.0
            errors.append(values.sum())
            reported.append(replicate_variance(values, np.arange(240) % 4))
        assert 0.5 < np.std(errors) / np.sqrt(np.mean(reported)) < 1.2

    def test_numbers_of_joined_parts_do_not_meet(self) -> None:
        parts = [np.array([0, 1, 2, 3, 5]), np.array([0, 3]), np.array([4, 7])]
        joined = joined_replicates(parts)
        np.testing.assert_array_equal(joined % 4, np.concatenate(parts) % 4)
        groups = joined // 4
        assert len(set(groups[:5]) | set(groups[5:7]) | set(groups[7:])) == 2 + 1 + 1

    def test_points_that_all_count_the_same_have_no_error(self) -> None:
        assert replicate_variance(np.ones(80), np.arange(80) % 4) == 0.0


def test_islands_in_fifteen_dimensions_are_weighed_apart() -> None:
    # Two rounds from exact draws. Candidates of one island are markers of the other's second
    # mixture: against the proposals of both islands together the evidence is too low.
    truth = targets.two_gaussians(15)
    target = target_of(truth.log_density, reference_of(truth))
    scheme = default_scheme(1)
    apart, together = [], []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        first = [reference_batch(750, rng, target, island) for island in range(2)]
        points = on_islands(target, [truth.sample(750, rng) for _ in range(2)])
        state = State(3, 1.0, points, (0.0, 0.0), seed, initial_sd=1.0, pool=tuple(first))
        for _ in range(2):
            state, _ = next_level(state, target, scheme)
        one_island = [
            replace(batch, points=replace(batch.points, island=np.zeros_like(batch.points.island)))
            for batch in state.pool
        ]
        apart.append(recycle(state.pool).log_evidence)
        together.append(recycle([replace(b, other_log_q={}) for b in one_island]).log_evidence)
    assert abs(mean_z(np.array(apart), truth.log_evidence)) < 4
    assert abs(np.mean(apart) - truth.log_evidence) < 0.01
    assert mean_z(np.array(together), truth.log_evidence) < -5


class TestOwnKernels:
    def test_a_marker_is_weighed_without_its_kernel(self) -> None:
        rng = np.random.default_rng(4)
        source = fresh_mixture(rng)
        candidates = batch_of(source, 40, rng)
        chosen = candidates.points.theta[::4]
        later = mixture_of(chosen, TOY.log_density(chosen), 0.3, clustered=False)
        pool = (reference_batch(30, rng), candidates, batch_of(later, 30, rng))
        found = recycle(pool)
        x = found.points.theta
        kernels = brute_kernels(later, x)
        own = np.all(x[:, None] == later.markers.theta, axis=2)
        assert np.count_nonzero(own) == 10
        kernels[own] = -np.inf
        kept = np.where(own.any(axis=1), 1 - own @ later.markers.weight, 1.0)
        log_q = np.column_stack(
            [
                np.log(30) + REFERENCE.log_density(x),
                np.log(40) + logsumexp(brute_kernels(source, x), axis=1),
                np.log(30) + logsumexp(kernels, axis=1) - np.log(kept),
            ]
        )
        expected = TOY.log_density(x) - logsumexp(log_q, axis=1)
        np.testing.assert_allclose(found.log_weight, expected, rtol=1e-8)

    def test_else_the_evidence_would_be_too_low(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # Markers taken from independent candidates, a narrow kernel on each: every marker sees its
        # own kernel. Left out, the estimate is right; left in, it is far too low.
        monkeypatch.setattr(proposal, "sobol", lambda n, n_dims, rng: rng.random((n, n_dims)))

        def estimates(seed: int) -> float:
            rng = np.random.default_rng(seed)
            candidates = batch_of(fresh_mixture(rng, 200, 1.0), 100, rng)
            log_w = candidates.log_weight
            w = np.exp(log_w - log_w.max())
            x = candidates.points.theta
            later = mixture_of(x, TOY.log_density(x), 0.3, w)
            pool = (reference_batch(20, rng), candidates, batch_of(later, 100, rng))
            return float(np.exp(recycle(pool).log_evidence))

        right = np.array([estimates(seed) for seed in range(40)])
        monkeypatch.setattr(
            MarkerMixture, "log_density_without", lambda self, marker, log_density: log_density
        )
        wrong = np.array([estimates(seed) for seed in range(40)])
        assert abs(mean_z(right, 1.0)) < 5
        assert mean_z(wrong, 1.0) < -8

    @pytest.mark.parametrize("drawn", ["sobol", "independent"])
    def test_reference_points_that_become_markers(self, drawn: str) -> None:
        # A constant density: the reference's points are the markers of the first mixture. For
        # both kinds of reference the bias is within the error that the run reports.
        box = paims.Uniform([-2.0, -2.0], [2.0, 2.0])

        class Independent:
            def sample(self, n: int, rng: np.random.Generator) -> Floats:
                return box.sample(n, rng)

            def log_density(self, x: Floats) -> Floats:
                return box.log_density(x)

        reference = box if drawn == "sobol" else Independent()
        results = [
            paims.sample(
                lambda x: np.full(len(x), -1.234), reference, 600, random_state=seed, n_jobs=1
            )
            for seed in range(10)
        ]
        errors = np.array([r.log_evidence - (np.log(16.0) - 1.234) for r in results])
        reported = np.mean([r.log_evidence_error for r in results])
        assert abs(np.mean(errors)) < 1.5 * reported


class TestUseless:
    def bad_batch(self, rng: np.random.Generator) -> Batch:
        """Points far from the target, as those of a high temperature are."""
        theta = np.array([7.0, 7.0]) + 0.3 * rng.standard_normal((50, 2))
        return batch_of(mixture_of(theta, TOY.log_density(theta), 1.0, clustered=False), 60, rng)

    def test_batches_that_say_nothing_are_left_out(self) -> None:
        rng = np.random.default_rng(5)
        bad = self.bad_batch(rng)
        assert bad.efficiency < 0.1
        good = batch_of(fresh_mixture(rng, 500), 60, rng)
        assert good.efficiency > 0.3
        again = batch_of(fresh_mixture(rng, 500), 60, rng)
        found = recycle((reference_batch(100, rng), bad, good, again))
        assert len(found.points) == 220

    def test_the_last_two_stay(self) -> None:
        rng = np.random.default_rng(6)
        pool = (reference_batch(100, rng), self.bad_batch(rng))
        assert len(recycle(pool).points) == 160
        assert len(recycle(pool).points) == 160  # asked once more
        good = batch_of(fresh_mixture(rng, 500), 60, rng)
        assert len(recycle((*pool, good)).points) == 220  # whatever was asked before

    def test_efficiency_of_an_empty_or_dead_batch(self) -> None:
        dead = points_of(np.zeros((3, 2)), np.full(3, -np.inf), np.zeros(3))
        assert Batch(None, dead, np.zeros(3)).efficiency == 0.0
        assert Batch(None, dead[:0], np.zeros(0)).efficiency == 0.0


class TestParetoK:
    """The shape of the tail of importance weights, against ArviZ and against known tails."""

    @pytest.mark.parametrize("shape", [-0.4, 0.2, 0.6, 1.2])
    # Numbers whose tail, the smaller of n/5 and 3 sqrt(n), is whole: we round it up, ArviZ down.
    @pytest.mark.parametrize("n", [60, 400, 22_500])
    def test_agrees_with_arviz(self, n: int, shape: float) -> None:
        stats = pytest.importorskip("arviz_stats.base", reason="ArviZ is an extra")
        rng = np.random.default_rng(n)
        u = rng.random(n)
        log_weight = np.log1p(((1 - u) ** -shape - 1) / shape) - 5.0
        # ArviZ takes log likelihoods, whose inverses are the weights.
        _, expected = stats.array_stats.psislw(-log_weight)
        assert pareto_k(log_weight) == pytest.approx(float(expected), abs=1e-8)

    @pytest.mark.parametrize("shape", [0.2, 0.5, 0.9])
    def test_finds_the_shape_of_a_pareto_tail(self, shape: float) -> None:
        # k-hat of 3 sqrt(n) tail points has a standard error of about (1 + k)/sqrt(n_tail).
        n = 100_000
        rng = np.random.default_rng(0)
        log_weight = -shape * np.log(rng.random(n))
        error = (1 + shape) / np.sqrt(3 * np.sqrt(n))
        assert pareto_k(log_weight) == pytest.approx(shape, abs=4 * error)

    def test_only_the_ratio_of_weights_matters(self) -> None:
        log_weight = np.random.default_rng(1).normal(size=1000)
        assert pareto_k(log_weight + 1234.0) == pytest.approx(pareto_k(log_weight), abs=1e-9)
        assert pareto_k(log_weight[::-1]) == pareto_k(log_weight)

    def test_light_and_heavy_tails_fall_on_either_side_of_the_limit(self) -> None:
        rng = np.random.default_rng(2)
        x = rng.standard_normal(5000)
        narrow_target = -0.5 * x**2 / 0.5 + 0.5 * x**2
        wide_target = -0.5 * x**2 / 9.0 + 0.5 * x**2
        assert pareto_k(narrow_target) < RELIABLE_K < pareto_k(wide_target)

    @pytest.mark.parametrize("noise", [0.0, 1e-20, 1e-16, 1e-13])
    def test_equal_weights_are_harmless(self, noise: float) -> None:
        log_weight = noise * np.random.default_rng(3).standard_normal(1000) - 7.0
        assert pareto_k(log_weight) < 0.5

    def test_too_few_points_cannot_tell(self) -> None:
        assert pareto_k(np.array([0.0, -1.0, -2.0, -3.0])) == np.inf

    def test_one_point_with_all_the_weight_is_unreliable(self) -> None:
        log_weight = np.full(1000, -800.0)
        log_weight[0] = 0.0
        assert pareto_k(log_weight) > RELIABLE_K


def recycled_of(weight: Floats) -> Recycled:
    n = len(weight)
    points = Points(np.zeros((n, 1)), np.zeros(n), np.zeros(n), np.arange(n) % 2)
    return Recycled(points, np.log(weight / weight.sum()), np.arange(n) % 4)


def test_a_tail_that_has_ended_is_not_heavy() -> None:
    # A mode that was found late: its points weigh more, and differ among themselves.
    rng = np.random.default_rng(0)
    late = 3.0 * np.minimum(rng.pareto(1.0, 400) + 1.0, 20.0)
    weight = np.concatenate([rng.uniform(0.5, 1.0, 50_000), late])
    sample = recycled_of(weight)
    assert pareto_k(sample.log_weight) > 0.7
    assert sample.pareto_k == 0.55
    # One weight of half the size that truncation would cut, and it has not.
    ceiling = 0.5 * weight.sum() / np.sqrt(len(weight))
    assert recycled_of(np.append(weight, 1.05 * ceiling)).pareto_k > 0.7


def test_a_tail_without_end_stays_heavy() -> None:
    weight = np.random.default_rng(1).pareto(1.0, 20_000) + 1.0
    assert recycled_of(weight).pareto_k > 0.7
