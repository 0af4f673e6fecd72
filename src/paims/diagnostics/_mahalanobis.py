r"""Mahalanobis distance :math:`D^2 = (y-\mu)^T V^{-1} (y-\mu)`: all errors in one number.

After Bastos & O'Hagan (2009), section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, f

from paims.diagnostics._whitening import (
    Whitening,
    checked_difference,
    checked_samples,
    variance_dof,
)

__all__ = ["Mahalanobis", "mahalanobis"]


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    r"""Mahalanobis distance of k outputs from their prediction, and what is usual for it.

    Attributes
    ----------
    distance2 : float
        :math:`D^2`.
    rank : int
        Number of outputs that count; for a right prediction E D^2 = rank.
    n_outputs : int
    reference : str
        "scaled F" (one Student-t: :math:`\frac{\nu}{(\nu-2)k} D^2 \sim F_{k,\nu}`, exact),
        "chi-square" (one normal, exact), or "simulation" (a mixture: the distance of
        joint samples of the prediction itself).
    lower, median, upper : float
        2.5 %, 50 % and 97.5 % quantiles of the reference.
    p_value : float
        Probability of a distance at least as large as the observed one.
    """

    distance2: float
    rank: int
    n_outputs: int
    reference: str
    lower: float
    median: float
    upper: float
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether the distance is neither hardly ever so large nor so small (0.5 % each)."""
        return 0.005 <= self.p_value <= 0.995

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        text = (
            f"Squared Mahalanobis distance {self.distance2:.4g}, usual is {self.lower:.4g} to "
            f"{self.upper:.4g} ({self.reference}; p = {self.p_value:.2g}). "
        )
        if self.passed:
            return text + "All outputs together agree with the prediction."
        if self.p_value < 0.5:
            return text + (
                "All outputs together are further off than the emulator thinks possible: its "
                "variance is too small or its correlation too strong. See which errors are large."
            )
        return text + "All outputs together are closer than announced: a cautious emulator."


def mahalanobis(
    y: Any, mean: Any, cov: Any, *, dof: float | None = None, samples: Any = None
) -> Mahalanobis:
    r"""Mahalanobis distance with its reference distribution.

    For one Student-t with :math:`\nu` degrees of freedom :math:`\frac{\nu}{(\nu-2)k} D^2 \sim
    F_{k,\nu}` (Bastos & O'Hagan's equation for :math:`D_{MD}`), for one normal
    :math:`D^2 \sim \chi^2_k`. For a mixture neither holds, and ``samples`` give the reference.

    Parameters are those of :func:`cholesky_errors`.
    """
    difference, cov = checked_difference(y, mean, cov)
    freedom = variance_dof(dof)
    whiten = Whitening(cov)
    distance2 = float(np.sum(whiten(difference) ** 2))
    rank = len(whiten.order)
    levels = [0.025, 0.5, 0.975]
    if samples is not None:
        sampled = np.sum(whiten(checked_samples(samples, mean)) ** 2, axis=1)
        reference = "simulation"
        quantiles = np.quantile(sampled, levels)
        # The observed distance is one more of them: the probability is never 0.
        p_value = (1.0 + np.sum(sampled >= distance2)) / (1.0 + len(sampled))
    elif np.isinf(freedom):
        reference = "chi-square"
        quantiles = chi2.ppf(levels, rank)
        p_value = chi2.sf(distance2, rank)
    else:
        reference = "scaled F"
        scale = rank * (freedom - 2.0) / freedom
        quantiles = scale * f.ppf(levels, rank, freedom)
        p_value = f.sf(distance2 / scale, rank, freedom)
    lower, median, upper = (float(value) for value in quantiles)
    return Mahalanobis(
        distance2, rank, len(difference), reference, lower, median, upper, float(p_value)
    )
