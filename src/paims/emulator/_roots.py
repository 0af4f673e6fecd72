"""Quantiles of many distributions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

_MAX_ITERATIONS = 200


def solve_increasing(
    log_cdf: Callable[[FloatArray, IndexArray], tuple[FloatArray, FloatArray]],
    log_target: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    tolerance: FloatArray,
) -> FloatArray:
    r"""Solve :math:`\log F_i(x_i) = \log q_i` for increasing functions :math:`F_i`.

    Newton's method on the logarithm, which is nearly straight in the tails of a distribution,
    inside a bracket that every evaluation tightens. A step that would leave the bracket is a
    bisection, and so is every third step if the bracket has not halved since: functions that
    jump or have flat parts are solved too.

    Parameters
    ----------
    log_cdf : callable
        Takes x ``(j,)`` and the indices i ``(j,)`` of the unknowns that are not yet solved;
        returns log F and its derivative, each ``(j,)``.
    log_target : (k,) ndarray
    lower, upper : (k,) ndarray
        The solution lies in [lower, upper].
    tolerance : (k,) ndarray
        Absolute error wanted.

    Returns
    -------
    (k,) ndarray
    """
    low, high = lower.copy(), upper.copy()
    x = 0.5 * low + 0.5 * high
    width = high - low
    left = np.flatnonzero(width > tolerance)
    for iteration in range(1, _MAX_ITERATIONS + 1):
        if not left.size:
            break
        value, slope = log_cdf(x[left], left)
        excess = value - log_target[left]
        low[left] = np.where(excess <= 0.0, x[left], low[left])
        high[left] = np.where(excess >= 0.0, x[left], high[left])
        with np.errstate(all="ignore"):
            proposed = x[left] - excess / slope
        newton = (proposed > low[left]) & (proposed < high[left])
        if iteration % 3 == 0:
            newton &= high[left] - low[left] <= 0.5 * width[left]
            width[left] = high[left] - low[left]
        following = np.where(newton, proposed, 0.5 * low[left] + 0.5 * high[left])
        done = newton & (np.abs(following - x[left]) <= tolerance[left])
        done |= high[left] - low[left] <= tolerance[left]
        x[left] = following
        left = left[~done]
    return x
