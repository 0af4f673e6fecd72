"""The annealing path, its weights and temperatures, and resampling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from tests.sampling.kit import Floats, points_of

from paims.sampling._path import (
    effective_size,
    log_incremental_weights,
    log_mean_exp,
    log_sum_exp,
    log_sum_exp_rows,
    log_tempered,
    next_beta,
    normalised,
    systematic,
)
from paims.sampling._target import Points


def some_points(n: int = 400, seed: int = 0, n_dead: int = 0) -> Points:
    """Standard normal reference draws with a far narrower target; some of zero density."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((n, 3))
    log_m = -0.5 * np.sum(theta**2, axis=1) - 1.5 * np.log(2 * np.pi)
    log_pi = -0.5 * np.sum((theta - 1.0) ** 2, axis=1) / 0.01
    log_pi[:n_dead] = -np.inf
    return points_of(theta, log_pi, log_m)


class TestTempered:
    @pytest.mark.parametrize("beta", [0.0, 1e-9, 0.3, 1.0])
    def test_geometric_between_reference_and_target(self, beta: float) -> None:
        points = some_points()
        expected = (1 - beta) * points.log_m + beta * points.log_pi
        np.testing.assert_allclose(log_tempered(points, beta), expected, rtol=1e-14)

    @pytest.mark.parametrize("beta", [1.0, 1.5, 40.0])
    def test_target_alone_beyond_one(self, beta: float) -> None:
        points = some_points()
        np.testing.assert_allclose(log_tempered(points, beta), beta * points.log_pi, rtol=1e-14)

    @pytest.mark.parametrize("beta", [0.0, 0.5, 2.0])
    def test_zero_density_is_zero_at_every_temperature(self, beta: float) -> None:
        points = some_points(n_dead=3)
        dead = np.isneginf(log_tempered(points, beta))
        np.testing.assert_array_equal(dead, np.arange(len(points)) < 3)

    def test_a_point_outside_the_reference_is_zero(self) -> None:
        points = points_of(np.zeros((1, 1)), np.array([-np.inf]), np.array([-np.inf]))
        assert log_tempered(points, 0.5)[0] == -np.inf
        assert log_incremental_weights(points, 0.0, 0.5)[0] == -np.inf


class TestIncrementalWeights:
    @pytest.mark.parametrize("step", [(0.0, 0.2), (0.2, 1.0), (0.9, 1.0), (1.0, 3.0)])
    def test_ratio_of_the_two_densities(self, step: tuple[float, float]) -> None:
        points = some_points(n_dead=2)
        log_w = log_incremental_weights(points, *step)
        assert np.all(np.isneginf(log_w[:2]))
        expected = log_tempered(points[2:], step[1]) - log_tempered(points[2:], step[0])
        np.testing.assert_allclose(log_w[2:], expected)

    def test_mean_weight_is_the_ratio_of_normalising_constants(self) -> None:
        # Gaussian m = N(0, 1), pi = exp(-x^2/(2 s^2)): Z_beta is Gaussian at every beta.
        rng = np.random.default_rng(0)
        x = rng.standard_normal((200_000, 1))
        log_m = -0.5 * x[:, 0] ** 2 - 0.5 * np.log(2 * np.pi)
        points = points_of(x, -0.5 * x[:, 0] ** 2 / 0.25, log_m)
        w = np.exp(log_incremental_weights(points, 0.0, 0.3))
        precision = 0.3 / 0.25 + 0.7
        truth = (2 * np.pi) ** (-0.7 / 2) * np.sqrt(2 * np.pi / precision)
        assert np.mean(w) == pytest.approx(truth, abs=5 * np.std(w) / np.sqrt(len(w)))


class TestEffectiveSize:
    def test_closed_forms(self) -> None:
        assert effective_size(np.full(7, -3.0)) == pytest.approx(7.0)
        assert effective_size(np.array([0.0, -np.inf, -np.inf])) == pytest.approx(1.0)
        assert effective_size(np.log([3.0, 1.0])) == pytest.approx(16 / 10)

    def test_no_weight_at_all(self) -> None:
        assert effective_size(np.full(4, -np.inf)) == 0.0
        assert effective_size(np.empty(0)) == 0.0

    @given(st.lists(st.floats(-700, 0), min_size=1, max_size=30), st.floats(-1e6, 1e6))
    @settings(max_examples=50, deadline=None)
    def test_between_one_and_n_whatever_the_scale(self, values: list[float], c: float) -> None:
        log_w = np.array(values)
        size = effective_size(log_w)
        assert 1 - 1e-9 <= size <= len(log_w) + 1e-9
        assert effective_size(log_w + c) == pytest.approx(size, rel=1e-6)


class TestNextBeta:
    @pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
    @pytest.mark.parametrize("beta", [0.0, 0.01])
    def test_solves_for_the_effective_size(self, share: float, beta: float) -> None:
        points = some_points()
        found = next_beta(points, beta, share, 1.0)
        assert beta < found < 1.0
        size = effective_size(log_incremental_weights(points, beta, found))
        assert size == pytest.approx(share * len(points), rel=1e-4)

    def test_share_is_of_the_points_with_a_density(self) -> None:
        points = some_points(n_dead=150)
        found = next_beta(points, 0.0, 0.5, 1.0)
        size = effective_size(log_incremental_weights(points, 0.0, found))
        assert size == pytest.approx(0.5 * 250, rel=1e-4)

    def test_stops_exactly_at_the_ceiling(self) -> None:
        points = some_points()
        # Close to 1 no step can cost half of the points.
        assert next_beta(points, 1 - 1e-6, 0.5, 1.0) == 1.0
        flat = points_of(points.theta, points.log_m.copy(), points.log_m)
        assert next_beta(flat, 0.0, 0.5, 1.0) == 1.0

    def test_stays_at_the_ceiling(self) -> None:
        assert next_beta(some_points(), 1.0, 0.5, 1.0) == 1.0

    def test_goes_on_past_one(self) -> None:
        points = some_points()
        found = next_beta(points, 1.0, 0.5, np.inf)
        assert found > 1.0
        size = effective_size(log_incremental_weights(points, 1.0, found))
        assert size == pytest.approx(200, rel=1e-4)

    def test_equal_densities_can_go_on_for_ever(self) -> None:
        points = some_points()
        flat = points_of(points.theta, np.full(len(points), -1.234), points.log_m)
        found = next_beta(flat, 1.0, 0.5, np.inf)
        assert np.isfinite(found)
        assert found > 1.0

    @pytest.mark.parametrize("scale", [1e-12, 1e9])
    def test_log_densities_of_any_scale(self, scale: float) -> None:
        points = some_points()
        scaled = points_of(points.theta, scale * points.log_pi, points.log_m)
        found = next_beta(scaled, 1.0, 0.5, np.inf)
        size = effective_size(log_incremental_weights(scaled, 1.0, found))
        assert size == pytest.approx(200, rel=1e-3)


class TestNumeric:
    CASES: tuple[list[float], ...] = ([0.0], [-1e4, -1e4 - 1], [-np.inf, 2.0], [700.0, 710.0])

    @pytest.mark.parametrize("values", CASES)
    def test_log_sum_exp_is_scipys(self, values: list[float]) -> None:
        x = np.array(values)
        assert log_sum_exp(x) == pytest.approx(float(logsumexp(x)), rel=1e-14)
        assert log_mean_exp(x) == pytest.approx(float(logsumexp(x) - np.log(len(x))), rel=1e-14)
        np.testing.assert_allclose(
            log_sum_exp_rows(np.stack([x, x + 1])), logsumexp(x) + np.arange(2)
        )

    def test_nothing_is_minus_infinity(self) -> None:
        assert log_sum_exp(np.full(3, -np.inf)) == -np.inf
        assert log_sum_exp(np.empty(0)) == -np.inf
        assert log_sum_exp_rows(np.array([[-np.inf, -np.inf], [0.0, -np.inf]])).tolist() == [
            -np.inf,
            0.0,
        ]

    def test_normalised(self) -> None:
        np.testing.assert_allclose(normalised(np.log([1.0, 3.0]) - 1e5), [0.25, 0.75])


class TestSystematic:
    @given(st.integers(1, 60), st.integers(0, 2**31), st.integers(1, 100))
    @settings(max_examples=60, deadline=None)
    def test_numbers_are_within_one_of_their_expectation(
        self, n_points: int, seed: int, n: int
    ) -> None:
        rng = np.random.default_rng(seed)
        weight = rng.gamma(0.3, size=n_points) + 1e-300
        counts = np.bincount(systematic(weight, n, rng), minlength=n_points)
        assert counts.sum() == n
        assert np.all(np.abs(counts - n * weight / weight.sum()) < 1 + 1e-9)

    def test_unbiased(self) -> None:
        weight = np.array([0.05, 0.15, 0.8])
        rng = np.random.default_rng(0)
        counts: Floats = np.array(
            [np.bincount(systematic(weight, 2, rng), minlength=3) for _ in range(20_000)]
        )
        error = np.std(counts, axis=0) / np.sqrt(len(counts))
        assert np.all(np.abs(counts.mean(axis=0) - 2 * weight) < 5 * error)

    def test_zero_weights_are_never_taken(self) -> None:
        weight = np.array([0.0, 0.5, 0.0, 0.5, 0.0])
        index = np.concatenate(
            [systematic(weight, 10, np.random.default_rng(s)) for s in range(200)]
        )
        assert set(index) == {1, 3}

    def test_equal_weights_take_each_point_once(self) -> None:
        # so a level at fixed temperature starts one chain from every point
        index = systematic(np.full(1000, 1e-3), 1000, np.random.default_rng(3))
        assert len(np.unique(index)) >= 999
