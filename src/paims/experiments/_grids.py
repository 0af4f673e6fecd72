"""The posterior on grids: level curves, modes and masses, and moments to compare with.

Moments are by the trapezoidal rule. For a smooth density that has faded at the edge of the grid
its error falls faster than any power of the step. The step is halved only where the coarser grid
found density, or beside it; the change from one grid to the next shows the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import binary_dilation

from paims._arrays import BoolArray, FloatArray, IntArray
from paims.gp import Posterior
from paims.sampling._modes import _climb as climb_links

#: The paper's practical support of each log length-scale.
PAPER_BOX = (-7.0, 7.0)
#: Ends of the grids; the limiting modes C and D lie outside the paper's support.
LOWER, UPPER = -7.0, 14.0
#: Log density by which a peak has to stand out. Round-off makes the surface rough by less where
#: the correlation matrix is nearly singular.
PROMINENCE = 0.1


@dataclass(frozen=True, eq=False)
class Surface:
    """Log posterior density on a square grid of (log phi1, log phi2).

    Attributes
    ----------
    axis : (k,) ndarray
        Grid of each coordinate.
    log_density : (k, k) ndarray
        First index for log phi1; -inf where the correlation matrix could not be factorised.
    """

    axis: FloatArray
    log_density: FloatArray

    @property
    def height(self) -> FloatArray:
        """Negative log density above its minimum, as level curves show it."""
        return np.asarray(self.log_density.max() - self.log_density)

    @property
    def failed_share(self) -> float:
        """Share of the grid at which the density could not be computed."""
        return float(np.mean(np.isneginf(self.log_density)))

    def mass(self, below: float, box: tuple[float, float] = PAPER_BOX) -> float:
        """Share of the mass in the box for which both log length-scales are below a number."""
        low, high = box
        inside = (self.axis >= low) & (self.axis <= high)
        weight = np.exp(self.log_density - self.log_density.max())[np.ix_(inside, inside)]
        corner = self.axis[inside] < below
        return float(weight[np.ix_(corner, corner)].sum() / weight.sum())


@dataclass(frozen=True, eq=False)
class GridMode:
    """A local minimum of the negative log posterior on a grid, and the mass of its basin."""

    location: FloatArray
    log_density: float
    mass: float


def surface(posterior: Posterior, step: float = 0.1) -> Surface:
    """Evaluate a posterior with a fixed nugget and two inputs on the grid.

    Parameters
    ----------
    posterior : Posterior
        With two parameters.
    step : float
        Of the grid.
    """
    if posterior.n_params != 2:
        raise ValueError(
            f"A surface needs a posterior of two parameters; this one has {posterior.n_params}: "
            f"{', '.join(posterior.parameter_names)}. Fix the nugget."
        )
    axis = np.linspace(LOWER, UPPER, round((UPPER - LOWER) / step) + 1)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return Surface(axis, posterior(grid).reshape(len(axis), len(axis)))


def grid_modes(result: Surface, prominence: float = PROMINENCE) -> list[GridMode]:
    """Local minima of the negative log posterior inside the grid, by falling mass.

    Parameters
    ----------
    result : Surface
    prominence : float
        Peaks that stand out by less belong to the basin of a higher one.
    """
    values = result.log_density
    peak_of = _peaks(values, prominence)
    weight = np.exp(values - values.max())
    weight /= weight.sum()
    masses = np.bincount(peak_of.ravel(), weight.ravel(), minlength=values.size)
    modes = []
    for peak in np.unique(peak_of):
        i, j = divmod(int(peak), values.shape[1])
        on_edge = {i, j} & {0, len(result.axis) - 1}
        if on_edge or not np.isfinite(values[i, j]):
            continue
        location = np.array([result.axis[i], result.axis[j]])
        modes.append(GridMode(location, float(values[i, j]), float(masses[peak])))
    return sorted(modes, key=lambda mode: -mode.mass)


def _peaks(values: FloatArray, prominence: float) -> IntArray:
    """Index of the peak that each grid point belongs to, through its eight neighbours."""
    n = len(values)
    padded = np.pad(np.arange(n * n).reshape(n, n), 1, mode="edge")
    around = [
        padded[1 + i : n + 1 + i, 1 + j : n + 1 + j].ravel()
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    ]
    height = np.where(np.isfinite(values), values, -1e10).ravel()
    return np.asarray(climb_links(np.stack(around, axis=1), height, prominence))


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
    log_density: LogDensity, lower: FloatArray, step: float, mask: BoolArray
) -> tuple[FloatArray, IntArray]:
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
