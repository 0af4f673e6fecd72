"""Quantiles of many distributions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paims._arrays import FloatArray, IndexArray

#: Takes x ``(j,)`` and the indices ``(j,)`` of the unknowns that these are for; returns log F and
#: its first two derivatives, each ``(j,)``.
LogCdf = Callable[[FloatArray, IndexArray], tuple[FloatArray, FloatArray, FloatArray]]

_MAX_ITERATIONS = 200


def solve_increasing(
    log_cdf: LogCdf,
    log_target: float,
    start: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    resolution: FloatArray,
    tolerance: FloatArray,
) -> FloatArray:
    r"""Solve :math:`\log F_i(x_i) = \log q` for increasing functions :math:`F_i`.

    Halley's method on the logarithm, which is nearly straight in the tails of a distribution,
    inside a bracket that every evaluation tightens. A step that would leave the bracket is a
    bisection, and so is every third step if the bracket has not halved since: functions that
    jump or have flat parts are solved too.

    Parameters
    ----------
    log_cdf : callable
    log_target : float
    start, lower, upper : (k,) ndarray
        First guesses; the solution lies in [lower, upper].
    resolution : (k,) ndarray
        Length of the finest feature of F, such as the least scale of a component. A step s leaves
        an error of about s (s / resolution)^2, as the method is of third order.
    tolerance : (k,) ndarray
        Absolute error wanted.

    Returns
    -------
    (k,) ndarray
    """
    low, high = lower.copy(), upper.copy()
    x = np.clip(start, low, high)
    width = high - low
    left = np.flatnonzero(width > tolerance)
    for iteration in range(1, _MAX_ITERATIONS + 1):
        if not left.size:
            break
        value, slope, curvature = log_cdf(x[left], left)
        excess = value - log_target
        low[left] = np.where(excess <= 0.0, x[left], low[left])
        high[left] = np.where(excess >= 0.0, x[left], high[left])
        with np.errstate(all="ignore"):
            newton = excess / slope
            proposed = x[left] - newton / np.maximum(1.0 - 0.5 * newton * curvature / slope, 0.5)
        inside = (proposed > low[left]) & (proposed < high[left])
        if iteration % 3 == 0:
            inside &= high[left] - low[left] <= 0.5 * width[left]
            width[left] = high[left] - low[left]
        following = np.where(inside, proposed, 0.5 * low[left] + 0.5 * high[left])
        step = np.abs(following - x[left])
        with np.errstate(all="ignore"):
            error = np.minimum(step, step * (step / resolution[left]) ** 2)
        done = inside & (error <= tolerance[left])
        done |= high[left] - low[left] <= tolerance[left]
        x[left] = following
        left = left[~done]
    return x
