"""A small fitted emulator that many tests look at."""

from __future__ import annotations

import numpy as np
import pytest

import paims


def wave(X: np.ndarray) -> np.ndarray:
    """A smooth function of two inputs, with an effect of each."""
    return np.sin(3.0 * X[:, 0]) + 0.5 * X[:, 1] ** 2


def design(n: int, seed: int = 0) -> np.ndarray:
    """Random inputs, the first in [0, 1] and the second in [10, 30]."""
    return np.random.default_rng(seed).random((n, 2)) * [1.0, 20.0] + [0.0, 10.0]


@pytest.fixture(scope="session")
def runs() -> tuple[np.ndarray, np.ndarray]:
    X = design(20)
    noise = 0.05 * np.random.default_rng(7).standard_normal(20)
    return X, wave(X * [1.0, 0.05]) + noise


@pytest.fixture(scope="session")
def emulator(runs: tuple[np.ndarray, np.ndarray]) -> paims.Emulator:
    # The uniform prior keeps the nugget of every draw large enough for two ways to compute the
    # same thing to agree to nine digits.
    return paims.Emulator(
        "squared_exponential", nugget_prior="uniform", n_samples=500, random_state=3
    ).fit(*runs)
