r"""Continuous ranked probability score of mixtures of Student-t or normal distributions.

.. math::
    \mathrm{CRPS}(F, y) = \int (F(x) - 1\{x \ge y\})^2 dx = E|X - y| - \int F (1 - F)\,dx

(Gneiting & Raftery 2007). It has the units of the output; smaller is better; for a prediction
without spread it is the absolute error.

The first term has a closed form. So has the second for one component and for normal mixtures, by
pairs of components. For others it is done by Gauss-Legendre quadrature between quantiles of the
mixture, with the tails beyond in closed form: :math:`\int_b^\infty F(1-F) = E(X-b)_+` up to
:math:`\int_b^\infty (1-F)^2`, which is below 1e-9 of the spread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaln, ndtri, stdtrit

from paims._arrays import FloatArray
from paims.diagnostics._marginals import (
    Marginals,
    Prediction,
    as_marginals,
    as_outputs,
    standard_cdf,
    standard_logpdf,
)
from paims.diagnostics._student_table import fast_cdf

# Levels of the components' quantiles that are pooled, panels, Gauss-Legendre nodes of a panel.
_HALF = (1e-5, 1e-4, 1e-3, 0.007, 0.03, 0.08, 0.16, 0.26, 0.38)
_LEVELS = np.array([*_HALF, 0.5, *(1.0 - np.array(_HALF[::-1]))])
_N_PANELS = 20
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
_MAX_IN_PAIRS = 100
# Doubles in the largest temporary array.
_BLOCK_SIZE = 500_000


def crps(y: Any, prediction: Prediction) -> FloatArray:
    """Continuous ranked probability score of each predicted output.

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
    marginals = as_marginals(prediction)
    return crps_of_marginals(as_outputs(y, marginals.location.shape[1]), marginals)


def crps_of_marginals(y: FloatArray, marginals: Marginals) -> FloatArray:
    """:func:`crps` for checked arrays; its weights may differ from output to output."""
    if marginals.dof <= 1.0:
        return np.full(len(y), np.inf)
    m, k = marginals.location.shape
    size = max(1, _BLOCK_SIZE // (m * (m if _in_pairs(marginals) else len(_LEVELS))))
    result = np.empty(k)
    for start in range(0, k, size):
        part = slice(start, start + size)
        weights = np.broadcast_to(marginals.weights, (m, k))[:, part]
        block = Marginals(
            marginals.location[:, part], marginals.scale[:, part], weights, marginals.dof
        )
        error = (weights * _mean_distance(block, y[part])).sum(axis=0)
        result[part] = error - _half_mean_difference(block)
    return np.maximum(result, 0.0)


def _mean_excess(z: FloatArray, dof: float) -> FloatArray:
    r""":math:`E(T - z)_+ = f(z)(\nu + z^2)/(\nu - 1) - z(1 - F(z))`, T standard."""
    density = np.exp(standard_logpdf(z, dof))
    factor = 1.0 if np.isinf(dof) else (dof + z**2) / (dof - 1.0)
    return np.asarray(density * factor - z * standard_cdf(dof)(-z))


def _mean_distance(marginals: Marginals, x: FloatArray) -> FloatArray:
    """E|X_s - x| of each component ``(m, k)`` at ``x`` (k,)."""
    distance = np.abs(x - marginals.location)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.minimum(np.where(distance == 0.0, 0.0, distance / marginals.scale), 1e100)
    # |T - z| = (z - T) + 2 (T - z)_+ : nothing cancels for z >= 0.
    return np.asarray(distance + 2.0 * marginals.scale * _mean_excess(z, marginals.dof))


def _half_mean_difference(marginals: Marginals) -> FloatArray:
    r""":math:`\int F(1-F) = \frac12 E|X - X'|`, shape ``(k,)``."""
    if len(marginals.location) == 1:
        return np.asarray(marginals.scale[0] * _half_mean_difference_of_one(marginals.dof))
    return _by_pairs(marginals) if _in_pairs(marginals) else _by_quadrature(marginals)


def _in_pairs(marginals: Marginals) -> bool:
    """Whether pairs of components are possible, and cheaper than the quadrature."""
    return bool(np.isinf(marginals.dof)) and len(marginals.location) <= _MAX_IN_PAIRS


def _half_mean_difference_of_one(dof: float) -> float:
    r"""Half of :math:`E|T - T'|`: :math:`1/\sqrt\pi` for a normal (Jordan et al. 2019 for t)."""
    if np.isinf(dof):
        return float(1.0 / np.sqrt(np.pi))
    log_ratio = betaln(0.5, dof - 0.5) - 2.0 * betaln(0.5, 0.5 * dof)
    return float(2.0 * np.sqrt(dof) / (dof - 1.0) * np.exp(log_ratio))


def _by_pairs(marginals: Marginals) -> FloatArray:
    """Closed form for normals: X - X' is normal for each pair of components."""
    location, scale, weights = marginals.location, marginals.scale, marginals.weights
    i, j = np.triu_indices(len(location), 1)
    pair = Marginals(
        location[i] - location[j], np.hypot(scale[i], scale[j]), weights[i] * weights[j], np.inf
    )
    between = (pair.weights * _mean_distance(pair, np.zeros(location.shape[1]))).sum(axis=0)
    within = (weights**2 * scale).sum(axis=0) / np.sqrt(np.pi)
    return np.asarray(between + within)


def _by_quadrature(marginals: Marginals) -> FloatArray:
    """Panels between quantiles of the mixture, tails in closed form."""
    cdf = fast_cdf(marginals.dof)
    edges = _edges(marginals)
    half = 0.5 * np.diff(edges, axis=0)
    middle = 0.5 * (edges[1:] + edges[:-1])
    x = middle[:, None] + half[:, None] * _NODES[:, None]
    x = x.reshape(-1, edges.shape[1])
    F = np.zeros_like(x)
    inverse = 1.0 / np.maximum(marginals.scale, np.finfo(float).tiny)
    for location, scale, weight in zip(
        marginals.location, inverse, marginals.weights, strict=True
    ):
        F += weight * cdf((x - location) * scale)
    values = (F * (1.0 - F)).reshape(len(half), len(_NODES), -1)
    inside = (half * np.tensordot(_NODE_WEIGHTS, values, axes=(0, 1))).sum(axis=0)
    return np.asarray(inside + _tail(marginals, edges[0], -1.0) + _tail(marginals, edges[-1], 1.0))


def _tail(marginals: Marginals, edge: FloatArray, sign: float) -> FloatArray:
    """E(X - b)_+ for sign 1, E(b - X)_+ for sign -1, shape ``(k,)``."""
    scale = np.maximum(marginals.scale, np.finfo(float).tiny)
    z = np.clip(sign * (edge - marginals.location) / scale, -1e100, 1e100)
    excess = np.where(z < 0.0, -z, 0.0) + _mean_excess(np.abs(z), marginals.dof)
    return np.asarray((marginals.weights * scale * excess).sum(axis=0))


def _edges(marginals: Marginals) -> FloatArray:
    """Ends of the panels ``(n_panels + 1, k)``: quantiles of the components' pooled quantiles.

    They need not be exact: they only put the nodes where the distribution function bends.
    """
    k = marginals.location.shape[1]
    quantiles = _standard_quantile(_LEVELS, marginals.dof)[:, None, None]
    pooled = (marginals.location + quantiles * marginals.scale).reshape(-1, k)
    mass = np.tile(marginals.weights, (len(_LEVELS), 1))
    order = np.argsort(pooled, axis=0)
    pooled = np.take_along_axis(pooled, order, axis=0)
    mass = np.cumsum(np.take_along_axis(mass, order, axis=0), axis=0)
    edges = np.empty((_N_PANELS + 1, k))
    for j in range(k):
        wanted = np.linspace(0.0, mass[-1, j], _N_PANELS + 1)
        edges[:, j] = pooled[np.minimum(np.searchsorted(mass[:, j], wanted), len(pooled) - 1), j]
    return edges


def _standard_quantile(level: FloatArray, dof: float) -> FloatArray:
    return np.asarray(ndtri(level) if np.isinf(dof) else stdtrit(dof, level))
