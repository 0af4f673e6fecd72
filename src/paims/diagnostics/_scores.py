r"""Scores of predictions: single numbers by which emulators are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from paims._arrays import FloatArray
from paims.diagnostics._crps import crps_of_marginals
from paims.diagnostics._marginals import Marginals, Prediction, as_marginals, as_outputs
from paims.gp._checks import as_float_array, check_finite

__all__ = ["Scores", "nlpd", "rmse", "scores"]


@dataclass(frozen=True)
class Scores:
    r"""Scores of n predictions; smaller is better for all but the coverage and ``q2``.

    Attributes
    ----------
    n : int
    rmse : float
        Root of the mean squared error, in the output's units.
    nlpd : float
        Mean negative log predictive density, :math:`-\frac1n\sum\log p(y_i)`.
    nlpd_error : float
        Its standard error over the n outputs, taken as independent.
    crps : float
        Mean continuous ranked probability score, in the output's units.
    crps_error : float
        Its standard error.
    coverage_95 : float
        Share of the outputs inside their central 95 % interval.
    q2 : float
        1 - mean squared error / variance of the observed outputs; NaN if they are all equal.
    """

    n: int
    rmse: float
    nlpd: float
    nlpd_error: float
    crps: float
    crps_error: float
    coverage_95: float
    q2: float

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        if not np.isfinite(self.q2):
            share = "; the observed outputs are all equal, so there is no spread to compare with"
        elif self.q2 <= 0.0:
            share = (
                ": no better than predicting the mean of the outputs for all. The emulator has "
                "not learnt the simulator; add runs or look at the leave-one-out residuals"
            )
        else:
            share = f", which leaves {100.0 * (1.0 - self.q2):.3g} % of the outputs' variance"
        return (
            f"The typical error is {self.rmse:.3g}{share}. "
            f"{100.0 * self.coverage_95:.3g} % of the {self.n} outputs lie in their 95 % interval."
        )


def rmse(y: Any, mean: Any) -> float:
    """Root of the mean squared difference of ``y`` and ``mean``, both ``(k,)``."""
    mean = as_float_array("mean", mean, 1)
    check_finite("mean", mean)
    return float(np.sqrt(np.mean((as_outputs(y, len(mean)) - mean) ** 2)))


def nlpd(y: Any, prediction: Prediction) -> float:
    """Mean negative log predictive density of ``y`` (k,) under the marginal mixtures."""
    marginals = as_marginals(prediction)
    return float(-np.mean(marginals.logpdf(as_outputs(y, marginals.location.shape[1]))))


def scores(y: Any, prediction: Prediction) -> Scores:
    """All scores of a prediction.

    Parameters
    ----------
    y : (k,) array_like
        What was observed.
    prediction : Prediction

    Returns
    -------
    Scores
    """
    marginals = as_marginals(prediction)
    return scores_of_marginals(as_outputs(y, marginals.location.shape[1]), marginals)


def scores_of_marginals(y: FloatArray, marginals: Marginals) -> Scores:
    """:func:`scores` for checked arrays; the weights may differ from output to output."""
    below, above = marginals.tails(y)
    loss = -marginals.logpdf(y)
    distance = crps_of_marginals(y, marginals)
    squared = (y - marginals.mean) ** 2
    variance = float(np.var(y))
    return Scores(
        n=len(y),
        rmse=float(np.sqrt(squared.mean())),
        nlpd=float(loss.mean()),
        nlpd_error=_standard_error(loss),
        crps=float(distance.mean()),
        crps_error=_standard_error(distance),
        coverage_95=float(np.mean(np.minimum(below, above) >= 0.025)),
        q2=float(1.0 - squared.mean() / variance) if variance > 0.0 else float("nan"),
    )


def _standard_error(values: FloatArray) -> float:
    if len(values) < 2 or not np.isfinite(values).all():
        return float("nan")
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))
