"""Pareto smoothed importance sampling (Vehtari et al. 2024): tame the largest weights."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from paims._arrays import FloatArray
from paims.sampling._recycling import pareto_k


def smoothed_log_weights(
    log_weight: FloatArray, smooth_above: float = 0.5
) -> tuple[FloatArray, float]:
    """Normalised log weights, with a smoothed tail where it is heavy.

    The largest min(0.2 n, 3 sqrt(n)) weights are replaced by the expected order statistics of a
    generalised Pareto distribution with shape k-hat and the scale of largest likelihood given it;
    none becomes larger than the largest was.

    Parameters
    ----------
    log_weight : (n,) ndarray
        Unnormalised; ``-inf`` for no weight.
    smooth_above : float, default 0.5
        Nothing is changed for k-hat up to this: the weights have a finite variance.

    Returns
    -------
    log_weight : (n,) ndarray
        Their exponentials sum to 1.
    k : float
        k-hat; infinite when there are too few weights to tell.
    """
    positive = np.isfinite(log_weight)
    values = log_weight[positive] - log_weight[positive].max()
    k = pareto_k(values)
    if smooth_above < k < np.inf:
        values = _smoothed(values, k)
    result = np.full_like(log_weight, -np.inf)
    result[positive] = values - np.log(np.exp(values).sum())
    return result, k


def _smoothed(values: FloatArray, k: float) -> FloatArray:
    """Values with the tail replaced, the largest of them being 0."""
    n_tail = int(np.ceil(min(0.2 * len(values), 3.0 * np.sqrt(len(values)))))
    order = np.argsort(values, kind="stable")
    cutoff = np.exp(values[order[-n_tail - 1]])
    tail = order[-n_tail:]
    exceedance = np.exp(values[tail]) - cutoff
    if not exceedance[-1] > 0.0:
        return values
    scale = _pareto_scale(exceedance, k)
    level = (np.arange(n_tail) + 0.5) / n_tail
    result = values.copy()
    # Quantiles of the generalised Pareto distribution, scale ((1 - p)^-k - 1) / k.
    result[tail] = np.log(cutoff + scale * np.expm1(-k * np.log1p(-level)) / k)
    return np.minimum(result, 0.0)


def _pareto_scale(x: FloatArray, k: float) -> float:
    r"""Scale of largest likelihood given the shape k > 0.

    The likelihood equation :math:`\frac1n \sum (1+k) x_i / (s + k x_i) = 1` has a left side that
    falls from (1 + k)/k to 0.
    """

    def excess(s: float) -> float:
        return float(np.mean((1.0 + k) * x / (s + k * x))) - 1.0

    upper = (1.0 + k) * float(x.mean())
    lower = upper
    while excess(lower) < 0.0 and lower > 1e-300 * upper:
        lower *= 0.1
    return float(brentq(excess, lower, upper)) if excess(lower) > 0.0 else lower
