"""What is diagnosed: predictions of some outputs, and the outputs that were observed."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from paims._arrays import FloatArray
from paims._student import StudentMixtures
from paims.gp._checks import as_float_array, check_finite

__all__ = ["Components", "Prediction"]


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


def as_mixtures(prediction: Prediction | StudentMixtures) -> StudentMixtures:
    """Marginal mixtures of a prediction, checked; mixtures are passed on as they are."""
    if isinstance(prediction, StudentMixtures):
        return prediction
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
    return StudentMixtures(location, scale, weights[:, None], as_dof(components.dof))


def paired(y: Any, prediction: Prediction | StudentMixtures) -> tuple[FloatArray, StudentMixtures]:
    """Observed outputs and the mixtures that predict them, checked."""
    mixtures = as_mixtures(prediction)
    return as_outputs(y, len(mixtures)), mixtures


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
