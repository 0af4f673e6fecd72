r"""Scores of predictions: single numbers by which emulators are compared.

Of the continuous ranked probability score, :math:`E|X - y| - \int F (1 - F)\,dx`, the first term
has a closed form. So has the second for one component and for normal mixtures, by pairs of
components. For others it is done by Gauss-Legendre quadrature between quantiles of the mixture,
with the tails beyond in closed form: :math:`\int_b^\infty F(1-F) = E(X-b)_+` up to
:math:`\int_b^\infty (1-F)^2`, which is below 1e-9 of the spread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betaln

from paims._arrays import FloatArray
from paims._student import StudentMixtures, StudentT
from paims._student_table import RELIABLE_DOF
from paims.diagnostics._prediction import Prediction, as_outputs, paired
from paims.gp._checks import as_float_array, check_finite

__all__ = ["Scores", "crps", "nlpd", "rmse", "scores"]

# Levels of the components' quantiles that are pooled, panels, Gauss-Legendre nodes of a panel.
_HALF = (1e-5, 1e-4, 1e-3, 0.007, 0.03, 0.08, 0.16, 0.26, 0.38)
_LEVELS = np.array([*_HALF, 0.5, *(1.0 - np.array(_HALF[::-1]))])
_N_PANELS = 20
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
_MAX_IN_PAIRS = 100
# Doubles in the largest temporary array.
_BLOCK_SIZE = 500_000


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

    def in_units(self, exponent: int) -> Scores:
        """Those of outputs that are 2^exponent times as large."""
        rmse, crps, crps_error = (
            float(np.ldexp(value, exponent)) for value in (self.rmse, self.crps, self.crps_error)
        )
        nlpd = self.nlpd + exponent * np.log(2.0)
        return replace(self, rmse=rmse, nlpd=nlpd, crps=crps, crps_error=crps_error)

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


def nlpd(y: Any, prediction: Prediction | StudentMixtures) -> float:
    """Mean negative log predictive density of ``y`` (k,) under the mixtures."""
    y, mixtures = paired(y, prediction)
    return float(-np.mean(mixtures.logpdf(y)))


def scores(y: Any, prediction: Prediction | StudentMixtures) -> Scores:
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
    y, mixtures = paired(y, prediction)
    below, above = mixtures.tails(y)
    loss = -mixtures.logpdf(y)
    distance = crps(y, mixtures)
    squared = (y - mixtures.mean) ** 2
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


def crps(y: Any, prediction: Prediction | StudentMixtures) -> FloatArray:
    r"""Continuous ranked probability score of each predicted output.

    .. math::
        \mathrm{CRPS}(F, y) = \int (F(x) - 1\{x \ge y\})^2 dx = E|X - y| - \int F (1 - F)\,dx

    (Gneiting & Raftery 2007). It has the units of the output; smaller is better; for a prediction
    without spread it is the absolute error.

    Parameters
    ----------
    y : (k,) array_like
        What was observed.
    prediction : Prediction

    Returns
    -------
    (k,) ndarray
        Infinite if the components have no mean (dof <= 1).
    """
    y, mixtures = paired(y, prediction)
    if mixtures.dof <= 1.0:
        return np.full(len(y), np.inf)
    m, k = mixtures.location.shape
    size = max(1, _BLOCK_SIZE // (m * (m if _in_pairs(mixtures) else len(_LEVELS))))
    result = np.empty(k)
    for start in range(0, k, size):
        part = slice(start, start + size)
        block = mixtures[part]
        error = (block.weights * _mean_distance(block, y[part])).sum(axis=0)
        result[part] = error - _half_mean_difference(block)
    return np.maximum(result, 0.0)


def _mean_excess(z: FloatArray, family: StudentT) -> FloatArray:
    r""":math:`E(T - z)_+ = f(z)(\nu + z^2)/(\nu - 1) - z(1 - F(z))`, T standard."""
    density = np.exp(family.log_density(z))
    # What a table of fewer degrees of freedom misses in the tail, z would make large.
    cdf = family.tabulated_cdf() if family.dof >= RELIABLE_DOF else family.cdf
    factor = 1.0 if family.normal else (family.dof + z**2) / (family.dof - 1.0)
    return np.asarray(density * factor - z * cdf(-z))


def _mean_distance(mixtures: StudentMixtures, x: FloatArray) -> FloatArray:
    """E|X_s - x| of each component ``(m, k)`` at ``x`` (k,)."""
    distance = np.abs(x - mixtures.location)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.minimum(np.where(distance == 0.0, 0.0, distance / mixtures.scale), 1e100)
    # |T - z| = (z - T) + 2 (T - z)_+ : nothing cancels for z >= 0.
    return np.asarray(distance + 2.0 * mixtures.scale * _mean_excess(z, mixtures.family))


def _half_mean_difference(mixtures: StudentMixtures) -> FloatArray:
    r""":math:`\int F(1-F) = \frac12 E|X - X'|`, shape ``(k,)``."""
    if len(mixtures.location) == 1:
        return np.asarray(mixtures.scale[0] * _half_mean_difference_of_one(mixtures.dof))
    return _by_pairs(mixtures) if _in_pairs(mixtures) else _by_quadrature(mixtures)


def _in_pairs(mixtures: StudentMixtures) -> bool:
    """Whether pairs of components are possible, and cheaper than the quadrature."""
    return bool(np.isinf(mixtures.dof)) and len(mixtures.location) <= _MAX_IN_PAIRS


def _half_mean_difference_of_one(dof: float) -> float:
    r"""Half of :math:`E|T - T'|`: :math:`1/\sqrt\pi` for a normal (Jordan et al. 2019 for t)."""
    if np.isinf(dof):
        return float(1.0 / np.sqrt(np.pi))
    log_ratio = betaln(0.5, dof - 0.5) - 2.0 * betaln(0.5, 0.5 * dof)
    return float(2.0 * np.sqrt(dof) / (dof - 1.0) * np.exp(log_ratio))


def _by_pairs(mixtures: StudentMixtures) -> FloatArray:
    """Closed form for normals: X - X' is normal for each pair of components."""
    location, scale, weights = mixtures.location, mixtures.scale, mixtures.weights
    i, j = np.triu_indices(len(location), 1)
    pair = StudentMixtures(
        location[i] - location[j], np.hypot(scale[i], scale[j]), weights[i] * weights[j], np.inf
    )
    between = (pair.weights * _mean_distance(pair, np.zeros(location.shape[1]))).sum(axis=0)
    within = (weights**2 * scale).sum(axis=0) / np.sqrt(np.pi)
    return np.asarray(between + within)


def _by_quadrature(mixtures: StudentMixtures) -> FloatArray:
    """Panels between quantiles of the mixture, tails in closed form."""
    cdf = mixtures.family.tabulated_cdf()
    edges = _edges(mixtures)
    half = 0.5 * np.diff(edges, axis=0)
    middle = 0.5 * (edges[1:] + edges[:-1])
    x = middle[:, None] + half[:, None] * _NODES[:, None]
    x = x.reshape(-1, edges.shape[1])
    F = np.zeros_like(x)
    inverse = 1.0 / np.maximum(mixtures.scale, np.finfo(float).tiny)
    for location, scale, weight in zip(mixtures.location, inverse, mixtures.weights, strict=True):
        F += weight * cdf((x - location) * scale)
    values = (F * (1.0 - F)).reshape(len(half), len(_NODES), -1)
    inside = (half * np.tensordot(_NODE_WEIGHTS, values, axes=(0, 1))).sum(axis=0)
    return np.asarray(inside + _tail(mixtures, edges[0], -1.0) + _tail(mixtures, edges[-1], 1.0))


def _tail(mixtures: StudentMixtures, edge: FloatArray, sign: float) -> FloatArray:
    """E(X - b)_+ for sign 1, E(b - X)_+ for sign -1, shape ``(k,)``."""
    scale = np.maximum(mixtures.scale, np.finfo(float).tiny)
    z = np.clip(sign * (edge - mixtures.location) / scale, -1e100, 1e100)
    excess = np.where(z < 0.0, -z, 0.0) + _mean_excess(np.abs(z), mixtures.family)
    return np.asarray((mixtures.weights * scale * excess).sum(axis=0))


def _edges(mixtures: StudentMixtures) -> FloatArray:
    """Ends of the panels ``(n_panels + 1, k)``: quantiles of the components' pooled quantiles.

    They need not be exact: they only put the nodes where the distribution function bends.
    """
    k = mixtures.location.shape[1]
    quantiles = mixtures.family.quantile(_LEVELS)[:, None, None]
    pooled = (mixtures.location + quantiles * mixtures.scale).reshape(-1, k)
    mass = np.tile(mixtures.weights, (len(_LEVELS), 1))
    order = np.argsort(pooled, axis=0)
    pooled = np.take_along_axis(pooled, order, axis=0)
    mass = np.cumsum(np.take_along_axis(mass, order, axis=0), axis=0)
    edges = np.empty((_N_PANELS + 1, k))
    for j in range(k):
        wanted = np.linspace(0.0, mass[-1, j], _N_PANELS + 1)
        edges[:, j] = pooled[np.minimum(np.searchsorted(mass[:, j], wanted), len(pooled) - 1), j]
    return edges
