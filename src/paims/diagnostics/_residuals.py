r"""Standardised residuals, and their quantiles against those of a standard normal.

After Bastos & O'Hagan (2009), "Diagnostics for Gaussian process emulators", section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta, binomtest, norm

from paims._arrays import FloatArray, IntArray
from paims._student import StudentMixtures
from paims.diagnostics._prediction import Prediction, paired

__all__ = ["QuantileQuantile", "Residuals", "quantile_quantile", "standardised_residuals"]


@dataclass(frozen=True, eq=False)
class Residuals:
    r"""Standardised residuals of k predictions.

    Attributes
    ----------
    observed, mean, std : (k,) ndarray
        Output, predictive mean and predictive standard deviation.
    scores : (k,) ndarray
        Normal scores :math:`\Phi^{-1}(F_i(y_i))`: (observed - mean) / std for a normal prediction,
        and standard normal for every right prediction, also for a mixture with heavy tails.
    """

    observed: FloatArray
    mean: FloatArray
    std: FloatArray
    scores: FloatArray

    def in_units(self, exponent: int) -> Residuals:
        """Those of outputs that are 2^exponent times as large."""
        values = (self.observed, self.mean, self.std)
        observed, mean, std = (np.asarray(np.ldexp(value, exponent)) for value in values)
        return Residuals(observed, mean, std, self.scores)

    @property
    def standardised(self) -> FloatArray:
        """(observed - mean) / std, shape ``(k,)``."""
        difference = self.observed - self.mean
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(difference == 0.0, 0.0, difference / self.std)

    @property
    def n_outside(self) -> int:
        r"""How many have \|score\| > 1.96, that is, lie outside their 95 % interval."""
        return int(np.sum(np.abs(self.scores) > norm.isf(0.025)))

    @property
    def p_outside(self) -> float:
        """Two-sided binomial probability of a count so far from k/20, if independent."""
        return float(binomtest(self.n_outside, len(self.scores), 0.05).pvalue)

    @property
    def p_largest(self) -> float:
        r"""Probability that the largest \|score\| of k independent ones is as large as it was."""
        p_single = 2.0 * norm.sf(np.abs(self.scores).max())
        if p_single >= 1.0:
            return 1.0
        return float(-np.expm1(len(self.scores) * np.log1p(-p_single)))

    @property
    def worst(self) -> int:
        r"""Position of the largest \|score\|."""
        return int(np.argmax(np.abs(self.scores)))

    @property
    def passed(self) -> bool:
        """Whether neither probability is below 0.01."""
        return min(self.p_outside, self.p_largest) >= 0.01

    @property
    def on_the_safe_side(self) -> bool:
        """Whether errors are no larger than announced."""
        return self.n_outside <= 0.05 * len(self.scores)

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        k = len(self.scores)
        text = (
            f"{self.n_outside} of {k} residuals lie outside +-1.96, about {k / 20.0:.3g} should; "
            f"the largest is {self.scores[self.worst]:.2f} (output {self.worst}). "
        )
        if self.passed:
            return text + "Single errors are of the size that the emulator says."
        if self.p_outside < 0.01 and self.n_outside < k / 20.0:
            return text + "Errors are smaller than announced: the emulator is too cautious."
        if self.p_outside < 0.01:
            return text + (
                "Errors are larger than announced: the emulator is too sure of itself. Try a "
                "rougher kernel, estimate the nugget, or add runs where the residuals are large."
            )
        return text + (
            "That one is hardly possible: check that run, and whether the simulator behaves "
            "differently there (a jump, a change of regime)."
        )


def standardised_residuals(y: Any, prediction: Prediction | StudentMixtures) -> Residuals:
    """Standardised residuals of a prediction.

    Parameters
    ----------
    y : (k,) array_like
        What was observed.
    prediction : Prediction

    Returns
    -------
    Residuals
    """
    y, mixtures = paired(y, prediction)
    return Residuals(y, mixtures.mean, mixtures.std, mixtures.normal_scores(y))


@dataclass(frozen=True, eq=False)
class QuantileQuantile:
    """Ordered scores beside the quantiles of a standard normal.

    Attributes
    ----------
    theoretical : (k,) ndarray
        Median of each order statistic.
    ordered : (k,) ndarray
    lower, upper : (k,) ndarray
        Pointwise 95 % band of each order statistic of k independent standard normals.
    order : (k,) ndarray of int
        Which score stands at each place.
    """

    theoretical: FloatArray
    ordered: FloatArray
    lower: FloatArray
    upper: FloatArray
    order: IntArray


def quantile_quantile(scores: FloatArray) -> QuantileQuantile:
    r"""Order normal scores for a quantile-quantile plot.

    The i-th of k uniforms is Beta(i, k + 1 - i), which gives median and band without simulation.
    """
    k = len(scores)
    i = np.arange(1, k + 1)
    lower, middle, upper = (
        norm.ppf(beta.ppf(level, i, k + 1 - i)) for level in (0.025, 0.5, 0.975)
    )
    order = np.argsort(scores, kind="stable")
    return QuantileQuantile(middle, scores[order], lower, upper, order)
