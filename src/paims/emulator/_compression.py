r"""A mixture of few components that predicts as one of many.

The components are chosen by :func:`paims.emulator._thinning.thin`; their weights are then moved
from :math:`w^0` to the non-negative ones that minimise

.. math::
    \frac1J \sum_j \Big(\frac{\mu_j - \mu^*_j}{\sigma^*_j}\Big)^2
    + \frac1J \sum_j \Big(\frac{s_j}{\sigma^{*2}_j} - 1\Big)^2
    + \rho \sum_c \frac{(w_c - w^0_c)^2}{w^0_c},

with the mean :math:`\mu` and the second moment :math:`s` about :math:`\mu^*` of the mixture at J
points of the training box, the star for those of the many, and a small :math:`\rho` that keeps
the weights near to where they came from. That takes away nine tenths of the noise of thinning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls
from scipy.stats import qmc

from paims._arrays import FloatArray
from paims.emulator._ensemble import Ensemble
from paims.emulator._thinning import thin

_N_FITTED = 64
_N_HELD_OUT = 32
_N_RUNS = 32
_RHO = 1e-4
# Makes the weights sum to 1 (the rest is done by a division).
_SUM_WEIGHT = 1e3
# Standard deviations below this share of the output's count as this share: where the emulator
# interpolates there is nothing to compare with.
_LEAST_STD = 1e-6


@dataclass(frozen=True)
class Compression:
    """What was lost: measured at points that the weights were not fitted at.

    Those are a Sobol' set in the box of the runs, and (some of) the runs themselves.

    Attributes
    ----------
    n_components, n_before : int
    mean_error, std_error : float
        Root mean square of the difference in the mean, in units of the predictive standard
        deviation, and of the relative difference in the standard deviation.
    max_mean_error, max_std_error : float
        The largest.
    """

    n_components: int
    n_before: int
    mean_error: float
    std_error: float
    max_mean_error: float
    max_std_error: float

    def __str__(self) -> str:
        return (
            f"{self.n_components} components in place of {self.n_before}: the mean differs by "
            f"{self.mean_error:.2g} standard deviations (at most {self.max_mean_error:.2g}), the "
            f"standard deviation by {self.std_error:.2%} (at most {self.max_std_error:.2%})"
        )


def compress(
    ensemble: Ensemble, n_components: int, rng: np.random.Generator
) -> tuple[Ensemble, Compression]:
    """Keep at most ``n_components`` of an ensemble, with new weights, and measure the loss.

    Draws at which the correlation matrix cannot be factorised, which only an edge of the
    numerically possible leaves in a sample, are dropped first.
    """
    fitted, held_out = _points(ensemble)
    predicted = ensemble.posterior.predict(ensemble.draws, np.vstack([fitted, held_out]))
    usable = np.isfinite(predicted.mean).all(axis=1) & np.isfinite(predicted.scale2).all(axis=1)
    if not usable.any():
        raise ValueError(
            "The correlation matrix cannot be factorised at any of the draws. Use "
            "nugget='estimate' or a larger nugget."
        )
    draws, weights = ensemble.draws[usable], ensemble.weights[usable]
    weights = weights / weights.sum()
    mean, variance = predicted.mean[usable], predicted.variance[usable]
    target_mean, target_std = _moments(mean, variance, weights)
    index, new = thin(draws, weights, n_components, rng)
    if len(index) < len(draws):
        part = slice(len(fitted))
        new = _fit_weights(
            mean[index, part], variance[index, part], new, target_mean[part], target_std[part]
        )
        index, new = index[new > 0.0], new[new > 0.0]
    few_mean, few_std = _moments(mean[index], variance[index], new)
    part = slice(len(fitted), None)
    mean_off = np.abs((few_mean - target_mean) / target_std)[part]
    std_off = np.abs(few_std / target_std - 1.0)[part]
    report = Compression(
        n_components=len(index),
        n_before=len(ensemble.draws),
        mean_error=float(np.sqrt(np.mean(mean_off**2))),
        std_error=float(np.sqrt(np.mean(std_off**2))),
        max_mean_error=float(mean_off.max()),
        max_std_error=float(std_off.max()),
    )
    return replace(ensemble, draws=draws[index], weights=new), report


def _points(ensemble: Ensemble) -> tuple[FloatArray, FloatArray]:
    """Points to fit the weights at, and others (with runs among them) to measure at."""
    X = ensemble.posterior.X
    # Not scrambled: the same box has the same points. The first is a corner, which is no loss.
    box = qmc.Sobol(X.shape[1], scramble=False)
    fitted = box.random(_N_FITTED)
    runs = X[:: -(-len(X) // _N_RUNS)]
    return fitted, np.vstack([box.random(_N_HELD_OUT), runs])


def _moments(
    mean: FloatArray, variance: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the mixture at each point."""
    centre = weights @ mean
    square = weights @ variance + weights @ (mean - centre) ** 2
    return centre, np.maximum(np.sqrt(square), _LEAST_STD)


def _fit_weights(
    mean: FloatArray,
    variance: FloatArray,
    weights: FloatArray,
    target_mean: FloatArray,
    target_std: FloatArray,
) -> FloatArray:
    """The weights that minimise the module's criterion, as a non-negative least squares."""
    off = (mean - target_mean) / target_std
    second = variance / target_std**2 + off**2 - 1.0
    matching = np.hstack([off, second]).T / np.sqrt(len(target_mean))
    staying = np.diag(np.sqrt(_RHO / weights))
    total = np.full((1, len(weights)), _SUM_WEIGHT)
    try:
        found, _ = nnls(
            np.vstack([matching, staying, total]),
            np.concatenate([np.zeros(len(matching)), np.sqrt(_RHO * weights), [_SUM_WEIGHT]]),
            maxiter=30 * len(weights),
        )
    except RuntimeError:
        # Out of iterations: thinned weights are valid too, only noisier, as the report will say.
        return weights
    fitted: FloatArray = found / found.sum()
    return fitted
