r"""Mixtures of Student-t distributions, or of normals as their limit: what every prediction is.

.. math:: F_j(y) = \sum_s w_{sj}\, T_\nu\!\left(\frac{y - \mu_{sj}}{\sigma_{sj}}\right)

with :math:`T_\nu` the distribution function of a standard Student-t with :math:`\nu` degrees of
freedom. Infinite :math:`\nu` gives normals. A component of scale 0 is certain of its location: its
distribution function is a step, which is 1 at the location itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import betaln, logsumexp, ndtr, ndtri, stdtr, stdtrit

from paims._arrays import BoolArray, FloatArray, IndexArray
from paims._student_table import RELIABLE_DOF, tabulated

__all__ = ["StudentMixtures", "StudentT", "solve_increasing"]

# Quantiles of smaller probabilities are solved with SciPy's distribution function.
_LEAST_TABULATED = 1e-6
_MAX_ITERATIONS = 200
# Doubles in arrays of all components of some mixtures that are made on the way.
_PART_SIZE = 2**22
# Squares of anything larger may overflow.
_HUGE = 1e150


@dataclass(frozen=True)
class StudentT:
    """Standard Student-t distribution: location 0, scale 1.

    Attributes
    ----------
    dof : float
        Degrees of freedom; inf for the normal.
    """

    dof: float

    @property
    def normal(self) -> bool:
        """Whether this is the normal distribution."""
        return bool(np.isinf(self.dof))

    @property
    def variance(self) -> float:
        """Variance; infinite for dof <= 2."""
        if self.normal:
            return 1.0
        return self.dof / (self.dof - 2.0) if self.dof > 2.0 else np.inf

    def log_density(self, residual: FloatArray, scale: FloatArray | float = 1.0) -> FloatArray:
        """Log density of ``scale`` times this variable.

        A scale of 0 has an infinite density at 0 and none elsewhere. In the far tail it is the
        power law of the Student-t, finite as long as the residual is.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z, log_scale = np.abs(residual / scale), np.log(scale)
            if self.normal:
                log_kernel = -0.5 * z**2
            else:
                log_square = np.log1p(z**2 / self.dof)
                if not (z < _HUGE).all():
                    far = 2.0 * (np.log(np.abs(residual)) - log_scale) - np.log(self.dof)
                    log_square = np.where(z < _HUGE, log_square, far)
                log_kernel = -0.5 * (self.dof + 1.0) * log_square
            result = self._log_constant + log_kernel - log_scale
        if np.all(scale):
            return np.asarray(result)
        return np.where(scale, result, np.where(residual == 0.0, np.inf, -np.inf))

    @cached_property
    def _log_constant(self) -> float:
        """Log density at 0."""
        if self.dof < 200.0:
            return float(-betaln(0.5, 0.5 * self.dof) - 0.5 * np.log(self.dof))
        # Stirling's series: the beta function loses digits.
        r = 1.0 / self.dof
        return float(-0.5 * np.log(2.0 * np.pi) - r / 4.0 + r**3 / 24.0 - r**5 / 20.0)

    def score(self, z: FloatArray) -> FloatArray:
        """Derivative of the log density."""
        slope: FloatArray = -z if self.normal else -(self.dof + 1.0) / (self.dof / z + z)
        return slope

    def cdf(self, z: FloatArray) -> FloatArray:
        """Distribution function; keeps its digits in the lower tail."""
        return np.asarray(ndtr(z) if self.normal else stdtr(self.dof, z), dtype=np.float64)

    def quantile(self, q: Any) -> FloatArray:
        """Inverse of the distribution function."""
        return np.asarray(ndtri(q) if self.normal else stdtrit(self.dof, q), dtype=np.float64)

    def stretch(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Factors that make (multivariate) normal samples samples of this family."""
        if self.normal:
            return np.ones(size)
        return np.asarray(np.sqrt(self.dof / rng.chisquare(self.dof, size)), dtype=np.float64)

    def tabulated_cdf(self) -> Callable[[FloatArray], FloatArray]:
        """Distribution function from a table, for sums over many components.

        To 1e-11 of a probability from ``RELIABLE_DOF`` degrees of freedom on, and to 1e-9 for
        fewer.
        """
        if self.normal or self.dof < 2.0:
            # Tails below dof 2 are so heavy that the angle is a right one within round-off.
            return self.cdf
        return tabulated(self.dof, float(np.exp(self._log_constant)))

    def __str__(self) -> str:
        return "Gaussian" if self.normal else f"Student-t, dof {self.dof:g}"


@dataclass(frozen=True, eq=False)
class StudentMixtures:
    """k mixtures of m components each; every function takes one value for each mixture.

    Attributes
    ----------
    location, scale : (m, k) ndarray
    weights : (m, 1) or (m, k) ndarray
        Columns sum to 1. They differ when each run is left out in turn.
    dof : float
        Degrees of freedom of all components; inf for normals.
    """

    location: FloatArray
    scale: FloatArray
    weights: FloatArray
    dof: float

    def __len__(self) -> int:
        return int(self.location.shape[1])

    def __getitem__(self, index: slice | IndexArray | BoolArray) -> StudentMixtures:
        """Some of the mixtures."""
        weights = self.weights if self.weights.shape[1] == 1 else self.weights[:, index]
        return StudentMixtures(self.location[:, index], self.scale[:, index], weights, self.dof)

    @property
    def family(self) -> StudentT:
        """The standard form of the components."""
        return StudentT(self.dof)

    @cached_property
    def mean(self) -> FloatArray:
        """Means ``(k,)``."""
        parts = self._parts()
        if len(parts) > 1:
            return np.concatenate([part.mean for part in parts])
        return np.asarray((self.weights * self.location).sum(axis=0))

    @cached_property
    def std(self) -> FloatArray:
        """Standard deviations ``(k,)`` by the law of total variance; infinite for dof <= 2."""
        if not self.dof > 2.0:
            return np.full(len(self), np.inf)
        parts = self._parts()
        if len(parts) > 1:
            return np.concatenate([part.std for part in parts])
        within, between = self.family.variance * self.scale**2, (self.location - self.mean) ** 2
        return np.asarray(np.sqrt((self.weights * (within + between)).sum(axis=0)))

    def cdf(self, y: FloatArray) -> FloatArray:
        """Probabilities ``(k,)`` of at most ``y`` (k,)."""
        return self._probability(self._standardised(y, at_step=np.inf))

    def tails(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities ``(k,)`` below and above ``y`` (k,), each with its own digits.

        What a component without spread says of its location counts half to each side, so that an
        output that was predicted with certainty is in the middle of its prediction.
        """
        z = self._standardised(y, at_step=0.0)
        return self._probability(z), self._probability(-z)

    def normal_scores(self, y: FloatArray) -> FloatArray:
        r""":math:`\Phi^{-1}(F_j(y_j))`: standard normal if the prediction is right.

        Unlike (y - mean) / std this holds for every mixture, whatever its shape.
        """
        below, above = self.tails(y)
        return np.asarray(np.where(below <= above, ndtri(below), -ndtri(above)))

    def component_logpdf(self, y: FloatArray) -> FloatArray:
        """Log densities ``(m, k)`` of the components at ``y`` (k,)."""
        return self.family.log_density(y - self.location, self.scale)

    def logpdf(self, y: FloatArray) -> FloatArray:
        """Log densities at ``y`` (k,)."""
        weights = np.broadcast_to(self.weights, self.location.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(logsumexp(self.component_logpdf(y), axis=0, b=weights))

    def quantile(self, q: float) -> FloatArray:
        """Quantiles ``(k,)`` at a probability, to about 1e-11 of their spread."""
        return self.lower_quantile(q) if q <= 0.5 else self.upper_quantile(1.0 - q)

    def lower_quantile(self, q: float) -> FloatArray:
        """Values ``(k,)`` with probability q <= 1/2 below them."""
        if q == 0.0:
            return np.full(len(self), -np.inf)
        unit = float(self.family.quantile(q))
        # It lies between the least and the largest quantile of the components.
        each = self.location + unit * self.scale
        # Scale of the one component that has the mixture's variance.
        between = (self.location - self.mean) ** 2 / self.family.variance
        spread = np.sqrt((self.weights * (self.scale**2 + between)).sum(axis=0))
        exact = q < _LEAST_TABULATED or self.dof < RELIABLE_DOF
        cdf = self.family.cdf if exact else self.family.tabulated_cdf()
        return solve_increasing(
            lambda t, index: self[index]._log_cdf(t, cdf),
            float(np.log(q)),
            start=self.mean + unit * spread,
            lower=each.min(axis=0),
            upper=each.max(axis=0),
            resolution=self.scale.min(axis=0),
            tolerance=1e-12 * spread + 4.0 * np.finfo(float).eps * np.abs(each).max(axis=0),
        )

    def upper_quantile(self, q: float) -> FloatArray:
        """Values ``(k,)`` with probability q <= 1/2 above them; solved with the digits of q."""
        mirrored = StudentMixtures(-self.location, self.scale, self.weights, self.dof)
        return -mirrored.lower_quantile(q)

    def _parts(self) -> list[StudentMixtures]:
        """The mixtures a part at a time, or these alone where arrays of all are small.

        No part is a single mixture, whose sum NumPy would round in another way.
        """
        m, k = self.location.shape
        n_parts = min(-(-m * k // _PART_SIZE), max(1, k // 2))
        if n_parts <= 1:
            return [self]
        ends = (np.arange(n_parts + 1) * k) // n_parts
        return [self[a:b] for a, b in itertools.pairwise(ends.tolist())]

    def _standardised(self, y: FloatArray, at_step: float) -> FloatArray:
        """Residuals in units of the scales ``(m, k)``; ``at_step`` for a step that is hit."""
        residual = y - self.location
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = residual / self.scale
        if self.scale.all():
            return z
        return np.where((residual == 0.0) & (self.scale == 0.0), at_step, z)

    def _probability(self, z: FloatArray) -> FloatArray:
        return np.asarray(np.minimum((self.weights * self.family.cdf(z)).sum(axis=0), 1.0))

    def _log_cdf(
        self, t: FloatArray, of_one: Callable[[FloatArray], FloatArray]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log distribution function and its first two derivatives, by the components' own."""
        z = self._standardised(t, at_step=np.inf)
        with np.errstate(all="ignore"):
            density = self.weights * np.exp(self.family.log_density(z)) / self.scale
            change = density * self.family.score(z) / self.scale
            spread = self.scale > 0.0
            cdf = np.minimum((self.weights * of_one(z)).sum(axis=0), 1.0)
            slope = np.where(spread, density, 0.0).sum(axis=0) / cdf
            curvature = np.where(spread, change, 0.0).sum(axis=0) / cdf - slope**2
            return np.log(cdf), slope, curvature


#: Takes x ``(j,)`` and the indices ``(j,)`` of the unknowns that these are for; returns log F and
#: its first two derivatives, each ``(j,)``.
LogCdf = Callable[[FloatArray, IndexArray], tuple[FloatArray, FloatArray, FloatArray]]


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
