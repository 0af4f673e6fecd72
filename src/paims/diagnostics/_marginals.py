r"""Predictions one by one: mixtures of Student-t or normal distributions, one for each output.

:math:`F_j(y) = \sum_s w_{sj}\, T_\nu((y - \mu_{sj}) / \sigma_{sj})`. The weights may differ from
output to output, as they do when each run is left out in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaln, ndtr, ndtri, stdtr

from paims._arrays import FloatArray
from paims.gp._checks import as_float_array, check_finite


class Components(Protocol):
    """The components of a prediction: Student-t, or normal when ``dof`` is infinite."""

    @property
    def means(self) -> FloatArray:
        """Locations, shape ``(m, k)``."""

    @property
    def scales(self) -> FloatArray:
        """Scales (of a normal: standard deviations), shape ``(m, k)``."""

    @property
    def dof(self) -> float:
        """Degrees of freedom, the same for all."""


class Prediction(Protocol):
    """What a prediction of k outputs has to offer to be diagnosed."""

    @property
    def mean(self) -> FloatArray:
        """Means ``(k,)``."""

    @property
    def components(self) -> Components:
        """Marginal components of the mixture."""

    @property
    def weights(self) -> FloatArray:
        """Weights of the components ``(m,)``, with sum 1."""

    def cov(self) -> FloatArray:
        """Covariance matrix ``(k, k)``."""

    def sample(self, size: int, random_state: Any = None) -> FloatArray:
        """Joint samples of the k outputs, shape ``(size, k)``."""


def standard_cdf(dof: float) -> Callable[[FloatArray], FloatArray]:
    """Distribution function of the standard Student-t, normal for infinite ``dof``."""
    if np.isinf(dof):
        return lambda z: np.asarray(ndtr(z), dtype=np.float64)
    return lambda z: np.asarray(stdtr(dof, z), dtype=np.float64)


def standard_logpdf(z: FloatArray, dof: float) -> FloatArray:
    """Log density of the standard Student-t, normal for infinite ``dof``."""
    if np.isinf(dof):
        return np.asarray(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi), dtype=np.float64)
    constant = gammaln(0.5 * (dof + 1.0)) - gammaln(0.5 * dof) - 0.5 * np.log(dof * np.pi)
    # Huge z: its square may overflow, the logarithm of it need not.
    log1p = np.where(
        np.abs(z) < 1e8,
        np.log1p(np.minimum(np.abs(z), 1e8) ** 2 / dof),
        2.0 * np.log(np.maximum(np.abs(z), 1e8)) - np.log(dof),
    )
    return np.asarray(constant - 0.5 * (dof + 1.0) * log1p, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Marginals:
    """k mixtures with m components each.

    Attributes
    ----------
    location, scale : (m, k) ndarray
    weights : (m, 1) or (m, k) ndarray
        Columns sum to 1.
    dof : float
        Infinite for normal components.
    """

    location: FloatArray
    scale: FloatArray
    weights: FloatArray
    dof: float

    @property
    def mean(self) -> FloatArray:
        """Means ``(k,)``."""
        return np.asarray((self.weights * self.location).sum(axis=0))

    @property
    def std(self) -> FloatArray:
        """Standard deviations ``(k,)`` by the law of total variance; infinite for dof <= 2."""
        if self.dof <= 2.0:
            return np.full(self.location.shape[1], np.inf)
        ratio = 1.0 if np.isinf(self.dof) else self.dof / (self.dof - 2.0)
        variance = self.weights * (ratio * self.scale**2 + (self.location - self.mean) ** 2)
        return np.asarray(np.sqrt(variance.sum(axis=0)))

    def _standardised(self, y: FloatArray) -> FloatArray:
        """Standardised y ``(m, k)``; 0 where a component without spread is hit exactly."""
        difference = y - self.location
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(difference == 0.0, 0.0, difference / self.scale)

    def tails(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities ``(k,)`` below and above ``y`` (k,), each with its own digits."""
        z, cdf = self._standardised(y), standard_cdf(self.dof)
        below = (self.weights * cdf(z)).sum(axis=0)
        above = (self.weights * cdf(-z)).sum(axis=0)
        return np.minimum(below, 1.0), np.minimum(above, 1.0)

    def cdf(self, y: FloatArray) -> FloatArray:
        """Distribution functions at ``y`` (k,): the probability-integral transform."""
        return self.tails(y)[0]

    def scores(self, y: FloatArray) -> FloatArray:
        r"""Normal scores :math:`\Phi^{-1}(F_j(y_j))`: standard normal if the prediction is right.

        Unlike (y - mean) / std this holds for every mixture, whatever its shape.
        """
        below, above = self.tails(y)
        return np.asarray(np.where(below <= above, ndtri(below), -ndtri(above)))

    def component_logpdf(self, y: FloatArray) -> FloatArray:
        """Log densities ``(m, k)`` of the components at ``y`` (k,)."""
        with np.errstate(divide="ignore"):
            log_scale = np.log(self.scale)
        z = self._standardised(y)
        with np.errstate(invalid="ignore"):
            value = standard_logpdf(z, self.dof) - log_scale
        # A component without spread that is missed: -inf + inf.
        return np.where(np.isnan(value), -np.inf, value)

    def logpdf(self, y: FloatArray) -> FloatArray:
        """Log predictive densities at ``y`` (k,)."""
        with np.errstate(divide="ignore"):
            terms = np.log(self.weights) + self.component_logpdf(y)
        peak = terms.max(axis=0)
        safe = np.where(np.isfinite(peak), peak, 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(safe + np.log(np.exp(terms - safe).sum(axis=0)))


def as_weights(weights: Any, n_draws: int) -> FloatArray:
    """Weights ``(n_draws,)`` with sum 1; equal ones for None."""
    if weights is None:
        return np.full(n_draws, 1.0 / n_draws)
    w = as_float_array("weights", weights, 1)
    if len(w) != n_draws:
        raise ValueError(f"weights must have one value for each draw, {n_draws}; got {len(w)}.")
    check_finite("weights", w)
    if (w < 0.0).any() or not w.sum() > 0.0:
        raise ValueError("weights must not be negative, and not all zero.")
    return np.asarray(w / w.sum())


def as_marginals(prediction: Prediction) -> Marginals:
    """Marginal mixtures of a prediction object."""
    components = prediction.components
    location = as_float_array("components.means", components.means, 2)
    scale = as_float_array("components.scales", components.scales, 2)
    if location.shape != scale.shape:
        raise ValueError(
            "components.means and components.scales must have the same shape (m, k); got "
            f"{location.shape} and {scale.shape}."
        )
    check_finite("components.means", location)
    check_finite("components.scales", scale)
    weights = as_weights(prediction.weights, len(location))
    return Marginals(location, scale, weights[:, None], as_dof(components.dof))


def as_dof(dof: float | None) -> float:
    """Degrees of freedom as a float; None means normal."""
    value = np.inf if dof is None else float(dof)
    if not value > 0.0:
        raise ValueError(f"dof must be positive (infinite or None for a normal); got {dof!r}.")
    return value


def as_outputs(y: Any, n_outputs: int) -> FloatArray:
    """Check the observed outputs against the number predicted."""
    values = as_float_array("y", y, 1)
    if len(values) != n_outputs:
        raise ValueError(
            f"y must have a value for each of the {n_outputs} predictions; got {len(values)}."
        )
    if not len(values):
        raise ValueError("y is empty: there is nothing to compare predictions with.")
    check_finite("y", values)
    return values
