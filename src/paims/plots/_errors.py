"""Errors of predictions: one by one, freed of their correlation, all together; probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from paims._arrays import FloatArray
from paims.plots._style import BAND, BLUE, GREY, INK, VERMILLION, axes_or_new, label_points, note

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from paims.diagnostics import (
        Coverage,
        JointErrors,
        LeaveOneOut,
        Mahalanobis,
        QuantileQuantile,
        Residuals,
        Uniformity,
    )

__all__ = [
    "coverage",
    "joint_errors",
    "mahalanobis",
    "pareto_k",
    "pit_histogram",
    "quantile_quantile",
    "residuals",
]

_MAX_LABELS = 8


def residuals(
    result: Residuals,
    ax: Axes | None = None,
    *,
    x: Any = None,
    label: str | None = None,
    numbers: bool = True,
) -> Axes:
    """Standardised residuals (as normal scores) with their 95 % band.

    Parameters
    ----------
    result : Residuals
    ax : Axes, optional
    x : (k,) array_like, optional
        What to plot them against, such as an input; the predictive mean by default.
    label : str, optional
        Name of ``x``.
    numbers : bool, default True
        Whether to write the numbers of the farthest beside them.

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax)
    at = result.mean if x is None else np.asarray(x, dtype=np.float64)
    _band(ax, 1.96)
    outside = np.abs(result.scores) > 1.96
    _points(ax, at, result.scores, outside)
    ax.set_xlabel((label or "") if x is not None else (label or "predicted mean"))
    ax.set_ylabel("standardised residual")
    note(ax, f"{result.n_outside} of {len(at)} outside 95 %")
    _room(ax, result.scores, 1.96)
    if numbers:
        _number(ax, at, result.scores, outside, np.arange(len(at)))
    return ax


def joint_errors(result: JointErrors, ax: Axes | None = None) -> Axes:
    """Uncorrelated errors in their order, with their 95 % band.

    Parameters
    ----------
    result : JointErrors
        Of :func:`paims.diagnostics.cholesky_errors` or ``eigen_errors``.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax)
    place = np.arange(1, result.rank + 1)
    _band(ax, result.bound)
    ax.vlines(place, 0.0, result.errors, color=GREY, linewidth=0.6)
    outside = np.abs(result.errors) > result.bound
    _points(ax, place, result.errors, outside)
    names = {"cholesky": "pivoting order", "eigen": "order of the eigenvalues"}
    ax.set_xlabel(names[result.kind])
    ax.set_ylabel({"cholesky": "pivoted-Cholesky error", "eigen": "eigen error"}[result.kind])
    note(ax, f"{result.n_outside} of {result.rank} outside 95 %")
    _room(ax, result.errors, result.bound)
    _number(ax, place, result.errors, outside, result.order)
    return ax


def quantile_quantile(result: QuantileQuantile, ax: Axes | None = None) -> Axes:
    """Ordered scores against normal quantiles, with a pointwise 95 % band.

    Parameters
    ----------
    result : QuantileQuantile
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax, 3.6, 3.4)
    ax.fill_between(result.theoretical, result.lower, result.upper, color=BAND, linewidth=0)
    ends = result.theoretical[[0, -1]]
    ax.plot(ends, ends, color=GREY, linewidth=1.0)
    outside = (result.ordered < result.lower) | (result.ordered > result.upper)
    _points(ax, result.theoretical, result.ordered, outside)
    far = outside & (np.abs(result.ordered) > 1.96)
    _number(ax, result.theoretical, result.ordered, far, result.order)
    ax.set_xlabel("quantile of a standard normal")
    ax.set_ylabel("standardised residual")
    return ax


def mahalanobis(result: Mahalanobis, ax: Axes | None = None) -> Axes:
    """Mahalanobis distance beside its usual range.

    Parameters
    ----------
    result : Mahalanobis
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax, 4.6, 1.4)
    ax.plot(
        [result.lower, result.upper], [0.0, 0.0], color=BAND, linewidth=12, solid_capstyle="butt"
    )
    ax.plot([result.median] * 2, [-0.2, 0.2], color=GREY, linewidth=1.5)
    ax.plot(
        [result.distance2], [0.0], "D", color=BLUE if result.passed else VERMILLION, markersize=7
    )
    ax.annotate(
        f"observed {result.distance2:.4g}, p = {result.p_value:.2g}",
        (result.distance2, 0.0),
        xytext=(0, 13),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        color=INK,
    )
    ax.set_ylim(-1.0, 1.6)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.margins(x=0.15)
    ax.set_xlabel(f"squared Mahalanobis distance; band: usual 95 % ({result.reference})")
    return ax


def pareto_k(result: LeaveOneOut, ax: Axes | None = None) -> Axes:
    """Pareto k-hat of each left-out run, with the limit of 0.7.

    Parameters
    ----------
    result : LeaveOneOut
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax)
    k = result.pareto_k
    run = np.arange(len(k))
    shown = np.isfinite(k)
    for limit, text in ((0.5, "good below 0.5"), (0.7, "unreliable above 0.7")):
        ax.axhline(limit, color=GREY, linewidth=0.8, linestyle="--" if limit == 0.7 else ":")
        ax.text(1.0, limit, text, transform=ax.get_yaxis_transform(), ha="right", va="bottom",
                fontsize=7, color=INK)  # fmt: skip
    _points(ax, run[shown], k[shown], k[shown] > 0.7)
    ax.set_xlabel("run")
    ax.set_ylabel("Pareto $\\hat{k}$ without it")
    top = float(k[shown].max()) if shown.any() else 0.0
    ax.set_ylim(top=max(0.8, top + 0.1))
    _number(ax, run[shown], k[shown], k[shown] > 0.7, run[shown])
    return ax


def coverage(result: Coverage, ax: Axes | None = None) -> Axes:
    """Empirical against nominal coverage, with a pointwise 95 % band.

    Parameters
    ----------
    result : Coverage
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax, 3.6, 3.4)
    nominal = np.concatenate([[0.0], result.nominal, [1.0]])
    lower = np.concatenate([[0.0], result.lower, [1.0]])
    upper = np.concatenate([[0.0], result.upper, [1.0]])
    ax.fill_between(nominal, lower, upper, color=BAND, linewidth=0)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=1.0)
    outside = (result.empirical < result.lower) | (result.empirical > result.upper)
    ax.plot(result.nominal, result.empirical, color=BLUE, linewidth=1.2)
    ax.plot(result.nominal[~outside], result.empirical[~outside], "o", color=BLUE, markersize=3.5)
    ax.plot(
        result.nominal[outside], result.empirical[outside], "X", color=VERMILLION, markersize=6
    )
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, 1.0)
    ax.set_aspect("equal")
    ax.set_xlabel("nominal level of the interval")
    ax.set_ylabel("share of outputs inside")
    note(ax, "too wide", 0.04, 0.94)
    note(ax, "too narrow", 0.96, 0.06)
    return ax


def pit_histogram(result: Uniformity, ax: Axes | None = None) -> Axes:
    """Histogram of the probability-integral transforms, with a pointwise 95 % band.

    Parameters
    ----------
    result : Uniformity
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    from matplotlib.colors import to_rgb  # noqa: PLC0415 - an extra

    ax = axes_or_new(ax)
    ax.axhspan(result.lower, result.upper, color=BAND, linewidth=0, zorder=0)
    ax.axhline(len(result.pit) / len(result.counts), color=GREY, linewidth=1.0, zorder=1)
    outside = (result.counts < result.lower) | (result.counts > result.upper)
    width = np.diff(result.edges)
    for chosen, colour, hatch in ((~outside, BLUE, None), (outside, VERMILLION, "///")):
        ax.bar(
            result.edges[:-1][chosen],
            result.counts[chosen],
            width[chosen],
            align="edge",
            facecolor=(*to_rgb(colour), 0.25),
            edgecolor=colour,
            linewidth=1.4,
            hatch=hatch,
            zorder=2,
        )
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(0.0, 1.25 * max(result.upper, float(result.counts.max())))
    ax.set_xlabel("probability-integral transform")
    ax.set_ylabel("number of outputs")
    note(ax, f"Kolmogorov-Smirnov p = {result.ks_p:.2g}, Anderson-Darling p = {result.ad_p:.2g}")
    return ax


def _band(ax: Axes, bound: float) -> None:
    ax.axhspan(-bound, bound, color=BAND, linewidth=0, zorder=0)
    ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)


def _points(ax: Axes, x: Any, y: FloatArray, outside: Any) -> None:
    """Dots inside, crosses outside."""
    x = np.asarray(x)
    ax.plot(x[~outside], y[~outside], "o", color=BLUE, markersize=3.5, zorder=3)
    ax.plot(x[outside], y[outside], "X", color=VERMILLION, markersize=5.5, zorder=3)


def _number(ax: Axes, x: Any, y: FloatArray, chosen: Any, numbers: Any) -> None:
    """Write the numbers of the farthest of some points beside them."""
    far = np.flatnonzero(chosen)
    far = far[np.argsort(-np.abs(y[far]), kind="stable")][:_MAX_LABELS]
    label_points(ax, np.asarray(x)[far], y[far], [str(int(numbers[i])) for i in far])


def _room(ax: Axes, values: FloatArray, bound: float) -> None:
    """Let the axis hold the band, and the remark above it."""
    reach = 1.15 * max(bound, float(np.abs(values[np.isfinite(values)]).max(initial=0.0)))
    ax.set_ylim(-reach, 1.15 * reach)
