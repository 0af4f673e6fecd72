"""Shape of the tail of importance weights: how far they can be trusted.

Zhang & Stephens (2009), "A new and efficient estimation method for the generalized Pareto
distribution", with the prior of Vehtari et al. (2024), "Pareto smoothed importance sampling".
ArviZ has it too, as an extra that takes a second to import; the tests compare the two.
"""

from __future__ import annotations

import numpy as np

from paims._arrays import Array
from paims.sampling._numeric import normalised

RELIABLE_K = 0.7


def pareto_k(log_weight: Array) -> float:
    """Estimate the shape k-hat of the generalised Pareto tail of the weights.

    Below 0.5 the weights have a finite variance; above 0.7 estimates from them are not reliable.

    Parameters
    ----------
    log_weight : ndarray, shape (n,)

    Returns
    -------
    float
        k-hat; inf when there are too few points to tell.
    """
    n = len(log_weight)
    n_tail = int(np.ceil(min(0.2 * n, 3 * np.sqrt(n))))
    if n_tail < 5:
        return float("inf")
    ordered = np.sort(log_weight - np.max(log_weight))
    cutoff = max(float(ordered[-n_tail - 1]), float(np.log(np.finfo(float).tiny)))
    tail = ordered[ordered > cutoff]
    if ordered[-1] - ordered[0] < 1e-10:
        return 0.0  # equal weights have no tail
    if len(tail) <= 4:
        return float("inf")
    return _fit_shape(np.exp(tail) - np.exp(cutoff))


def _fit_shape(x: Array) -> float:
    """Shape of a generalised Pareto distribution with location 0, from ascending exceedances."""
    n = len(x)
    n_grid = 30 + int(np.sqrt(n))
    quartile = max(x[int(n / 4 + 0.5) - 1], np.finfo(float).tiny)
    grid = 1 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))
    grid = grid / (3 * quartile) + 1 / x[-1]
    shape = np.mean(np.log1p(-grid[:, None] * x), axis=1)
    log_likelihood = n * (np.log(-(grid / shape)) - shape - 1)
    weight = normalised(log_likelihood)
    k = float(np.mean(np.log1p(-np.sum(grid * weight) * x)))
    # A weak prior towards 0.5 steadies the estimate from short tails.
    return k * n / (n + 10) + 0.5 * 10 / (n + 10)
