"""Are the probabilities right: coverage of intervals, and the histogram of transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from paims.plots._protocols import Coverage, Uniformity
from paims.plots._style import BAND, BLUE, GREY, VERMILLION, axes_or_new, note

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
