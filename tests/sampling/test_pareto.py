"""The Pareto shape of importance weights, against ArviZ and against known tails."""

from __future__ import annotations

import numpy as np
import pytest

from paims.sampling._pareto import RELIABLE_K, pareto_k


@pytest.mark.parametrize("shape", [-0.4, 0.2, 0.6, 1.2])
@pytest.mark.parametrize("n", [60, 500, 20_000])
def test_agrees_with_arviz(n: int, shape: float) -> None:
    arviz = pytest.importorskip("arviz", reason="ArviZ is an extra")
    rng = np.random.default_rng(n)
    u = rng.random(n)
    log_weight = np.log1p(((1 - u) ** -shape - 1) / shape) - 5.0
    _, expected = arviz.psislw(log_weight.copy())
    assert pareto_k(log_weight) == pytest.approx(float(expected), abs=1e-8)


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.9])
def test_finds_the_shape_of_a_pareto_tail(shape: float) -> None:
    # k-hat of 3 sqrt(n) tail points has a standard error of about (1 + k)/sqrt(n_tail).
    n = 100_000
    rng = np.random.default_rng(0)
    log_weight = -shape * np.log(rng.random(n))
    error = (1 + shape) / np.sqrt(3 * np.sqrt(n))
    assert pareto_k(log_weight) == pytest.approx(shape, abs=4 * error)


def test_only_the_ratio_of_weights_matters() -> None:
    log_weight = np.random.default_rng(1).normal(size=1000)
    assert pareto_k(log_weight + 1234.0) == pytest.approx(pareto_k(log_weight), abs=1e-9)
    assert pareto_k(log_weight[::-1]) == pareto_k(log_weight)


def test_light_and_heavy_tails_fall_on_either_side_of_the_limit() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal(5000)
    narrow_target = -0.5 * x**2 / 0.5 + 0.5 * x**2
    wide_target = -0.5 * x**2 / 9.0 + 0.5 * x**2
    assert pareto_k(narrow_target) < RELIABLE_K < pareto_k(wide_target)


@pytest.mark.parametrize("noise", [0.0, 1e-20, 1e-16, 1e-13])
def test_equal_weights_are_harmless(noise: float) -> None:
    log_weight = noise * np.random.default_rng(3).standard_normal(1000) - 7.0
    assert pareto_k(log_weight) < 0.5


def test_too_few_points_cannot_tell() -> None:
    assert pareto_k(np.array([0.0, -1.0, -2.0, -3.0])) == np.inf


def test_one_point_with_all_the_weight_is_unreliable() -> None:
    log_weight = np.full(1000, -800.0)
    log_weight[0] = 0.0
    assert pareto_k(log_weight) > RELIABLE_K
