"""A whole level keeps exact draws exact, and only because no chain sees its own markers.

Many small populations of exact draws make one level at a fixed temperature. The mean change of a
moment over the populations is zero for two islands that use each other's markers. A population
that uses its own shrinks: a chain at a marker sees p_hat inflated there by the kernel that it
stands on, so it leaves the tails too easily.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.sampling.kit import TOY, Floats, mean_z, on_islands, target_of, wide_target

import paims
from paims.sampling import Scheme, default_scheme
from paims.sampling import _level as level
from paims.sampling._level import next_level
from paims.sampling._state import State
from paims.sampling._target import Target

# Chains with both stages; at temperature 1 a recycled sample would take their place.
ONCE = replace(default_scheme(1), max_sweeps=1, max_correlation=None, recycle=False, efficient=1.0)
THRICE = replace(ONCE, max_sweeps=3)
ONE_STAGE = replace(THRICE, efficient=0.0)


def state_at(target: Target, beta: float, draws: list[Floats], seed: int, scheme: Scheme) -> State:
    """Islands of exact draws at an inverse temperature."""
    assert len(draws) == scheme.n_islands
    zeros = (0.0,) * len(draws)
    return State(3, beta, on_islands(target, draws), zeros, seed, initial_sd=1.0, pool=())


def gaussian_target(n_params: int) -> Target:
    return target_of(
        lambda x: -0.5 * np.sum(x**2, axis=1), paims.Normal(np.zeros(n_params), 100.0)
    )


def shrinkage(scheme: Scheme, n_params: int = 6, size: int = 80, replicates: int = 60) -> Floats:
    """Change of the mean square of a coordinate, for each replicate, of exact standard normals."""
    target = gaussian_target(n_params)
    changes = []
    for seed in range(replicates):
        rng = np.random.default_rng(seed)
        draws = [rng.standard_normal((size, n_params)) for _ in range(scheme.n_islands)]
        after, _ = next_level(state_at(target, 1.0, draws, seed, scheme), target, scheme)
        changes.append(np.mean(after.points.theta**2) - np.mean(np.concatenate(draws) ** 2))
    return np.array(changes)


@pytest.mark.parametrize(
    "scheme", [ONCE, THRICE, ONE_STAGE], ids=["once", "three times", "one stage"]
)
def test_two_islands_keep_their_spread(scheme: Scheme) -> None:
    assert abs(mean_z(shrinkage(scheme))) < 5.0


def test_a_population_with_its_own_markers_shrinks() -> None:
    one_island = replace(THRICE, n_islands=1)
    change = shrinkage(one_island)
    assert mean_z(change) < -8.0
    assert np.mean(change) < -0.03


def test_islands_that_see_themselves_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    # The same two islands, each with its own markers: what crossing them is for.
    crossed = level.marker_mixtures

    def own(*arguments: Any) -> Any:
        mixtures, metrics, efficiency = crossed(*arguments)
        return mixtures[::-1], metrics[::-1], efficiency

    monkeypatch.setattr(level, "marker_mixtures", own)
    assert mean_z(shrinkage(THRICE)) < -8.0


@pytest.mark.parametrize("beta", [0.4, 2.5])
def test_tempered_density_is_invariant(beta: float) -> None:
    # Gaussian target and reference: the path is Gaussian, with precisions that add up (beta < 1),
    # or the target's times beta.
    reference_var, var, mean = 4.0, 0.25, np.array([1.5, -1.0])
    target = target_of(
        lambda x: -0.5 * np.sum((x - mean) ** 2, axis=1) / var,
        paims.Normal([0.0, 0.0], reference_var),
    )
    precision = beta / var + max(0.0, 1 - beta) / reference_var
    centre = beta * mean / var / precision
    changes = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        draws = [centre + rng.standard_normal((200, 2)) / np.sqrt(precision) for _ in range(2)]
        state = state_at(target, beta, draws, seed, ONCE)
        after, _ = next_level(state, target, replace(ONCE, effective_share=1 - 1e-9), cool=True)
        x, x0 = after.points.theta - centre, np.concatenate(draws) - centre
        changes.append(np.r_[np.mean(x - x0, axis=0), np.mean(x**2 - x0**2, axis=0)])
    z = [mean_z(column) for column in np.array(changes).T]
    assert np.max(np.abs(z)) < 5.0


def test_modes_keep_their_masses() -> None:
    # Unequal modes of different shape, through clusters, chosen spread and three sweeps.
    target = wide_target()
    changes = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        draws = [TOY.sample(200, rng) for _ in range(2)]
        state = state_at(target, 1.0, draws, seed, THRICE)
        after, info = next_level(state, target, THRICE)
        assert info.n_clusters >= 4
        x, x0 = after.points.theta, np.concatenate(draws)
        log_p, log_p0 = after.points.log_pi, TOY.log_density(x0)
        changes.append(
            [
                np.mean(x[:, 0] > 0.6) - np.mean(x0[:, 0] > 0.6),
                np.mean(log_p) - np.mean(log_p0),
                np.mean(x[:, 0] ** 2) - np.mean(x0[:, 0] ** 2),
            ]
        )
    z = [mean_z(column) for column in np.array(changes).T]
    assert np.max(np.abs(z)) < 5.0
