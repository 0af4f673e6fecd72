"""Scores of predictions, the same for every emulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paims.diagnostics import scores

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Predictions of k outputs as mixtures: means and scales (m, k), weights (m,).

    Components are normal, or Student-t with ``dof`` degrees of freedom; it is what
    :func:`paims.diagnostics.scores` takes.
    """

    means: Floats
    scales: Floats
    weights: Floats
    dof: float = float("inf")

    @property
    def components(self) -> Mixture:
        """The components, which this object holds itself."""
        return self

    @property
    def mean(self) -> Floats:
        """Means of the mixtures (k,)."""
        return np.asarray(self.weights @ self.means)

    def cov(self) -> Floats:
        """Not known: predictions are scored one by one."""
        raise NotImplementedError("Predictions of the peers are marginal ones.")

    def sample(self, size: int, random_state: Any = None) -> Floats:
        """Not known either."""
        raise NotImplementedError("Predictions of the peers are marginal ones.")


def normal(mean: Any, std: Any) -> Mixture:
    """One normal distribution for each output; a zero std is taken as the smallest number."""
    mean, std = (np.asarray(a, dtype=float).ravel()[None] for a in (mean, std))
    return Mixture(mean, np.maximum(std, np.finfo(float).tiny), np.ones(1))


def score(prediction: Mixture, y: Floats, unit: float) -> dict[str, float]:
    """RMSE, nlpd and CRPS of outputs measured in ``unit``, and coverage of 95 % intervals."""
    if not (np.isfinite(prediction.means).all() and np.isfinite(prediction.scales).all()):
        raise ValueError("predictions are not finite")
    found = scores(y, prediction)
    return {
        "rmse": found.rmse / unit,
        "nlpd": found.nlpd - float(np.log(unit)),
        "crps": found.crps / unit,
        "coverage": found.coverage_95,
    }
