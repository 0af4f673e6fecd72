"""Each finding as a check: it holds where it should, and fails on a negative control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paims.experiments import Check, _checks
from paims.experiments._grids import GridMode, Moments

A = GridMode(np.array([-2.7, -0.1]), -0.7, 0.3)
B = GridMode(np.array([-1.9, -2.2]), 0.0, 0.7)
SPECK = GridMode(np.array([5.0, 9.3]), -7.0, 0.001)
NEAR_A, NEAR_B = np.array([-2.71, -0.09]), np.array([-1.88, -2.16])
RNG = np.random.default_rng(0)
NORMAL = RNG.standard_normal(2000)
TRUTH = Moments(0.0, np.array([1.0, 2.0]), np.array([0.5, 2.0]), 1e-6, 1000)
QUARTILES = np.array([[-1.9, -0.3, 3.6, 3.1, -3.7], [-1.5, 0.2, 5.3, 4.3, -3.5]])
CORRELATION = np.array([0.06, 0.6, 0.994, 0.988, 0.0])


def modes(found: Any, grid: Any = (A, B, SPECK)) -> Check:
    return _checks.several_modes("x", grid, found, n_expected=2, mass_error=0.05)


def sensitivity(quartiles: Any = QUARTILES, correlation: Any = CORRELATION) -> Check:
    return _checks.insensitive("x", "default", np.asarray(quartiles), np.asarray(correlation))


def replaced(values: Any, index: Any, value: float) -> Any:
    out = np.array(values)
    out[index] = value
    return out


HOLD: dict[str, Callable[[], Check]] = {
    "modes": lambda: modes([(NEAR_A, 0.29), (NEAR_B, 0.71)]),
    "mode in two parts": lambda: modes([(NEAR_A, 0.29), (NEAR_B, 0.4), (NEAR_B + 0.1, 0.31)]),
    "bands": lambda: _checks.in_bands("x", "default", 1.5 * NORMAL, NORMAL),
    "origin": lambda: _checks.removes_mass("x", 1e-4, 2e-3, -4.0),
    "nugget": lambda: _checks.stabilises("x", (0.3, 0.0), (250, 6), 1e-12),
    "temperature 1": lambda: _checks.at_temperature_one(
        "x", "default", TRUTH.mean + 0.01, TRUTH.sd * 1.02, TRUTH, 0.06
    ),
    "sensitivity": sensitivity,
}

FAIL: dict[str, Callable[[], Check]] = {
    "one mode only": lambda: modes([(NEAR_B, 1.0)], grid=(B,)),
    "the sampler misses a mode": lambda: modes([(NEAR_B, 1.0)]),
    "the sampler has wrong masses": lambda: modes([(NEAR_A, 0.5), (NEAR_B, 0.5)]),
    "the sampler's mode lies elsewhere": lambda: modes([(NEAR_A + 0.5, 0.29), (NEAR_B, 0.71)]),
    "bands, the other way round": lambda: _checks.in_bands("x", "default", NORMAL, 1.5 * NORMAL),
    "bands, no difference": lambda: _checks.in_bands("x", "default", NORMAL, NORMAL),
    "origin, the same prior twice": lambda: _checks.removes_mass("x", 2e-3, 2e-3, -4.0),
    "nugget that changes nothing": lambda: _checks.stabilises("x", (0.3, 0.3), (250, 250), 1e-12),
    "nugget that leaves it rough": lambda: _checks.stabilises("x", (0.3, 0.0), (250, 260), 1e-12),
    "surface stable without": lambda: _checks.stabilises("x", (0.0, 0.0), (6, 6), 1e-12),
    "draws off": lambda: _checks.at_temperature_one(
        "x", "default", replaced(TRUTH.mean, 0, 1.1), TRUTH.sd, TRUTH, 0.06
    ),
    "draws too cold": lambda: _checks.at_temperature_one(
        "x", "default", TRUTH.mean, TRUTH.sd / np.sqrt(2.0), TRUTH, 0.06
    ),
    "draws too hot": lambda: _checks.at_temperature_one(
        "x", "default", TRUTH.mean, TRUTH.sd * 1.3, TRUTH, 0.06
    ),
    "sensitive to input 3": lambda: sensitivity(correlation=replaced(CORRELATION, 2, 0.5)),
    "insensitive to input 1": lambda: sensitivity(correlation=replaced(CORRELATION, 0, 0.95)),
    "phi4 narrow": lambda: sensitivity(quartiles=replaced(QUARTILES, (0, 3), 4.2)),
    "phi5 wide": lambda: sensitivity(quartiles=replaced(QUARTILES, (1, 4), -3.0)),
}


@pytest.mark.parametrize("case", HOLD)
def test_holds(case: str) -> None:
    check = HOLD[case]()
    assert check.passed is True
    assert check.finding
    assert check.detail.endswith(".")


@pytest.mark.parametrize("case", FAIL)
def test_negative_control_fails(case: str) -> None:
    assert FAIL[case]().passed is False


def test_details_have_the_numbers() -> None:
    assert "grid 0.300, sampler 0.290" in HOLD["modes"]().detail
    inside = [np.mean(np.abs(k * NORMAL) <= 1.96) for k in (1.5, 1.0)]
    assert f"best point {inside[0]:.1%}, mixture {inside[1]:.1%} of 2000" in HOLD["bands"]().detail
    assert "0.0001 with the reference prior, 0.002 with the flat" in HOLD["origin"]().detail
    assert "30.0% of the grid cannot be computed" in HOLD["nugget"]().detail
    assert "up to 0.020 standard deviations" in HOLD["temperature 1"]().detail
    assert "phi3 1.70, phi4 1.20, phi5 0.20" in HOLD["sensitivity"]().detail
