"""The posterior as a density to sample: where the sampler starts, and where the top is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from paims import gp
from paims.inference import (
    PaperReference,
    density,
    find_best,
    reference,
    sample_posterior,
)
from paims.sampling import Mode, SoftUniform
from paims.sampling._modes import climb

X = np.random.default_rng(0).random((12, 2))
X[0], X[1] = 0.0, 1.0
Y = np.sin(4.0 * X[:, 0]) + X[:, 1]


def test_default_reference_is_that_of_the_design() -> None:
    start = reference(gp.Posterior(X, Y))
    assert isinstance(start, SoftUniform)
    np.testing.assert_allclose(start.lower, [-6, -6, -24])
    np.testing.assert_allclose(start.upper, [10, 10, 2])
    np.testing.assert_allclose(start.width, [1, 1, 1])
    ranges = reference(gp.Posterior(X, Y, "matern52", nugget=1e-8))
    assert isinstance(ranges, SoftUniform)
    np.testing.assert_allclose(ranges.lower, [-3, -3])
    np.testing.assert_allclose(ranges.upper, [5, 5])
    np.testing.assert_allclose(ranges.width, [0.5, 0.5])


def test_reference_follows_the_range_of_the_inputs() -> None:
    wide = reference(gp.Posterior(X * [100.0, 1.0], Y))
    assert isinstance(wide, SoftUniform)
    np.testing.assert_allclose(wide.lower, [-6 + 2 * np.log(100.0), -6, -24])


def test_papers_reference() -> None:
    start = reference(gp.Posterior(X, Y), "paper")
    assert isinstance(start, PaperReference)
    np.testing.assert_allclose([start.lower, start.upper], [[-7, -7], [7, 7]])
    halved = reference(gp.Posterior(X, Y, "matern32"), "paper")
    assert isinstance(halved, PaperReference)
    np.testing.assert_allclose(halved.upper, [3.5, 3.5])
    assert reference(gp.Posterior(X, Y, nugget=0.1), "paper").n_params == 2


@pytest.mark.parametrize("lower", [1e-12, 1e-3])
def test_papers_reference_is_normalised_and_its_quantiles_belong_to_its_density(
    lower: float,
) -> None:
    start = PaperReference([-7.0], [7.0], lower)

    def z_density(z: float) -> float:
        return 14.0 * float(np.exp(start.log_density(np.array([[0.0, z]]))[0]))

    edges = start.quantile(np.array([[0.5, v] for v in (1e-9, 0.2, 0.5, 0.9, 1 - 1e-9)]))[:, 1]
    shares = [quad(z_density, a, b, limit=200)[0] for a, b in pairwise(edges)]
    np.testing.assert_allclose(shares, [0.2, 0.3, 0.4, 0.1], atol=1e-6)
    assert start.log_density(np.array([[7.1, 0.0]]))[0] == -np.inf
    draws = start.sample(4000, np.random.default_rng(0))
    nugget = lower + (1 - lower) / (1 + np.exp(-draws[:, 1]))
    # Beta(1/2, 1/2) has half its mass on either side of 1/2.
    assert abs(np.mean(nugget < 0.5) - 0.5) < 0.05
    assert draws.shape == (4000, 2)


def test_improper_prior_is_bounded_and_a_proper_one_left_alone() -> None:
    proper = density(gp.Posterior(X, Y))
    assert proper.bounds is None
    posterior = gp.Posterior(X, Y, prior="flat")
    bounded = density(posterior)
    u = np.array([[0.0, 1.0, -3.0], [200.0, 1.0, -3.0]])
    raw = posterior(u)
    assert np.isfinite(raw[1])
    assert raw[1] > raw[0] - 100.0
    assert bounded(u)[0] == pytest.approx(raw[0] - 2 * np.log(16.0), abs=0.01)
    assert bounded(u)[1] < raw[1] - 150.0


def test_sampling_is_reproducible() -> None:
    posterior = gp.Posterior(X, Y)
    one, two = (sample_posterior(posterior, 200, random_state=5, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.draws, two.draws)
    assert one.names == ("log_phi_1", "log_phi_2", "z")
    np.testing.assert_array_equal(one.log_density, density(posterior)(one.draws))


def test_best_point_is_the_higher_of_two_peaks_whatever_their_mass() -> None:
    posterior = gp.Posterior(X, Y)
    assert not posterior.has_gradient  # or it would be followed, and not the peaks below
    result = sample_posterior(posterior, 200, random_state=0)
    one = np.ones(3)

    def two_peaks(u: np.ndarray) -> np.ndarray:
        broad = -0.5 * np.sum((u + 2.0) ** 2, axis=1)
        narrow = 3.0 - 0.5 * np.sum((u - 2.0) ** 2, axis=1) / 0.01
        return np.logaddexp(broad, narrow)

    object.__setattr__(result, "density_fn", two_peaks)
    object.__setattr__(result, "log_density", two_peaks(result.draws))
    modes = [
        Mode(-1.7 * one, -0.1, 0.99, 0.01, -2 * one, one),
        Mode(1.9 * one, 1.5, 0.01, 0.01, 2 * one, 0.1 * one),
    ]
    best = find_best(posterior, result, modes)
    np.testing.assert_allclose(best.location, 2.0, atol=1e-4)
    assert best.log_density == pytest.approx(3.0, abs=1e-6)
    assert best.mass == 0.01


def test_climb_by_gradients_reaches_the_top_that_differences_reach() -> None:
    posterior = gp.Posterior(X, Y, prior="jointly_robust")
    result = sample_posterior(posterior, 200, random_state=0)
    modes = result.modes(min_mass=0.0)
    best = find_best(posterior, result, modes)
    slope = posterior.value_and_gradient(best.location[None])[1]
    assert np.max(np.abs(slope)) < 0.05
    [by_differences] = climb([best], result.density_fn)
    np.testing.assert_allclose(by_differences.location, best.location, atol=0.05)
    assert by_differences.log_density == pytest.approx(best.log_density, abs=1e-3)


def test_climb_with_gradients_asks_for_no_differences() -> None:
    start = Mode(np.full(9, 1.5), -5.0, 1.0, 0.0, np.zeros(9), np.ones(9))
    seen: list[int] = []

    def value(u: np.ndarray) -> np.ndarray:
        seen.append(len(u))
        return -0.5 * np.sum(u**2 * np.arange(1.0, 10.0), axis=1)

    [slow] = climb([start], value)
    by_differences = sum(seen)
    seen.clear()
    [fast] = climb([start], value, lambda u: (value(u), -u * np.arange(1.0, 10.0)))
    np.testing.assert_allclose(fast.location, 0.0, atol=1e-4)
    np.testing.assert_allclose(slow.location, 0.0, atol=1e-4)
    assert 10 * sum(seen) < by_differences
