r"""Effects of the inputs on the emulator's mean, exactly, with their uncertainty over draws.

The main effect :math:`E[f(x) \mid x_l]` is the mean along one input, averaged over all others.
With inputs uniform on a box, :math:`V = \mathrm{Var} f(x)`,

.. math::
    S_l = \mathrm{Var}\, E[f \mid x_l] / V, \qquad
    T_l = E\, \mathrm{Var}[f \mid x_{-l}] / V,

the share of the variance that input l explains alone, and the share that it takes part in. Terms
:math:`c_i \prod_l \varphi_{il}(x_l)` of the mean give, with the integrals :math:`R_l` of the
factors, the matrices :math:`C_l` of covariances of the factors over :math:`x_l`, and
:math:`M_l = C_l + R_l R_l^T`,

.. math::
    V S_l = (c \circ R_{-l})^T C_l (c \circ R_{-l}), \quad
    V T_l = c^T (C_l \circ \textstyle\prod_{k \ne l} M_k) c, \quad
    V = c^T (\textstyle\prod_l M_l) c - (E f)^2

with :math:`R_{-l} = \prod_{k \ne l} R_k`. Huge terms cancel in the last two, which are therefore
summed in twice the digits of a double.

For the mixture's mean, a quadratic form Q obeys :math:`Q(\bar f) = \sum_s w_s Q(f_s) - \sum_s w_s
Q(f_s - \bar f)`. The first sum is exact; the second, small when the draws agree, is an average
over Sobol' points. First-order indices are exact for the mixture too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import qmc

from paims._arrays import FloatArray
from paims._parallel import single_threaded_blas
from paims.diagnostics import _double_double as dd
from paims.diagnostics._separable import (
    Block,
    SeparableMeans,
    as_names,
    products_of_others,
    weighted_quantile,
)
from paims.gp import Posterior

__all__ = ["MainEffects", "SobolIndices", "main_effects", "sobol_indices"]

_LOG2_POINTS = 8


@dataclass(frozen=True, eq=False)
class SobolIndices:
    """Sobol' indices, of each draw's mean and of the mixture's.

    Attributes
    ----------
    names : tuple of str
        Names of the p inputs.
    first, total : (p,) ndarray
        Indices of the mixture's mean.
    variance : float
        Variance of the mixture's mean over the box, in the posterior's units of the output.
    first_draws, total_draws : (m, p) ndarray
        Indices of the mean given each draw (with positive weight).
    variance_draws : (m,) ndarray
    weights : (m,) ndarray
    first_interval, total_interval : (2, p) ndarray
        5 % and 95 % quantiles over the draws.
    """

    names: tuple[str, ...]
    first: FloatArray
    total: FloatArray
    variance: float
    first_draws: FloatArray
    total_draws: FloatArray
    variance_draws: FloatArray
    weights: FloatArray
    first_interval: FloatArray
    total_interval: FloatArray

    @property
    def first_std(self) -> FloatArray:
        """Standard deviation of the first-order indices over the draws, ``(p,)``."""
        return _std(self.first_draws, self.weights)

    @property
    def total_std(self) -> FloatArray:
        """Standard deviation of the total indices over the draws, ``(p,)``."""
        return _std(self.total_draws, self.weights)

    @property
    def interactions(self) -> float:
        """Share of the variance that no single input explains, 1 - sum of ``first``."""
        return float(1.0 - self.first.sum())

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        order = np.argsort(-self.total)
        listed = ", ".join(
            f"{self.names[i]} {100 * self.total[i]:.3g} % "
            f"({100 * self.total_interval[0, i]:.3g}-{100 * self.total_interval[1, i]:.3g})"
            for i in order
        )
        return (
            f"Share of the output's variance that each input takes part in: {listed}. "
            f"Interactions make {100 * self.interactions:.3g} %."
        )


def _std(values: FloatArray, weights: FloatArray) -> FloatArray:
    mean = weights @ values
    return np.asarray(np.sqrt(weights @ (values - mean) ** 2))


def sobol_indices(
    posterior: Posterior, u: Any, weights: Any = None, *, box: Any = None, names: Any = None
) -> SobolIndices:
    """First-order and total Sobol' indices of the emulator's mean.

    Parameters
    ----------
    posterior : Posterior
        With a polynomial trend (not a user's function).
    u : (m, n_params) array_like
        Draws of the hyper-parameters.
    weights : (m,) array_like, optional
        Their weights; equal by default.
    box : (p, 2) array_like, optional
        The inputs are uniform between these ends; the training range by default.
    names : sequence of str, optional
        Names of the inputs.

    Returns
    -------
    SobolIndices
        NaN where a mean does not vary over the box.
    """
    means = SeparableMeans(posterior, u, weights, box)
    p = means.n_inputs
    points = box_points(means.box, _LOG2_POINTS)
    parts = np.empty((means.n_draws, 2 * p + 1))
    mixture_main = [np.zeros(len(rule.nodes)) for rule in means.rules]
    sums = np.zeros((2, p + 1, len(points)))
    with single_threaded_blas():
        for block in means.blocks():
            w = means.weights[block.rows]
            parts[block.rows], main = _variances(means, block)
            for i in range(p):
                mixture_main[i] += w @ main[i]
            effects = deviations(means, block, points)
            sums[0] += np.einsum("b,lbk->lk", w, effects)
            sums[1] += np.einsum("b,lbk->lk", w, effects**2)
    first, total, variance = parts[:, :p], parts[:, p : 2 * p], parts[:, -1]
    disagreement = (sums[1] - sums[0] ** 2).mean(axis=1)
    first_mixture = np.array(
        [rule.weights @ main**2 for rule, main in zip(means.rules, mixture_main, strict=True)]
    )
    total_mixture = means.weights @ total - disagreement[1:]
    variance_mixture = float(means.weights @ variance - disagreement[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        first_draws, total_draws = first / variance[:, None], total / variance[:, None]
        shares = first_mixture / variance_mixture, total_mixture / variance_mixture
    levels = np.array([0.05, 0.95])
    return SobolIndices(
        names=as_names(names, p),
        first=shares[0],
        # Sampling error of the correction must not bring the total below the first-order index.
        total=np.maximum(shares[1], shares[0]),
        variance=variance_mixture,
        first_draws=first_draws,
        total_draws=total_draws,
        variance_draws=variance,
        weights=means.weights,
        first_interval=weighted_quantile(first_draws, means.weights, levels),
        total_interval=weighted_quantile(total_draws, means.weights, levels),
    )


def box_points(box: FloatArray, log2_points: int) -> FloatArray:
    """Sobol' points in a box, in the middle of their cells."""
    unit = qmc.Sobol(len(box), scramble=False).random_base2(log2_points) + 0.5 ** (log2_points + 1)
    return np.asarray(box[:, 0] + unit * np.diff(box)[:, 0])


def _variances(means: SeparableMeans, block: Block) -> tuple[FloatArray, list[FloatArray]]:
    """Parts V S_l, V T_l and V of the variance ``(b, 2 p + 1)``, and centred main effects.

    The main effects are lists of ``(b, n_nodes)`` at the nodes of each input's rule.
    """
    p, c, R = means.n_inputs, block.coefficients, block.integrals
    others = products_of_others(R)
    result = np.empty((len(c), 2 * p + 1))
    row, column = np.triu_indices(means.n_terms)
    main, covariances, moments = [], [], []
    for i, (rule, side) in enumerate(zip(means.rules, block.sides, strict=True)):
        centred = side - R[i][:, None]
        main.append((centred @ (c * others[i])[:, :, None])[:, :, 0])
        result[:, i] = main[i] ** 2 @ rule.weights
        high, low = dd.gram(centred * np.sqrt(rule.weights)[:, None])
        covariances.append((high[:, row, column], low[:, row, column]))
        moments.append(dd.add(covariances[i], dd.two_product(R[i][:, row], R[i][:, column])))
    c, mean = means.without_mean(block)
    twice = np.where(row == column, 1.0, 2.0)
    # Products of coefficients times the moments of the inputs before one; then those after it.
    before = [dd.two_product(c[:, row] * twice, c[:, column])]
    for M in moments:
        before.append(dd.multiply(before[-1], M))
    result[:, -1] = dd.total(before[-1]) - mean**2
    after = covariances[-1]
    result[:, 2 * p - 1] = dd.total(dd.multiply(before[p - 1], after))
    after = moments[-1]
    for i in range(p - 2, -1, -1):
        following = dd.multiply(covariances[i], after)
        result[:, p + i] = dd.total(dd.multiply(before[i], following))
        after = dd.multiply(after, moments[i])
    # Round-off must not leave a total below its first-order part.
    result[:, p : 2 * p] = np.maximum(result[:, p : 2 * p], result[:, :p])
    return result, main


def deviations(means: SeparableMeans, block: Block, points: FloatArray) -> FloatArray:
    r"""Deviations of the mean at points ``(k, p)`` from its averages, shape ``(p + 1, b, k)``.

    First :math:`f(x) - E f`, then :math:`f(x) - E[f \mid x_{-l}]` for each l: the means of their
    squares are V and the V T_l.
    """
    c = block.coefficients[:, :, None]
    return np.stack([(term @ c)[:, :, 0] for term in deviation_terms(means, block, points)])


def deviation_terms(
    means: SeparableMeans, block: Block, points: FloatArray
) -> Iterator[FloatArray]:
    """:func:`deviations` term by term: p + 1 arrays ``(b, k, n_terms)``."""
    p, R = means.n_inputs, block.integrals
    factors = [means.factor(block.rows, i, points[:, i]) for i in range(p)]
    before = [np.ones_like(factors[0])]
    for factor in factors:
        before.append(before[-1] * factor)
    yield before[-1] - R.prod(axis=0)[:, None]
    after = np.ones_like(factors[0])
    centred = []
    for i in range(p - 1, -1, -1):
        term = factors[i] - R[i][:, None]
        term *= before[i]
        term *= after
        centred.append(term)
        after *= factors[i]
    yield from reversed(centred)


@dataclass(frozen=True, eq=False)
class MainEffects:
    """Main effects of p inputs.

    Attributes
    ----------
    names : tuple of str
    x : (p, k) ndarray
        Values of each input.
    mean : (p, k) ndarray
        Effect in the mixture's mean.
    std : (p, k) ndarray
        Standard deviation over draws.
    lower, upper : (p, k) ndarray
        5 % and 95 % quantiles over draws.
    overall : float
        Average of the mixture's mean over the box.
    """

    names: tuple[str, ...]
    x: FloatArray
    mean: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray
    overall: float

    @property
    def swing(self) -> FloatArray:
        """Largest minus smallest value of each effect, ``(p,)``."""
        return np.asarray(np.ptp(self.mean, axis=1))

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        order = np.argsort(-self.swing)
        listed = ", ".join(f"{self.names[i]} {self.swing[i]:.3g}" for i in order)
        return f"Moved alone over its range, each input changes the average output by: {listed}."

    def in_units(
        self, x_offset: Any, x_scale: Any, y_offset: float = 0.0, y_scale: float = 1.0
    ) -> MainEffects:
        """Same effects with inputs ``x_offset + x_scale x``, outputs ``y_offset + y_scale y``.

        Parameters
        ----------
        x_offset, x_scale : float or (p,) array_like
        y_offset, y_scale : float
            ``y_scale`` must be positive.
        """
        if not y_scale > 0.0:
            raise ValueError(f"y_scale must be positive; got {y_scale!r}.")
        offset = np.broadcast_to(np.asarray(x_offset, dtype=np.float64), (len(self.x),))
        scale = np.broadcast_to(np.asarray(x_scale, dtype=np.float64), (len(self.x),))
        return replace(
            self,
            x=offset[:, None] + scale[:, None] * self.x,
            mean=y_offset + y_scale * self.mean,
            std=y_scale * self.std,
            lower=y_offset + y_scale * self.lower,
            upper=y_offset + y_scale * self.upper,
            overall=y_offset + y_scale * self.overall,
        )


def main_effects(
    posterior: Posterior,
    u: Any,
    weights: Any = None,
    *,
    n_points: int = 41,
    box: Any = None,
    names: Any = None,
) -> MainEffects:
    """Main effects of all inputs, with their spread over draws.

    Parameters
    ----------
    posterior, u, weights, box, names
        As in :func:`sobol_indices`.
    n_points : int, default 41
        Values of each input, equally spaced from end to end of the box.

    Returns
    -------
    MainEffects
        In the posterior's units; see :meth:`MainEffects.in_units`.
    """
    if n_points < 2:
        raise ValueError(f"n_points must be at least 2; got {n_points!r}.")
    means = SeparableMeans(posterior, u, weights, box)
    p = means.n_inputs
    x = np.linspace(means.box[:, 0], means.box[:, 1], n_points, axis=1)
    effects = np.empty((means.n_draws, p, n_points))
    overall = 0.0
    with single_threaded_blas():
        for block in means.blocks():
            others = products_of_others(block.integrals)
            for i in range(p):
                c = (block.coefficients * others[i])[:, :, None]
                effects[block.rows, i] = (means.factor(block.rows, i, x[i]) @ c)[:, :, 0]
            averages = (block.coefficients * block.integrals.prod(axis=0)).sum(axis=1)
            overall += float(means.weights[block.rows] @ averages)
    mean = np.tensordot(means.weights, effects, axes=1)
    std = np.sqrt(np.tensordot(means.weights, (effects - mean) ** 2, axes=1))
    lower, upper = weighted_quantile(effects, means.weights, np.array([0.05, 0.95]))
    return MainEffects(as_names(names, p), x, mean, std, lower, upper, overall)
