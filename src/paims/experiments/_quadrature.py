"""Moments of a smooth density of few parameters by the trapezoidal rule: truth to compare with.

For a smooth density that has faded at the edge of the grid the error of the trapezoidal rule falls
faster than any power of the step. The step is halved only where the coarser grid found density, or
beside it; the change from one grid to the next shows the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.ndimage import binary_dilation

from paims._arrays import FloatArray

LogDensity = Callable[[FloatArray], FloatArray]

# Points evaluated at once, and how far below the maximum a point is left out.
_BLOCK = 20_000
_DEPTH = 22.0


@dataclass(frozen=True, eq=False)
class Moments:
    """What a grid found.

    Attributes
    ----------
    log_evidence : float
        Log of the integral.
    mean, sd : (d,) ndarray
    error : float
        Largest change from the grid of twice the step: of the log evidence, of means in standard
        deviations, of standard deviations relative.
    n_points : int
        Points of the last grid.
    """

    log_evidence: float
    mean: FloatArray
    sd: FloatArray
    error: float
    n_points: int


def quadrature(
    log_density: LogDensity, lower: FloatArray, upper: FloatArray, step: float = 1.0
) -> Moments:
    """Integrate a density over a box.

    Parameters
    ----------
    log_density : callable
        Takes (m, d), returns (m,); need not be normalised.
    lower, upper : (d,) ndarray
        Box of the first grid; the density has to fade within.
    step : float
        Of the first grid, at which no feature is missed; the last has half of it.
    """
    shape = tuple(int(n) for n in np.round((upper - lower) / step).astype(int) + 1)
    values, index = _evaluate(log_density, lower, step, np.ones(shape, dtype=bool))
    coarse = _summary(values, lower + step * index, step)
    fine = np.zeros(tuple(2 * n - 1 for n in shape), dtype=bool)
    fine[tuple(2 * index[values > values.max() - _DEPTH].T)] = True
    fine = binary_dilation(fine, np.ones((5,) * len(shape), dtype=bool))
    values, index = _evaluate(log_density, lower, step / 2.0, fine)
    log_evidence, mean, sd = _summary(values, lower + step / 2.0 * index, step / 2.0)
    change = [
        abs(log_evidence - coarse[0]),
        float(np.max(np.abs(mean - coarse[1]) / sd)),
        float(np.max(np.abs(coarse[2] / sd - 1.0))),
    ]
    return Moments(log_evidence, mean, sd, max(change), len(values))


def _evaluate(
    log_density: LogDensity, lower: FloatArray, step: float, mask: npt.NDArray[np.bool_]
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    index = np.argwhere(mask)
    blocks = [
        log_density(lower + step * index[start : start + _BLOCK])
        for start in range(0, len(index), _BLOCK)
    ]
    return np.concatenate(blocks), index


def _summary(
    values: FloatArray, points: FloatArray, step: float
) -> tuple[float, FloatArray, FloatArray]:
    top = float(values.max())
    weight = np.exp(values - top)
    total = float(weight.sum())
    weight /= total
    mean = weight @ points
    sd = np.sqrt(weight @ (points - mean) ** 2)
    return top + float(np.log(total)) + points.shape[1] * float(np.log(step)), mean, sd
