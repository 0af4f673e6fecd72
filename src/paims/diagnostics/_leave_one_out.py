r"""Every run predicted from all others, for the mixture over draws of the hyper-parameters.

Given a draw :math:`u_s` the prediction :math:`p(y_i \mid y_{-i}, u_s)` of a left-out run is known
in closed form (a Student-t with n - 1 - q degrees of freedom). The draws have the posterior of
all runs; without run i their weights are

.. math:: w_{si} \propto w_s / p(y_i \mid y_{-i}, u_s),

since trend and variance are integrated out and the prior of the hyper-parameters does not depend
on the outputs. (The reference prior depends on the design: it is kept as that of the whole
design.) No refit is needed. A run that the draws cannot do without gives weights with a heavy
tail, which the Pareto :math:`\hat k` of Vehtari, Gelman & Gabry (2017) tells; above 0.5 the tail
is smoothed, above 0.7 the result for that run is not reliable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq

from paims._arrays import FloatArray, IntArray
from paims._student import StudentMixtures
from paims.diagnostics._calibration import Coverage, Uniformity, coverage_curve, pit, uniformity
from paims.diagnostics._prediction import as_outputs, as_weights
from paims.diagnostics._residuals import Residuals, standardised_residuals
from paims.diagnostics._scores import Scores, scores
from paims.gp import Predictive
from paims.sampling._recycling import pareto_k

__all__ = ["LeaveOneOut", "leave_one_out"]


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    r"""Predictions of n runs, each from the others.

    Attributes
    ----------
    observed, mean, std : (n,) ndarray
        Output, and mean and standard deviation of its mixture; NaN for a run that the trend
        cannot do without.
    standardised : (n,) ndarray
        (observed - mean) / std.
    scores : (n,) ndarray
        Normal scores :math:`\Phi^{-1}(F_i(y_i))`.
    pit : (n,) ndarray
        :math:`F_i(y_i)`.
    log_density : (n,) ndarray
        :math:`\log p(y_i \mid y_{-i})`.
    n_draws : int
        Draws with positive weight.
    pareto_k : (n,) ndarray
        Reliability: below 0.5 good, above 0.7 not reliable, infinite with too few draws to tell;
        NaN for a single draw, which has no weights to change.
    effective_size : (n,) ndarray
        Effective number of draws that predict the run.
    summary : Scores
        RMSE, mean negative log density, CRPS and coverage over the runs.
    residuals : Residuals
    coverage : Coverage
    uniformity : Uniformity
        The last three, and the summary, are over the runs that could be left out.
    """

    observed: FloatArray
    mean: FloatArray
    std: FloatArray
    standardised: FloatArray
    scores: FloatArray
    pit: FloatArray
    log_density: FloatArray
    n_draws: int
    pareto_k: FloatArray
    effective_size: FloatArray
    summary: Scores
    residuals: Residuals
    coverage: Coverage
    uniformity: Uniformity

    def in_units(self, exponent: int) -> LeaveOneOut:
        """Those of outputs that are 2^exponent times as large."""
        values = (self.observed, self.mean, self.std)
        observed, mean, std = (np.asarray(np.ldexp(value, exponent)) for value in values)
        return replace(
            self,
            observed=observed,
            mean=mean,
            std=std,
            log_density=self.log_density - exponent * np.log(2.0),
            summary=self.summary.in_units(exponent),
            residuals=self.residuals.in_units(exponent),
        )

    @property
    def elpd(self) -> float:
        """Expected log predictive density: the sum of ``log_density``."""
        return float(np.nansum(self.log_density))

    @property
    def unreliable(self) -> IntArray:
        """Runs (positions) with Pareto k-hat above 0.7."""
        return np.flatnonzero(self.pareto_k > 0.7)

    @property
    def indispensable(self) -> IntArray:
        """Runs (positions) without which the trend is not determined."""
        return np.flatnonzero(np.isnan(self.mean))

    @property
    def checks(self) -> dict[str, tuple[bool, str]]:
        """Name of each check, whether it passed, and its verdict."""
        named: dict[str, Residuals | Coverage] = {
            "single errors": self.residuals,
            "coverage": self.coverage,
        }
        return {name: (check.passed, check.verdict) for name, check in named.items()}

    @property
    def passed(self) -> bool:
        """Whether residuals and coverage are fine and at most a tenth of the runs unreliable."""
        few = len(self.unreliable) <= 0.1 * len(self.observed)
        return self.residuals.passed and self.coverage.passed and few

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        parts = [
            f"Left out in turn, {self.summary.n} runs are predicted with a typical error of "
            f"{self.summary.rmse:.3g} (Q2 = {self.summary.q2:.4g}).",
            self.residuals.verdict,
            self.coverage.verdict,
        ]
        if self.indispensable.size:
            parts.append(
                f"The trend is not determined without run(s) {_listed(self.indispensable)}: "
                "there is nothing to compare them with."
            )
        if self.n_draws == 1:
            parts.append(
                "The hyper-parameters are those of all runs: errors may be a little larger."
            )
        elif np.isinf(self.pareto_k).any():
            parts.append(
                f"{self.n_draws} draws are too few to tell how far their weights can be trusted."
            )
        elif self.unreliable.size:
            parts.append(
                f"For run(s) {_listed(self.unreliable)} the draws would be others without them "
                "(Pareto k-hat above 0.7): refit without each to be sure."
            )
        return " ".join(parts)


def _listed(runs: IntArray) -> str:
    shown = ", ".join(str(int(i)) for i in runs[:8])
    return shown if len(runs) <= 8 else f"{shown} and {len(runs) - 8} more"


def leave_one_out(
    y: Any, predictive: Predictive, weights: Any = None, *, smooth_above: float = 0.5
) -> LeaveOneOut:
    """Leave-one-out predictions of the mixture.

    Parameters
    ----------
    y : (n,) array_like
        Outputs of the runs.
    predictive : Predictive
        Given each draw, :meth:`paims.gp.Posterior.leave_one_out`: arrays ``(m, n)``.
    weights : (m,) array_like, optional
        Weights of the draws; equal by default.
    smooth_above : float, default 0.5
        Pareto k-hat from which on the tail of a run's weights is smoothed.

    Returns
    -------
    LeaveOneOut
    """
    m, n = predictive.mean.shape
    y = as_outputs(y, n)
    w = as_weights(weights, m)
    location, scale, dof = _usable(predictive, w)
    with np.errstate(divide="ignore"):
        log_w = np.log(w)
    everything = StudentMixtures(location, scale, w[:, None], dof)
    log_p = everything.component_logpdf(y)
    run_weights = np.empty((m, n))
    k = np.full(n, np.nan)
    n_draws = int(np.sum(w > 0.0))
    possible = np.asarray(np.isfinite(predictive.mean[w > 0.0]).any(axis=0))
    for i in range(n):
        log_weight, k_i = smoothed_log_weights(log_w - log_p[:, i], smooth_above)
        run_weights[:, i] = np.exp(log_weight)
        k[i] = k_i if possible[i] and n_draws > 1 else np.nan
    chosen = np.flatnonzero(possible)
    if not chosen.size:
        raise ValueError("No run could be left out: all predictions are NaN.")
    mixture = StudentMixtures(location[:, chosen], scale[:, chosen], run_weights[:, chosen], dof)
    residuals = standardised_residuals(y[chosen], mixture)
    transforms = pit(y[chosen], mixture)

    def spread(values: FloatArray) -> FloatArray:
        result = np.full(n, np.nan)
        result[chosen] = values
        return result

    return LeaveOneOut(
        observed=y,
        mean=spread(residuals.mean),
        std=spread(residuals.std),
        standardised=spread(residuals.standardised),
        scores=spread(residuals.scores),
        pit=spread(transforms),
        log_density=spread(mixture.logpdf(y[chosen])),
        n_draws=n_draws,
        pareto_k=k,
        effective_size=spread(1.0 / (mixture.weights**2).sum(axis=0)),
        summary=scores(y[chosen], mixture),
        residuals=residuals,
        coverage=coverage_curve(transforms),
        uniformity=uniformity(transforms),
    )


def _usable(predictive: Predictive, w: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Locations and scales with harmless values where there is nothing to predict from.

    A run whose loss leaves the trend undetermined is NaN for every draw. A draw with weight that
    fails for one run only would silently change the mixture, so that is an error.
    """
    valid = np.isfinite(predictive.mean) & np.isfinite(predictive.scale2)
    partly = valid[w > 0.0].any(axis=0) & ~valid[w > 0.0].all(axis=0)
    if partly.any():
        draws = np.flatnonzero((w > 0.0) & ~valid[:, partly].all(axis=1))
        raise ValueError(
            f"{len(draws)} draw(s) with positive weight have no leave-one-out prediction, the "
            f"first is draw {draws[0]}: its correlation matrix could not be factorised. Give "
            "such draws weight 0."
        )
    location = np.where(valid, predictive.mean, 0.0)
    scale = np.sqrt(np.where(valid, predictive.scale2, 1.0))
    return location, scale, float(predictive.dof)


def smoothed_log_weights(
    log_weight: FloatArray, smooth_above: float = 0.5
) -> tuple[FloatArray, float]:
    """Pareto smoothed importance sampling (Vehtari et al. 2024): tame the largest weights.

    The largest min(0.2 n, 3 sqrt(n)) weights are replaced by the expected order statistics of a
    generalised Pareto distribution with shape k-hat and the scale of largest likelihood given it;
    none becomes larger than the largest was.

    Parameters
    ----------
    log_weight : (n,) ndarray
        Unnormalised; ``-inf`` for no weight.
    smooth_above : float, default 0.5
        Nothing is changed for k-hat up to this: the weights have a finite variance.

    Returns
    -------
    log_weight : (n,) ndarray
        Their exponentials sum to 1.
    k : float
        k-hat; infinite when there are too few weights to tell.
    """
    positive = np.isfinite(log_weight)
    values = log_weight[positive] - log_weight[positive].max()
    k = pareto_k(values)
    if smooth_above < k < np.inf:
        values = _smoothed(values, k)
    result = np.full_like(log_weight, -np.inf)
    result[positive] = values - np.log(np.exp(values).sum())
    return result, k


def _smoothed(values: FloatArray, k: float) -> FloatArray:
    """Values with the tail replaced, the largest of them being 0."""
    n_tail = int(np.ceil(min(0.2 * len(values), 3.0 * np.sqrt(len(values)))))
    order = np.argsort(values, kind="stable")
    cutoff = np.exp(values[order[-n_tail - 1]])
    tail = order[-n_tail:]
    exceedance = np.exp(values[tail]) - cutoff
    if not exceedance[-1] > 0.0:
        return values
    scale = _pareto_scale(exceedance, k)
    level = (np.arange(n_tail) + 0.5) / n_tail
    result = values.copy()
    # Quantiles of the generalised Pareto distribution, scale ((1 - p)^-k - 1) / k.
    result[tail] = np.log(cutoff + scale * np.expm1(-k * np.log1p(-level)) / k)
    return np.minimum(result, 0.0)


def _pareto_scale(x: FloatArray, k: float) -> float:
    r"""Scale of largest likelihood given the shape k > 0.

    The likelihood equation :math:`\frac1n \sum (1+k) x_i / (s + k x_i) = 1` has a left side that
    falls from (1 + k)/k to 0.
    """

    def excess(s: float) -> float:
        return float(np.mean((1.0 + k) * x / (s + k * x))) - 1.0

    upper = (1.0 + k) * float(x.mean())
    lower = upper
    while excess(lower) < 0.0 and lower > 1e-300 * upper:
        lower *= 0.1
    return float(brentq(excess, lower, upper)) if excess(lower) > 0.0 else lower
