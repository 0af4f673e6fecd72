"""Errors of predictions on a large test set, and on many of the paper's size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

from paims._arrays import FloatArray
from paims.experiments._fits import Fit
from paims.experiments._outcome import Settings
from paims.simulators import Simulator

#: Points of the paper's test sets, which are not published.
N_PAPER_TESTS = 25


@dataclass(frozen=True, eq=False)
class TestSets:
    """Inputs that no emulator has seen, with their outputs.

    Attributes
    ----------
    X, y : (n_tests, p) and (n_tests,) ndarray
        Sobol' points.
    X_small, y_small : (n_designs, 25, p) and (n_designs, 25) ndarray
        Latin hypercubes.
    """

    __test__ = False

    X: FloatArray
    y: FloatArray
    X_small: FloatArray
    y_small: FloatArray


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Errors of one ensemble on the test sets.

    Attributes
    ----------
    rmse : float
        On the large set.
    rmse_small : (n_designs,) ndarray
        On each small one.
    residuals : (n_tests,) ndarray
        Standardised (the paper's equation residuals), on the large set.
    mean : (n_tests,) ndarray
        Predictive means there.
    """

    rmse: float
    rmse_small: FloatArray
    residuals: FloatArray
    mean: FloatArray

    def below(self, figure: float) -> int:
        """How many of the small sets have a smaller error than a figure."""
        return int(np.sum(self.rmse_small < figure))


def make_tests(simulator: Simulator, settings: Settings) -> TestSets:
    """Draw the test sets of a simulator on the unit cube."""
    p = simulator.n_inputs
    n_bits = max(1, int(np.ceil(np.log2(settings.n_tests))))
    X = qmc.Sobol(p, scramble=False).random_base2(n_bits)[: settings.n_tests]
    seeds = np.random.SeedSequence(settings.seed).spawn(settings.n_designs)
    small = np.array(
        [simulator.design(N_PAPER_TESTS, np.random.default_rng(seed)) for seed in seeds]
    )
    y_small = simulator(small.reshape(-1, p)).reshape(settings.n_designs, N_PAPER_TESTS)
    return TestSets(X, simulator(X), small, y_small)


def accuracy(fit: Fit, which: str, tests: TestSets) -> Accuracy:
    """Errors of one of a fit's ensembles ("best", "posterior" or "optimum")."""
    mean, std = fit.moments(tests.X, which)
    flat = tests.X_small.reshape(-1, tests.X.shape[1])
    small = fit.moments(flat, which)[0].reshape(tests.y_small.shape)
    return Accuracy(
        rmse=float(np.sqrt(np.mean((tests.y - mean) ** 2))),
        rmse_small=np.sqrt(np.mean((tests.y_small - small) ** 2, axis=1)),
        residuals=(tests.y - mean) / std,
        mean=mean,
    )
