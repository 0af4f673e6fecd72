"""Distributions beside each other: boxes of draws, marginals, and the spread over test sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paims.plots._style import BAND, BLUE, INK, VERMILLION, axes_or_new, new_figure, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def box_plots(
    quantiles: Any, names: Sequence[str], ax: Axes | None = None, *, label: str = ""
) -> Axes:
    """Standing boxes: median, quartiles, and whiskers to the ends that are given.

    Parameters
    ----------
    quantiles : (5, p) array_like
        Lower end, quartile, median, quartile and upper end of each of p quantities.
    names : sequence of str
    ax : Axes, optional
    label : str
        Of the vertical axis.

    Returns
    -------
    Axes
    """
    values = np.asarray(quantiles, dtype=np.float64)
    if values.shape != (5, len(names)):
        raise ValueError(
            f"quantiles must have shape (5, {len(names)}) for {len(names)} names; got "
            f"{values.shape}."
        )
    ax = axes_or_new(ax, 0.9 + 0.75 * len(names), 3.2)
    place = np.arange(1, len(names) + 1)
    least, low, middle, high, most = values
    ax.vlines(place, least, low, color=BLUE, linewidth=1.2)
    ax.vlines(place, high, most, color=BLUE, linewidth=1.2)
    for end in (least, most):
        ax.hlines(end, place - 0.12, place + 0.12, color=BLUE, linewidth=1.2)
    ax.bar(place, high - low, 0.5, bottom=low, facecolor=BAND, edgecolor=BLUE, linewidth=1.2)
    ax.hlines(middle, place - 0.25, place + 0.25, color=VERMILLION, linewidth=2.0)
    ax.set_xticks(place, names)
    ax.set_xlim(0.4, len(names) + 0.6)
    ax.set_ylabel(label)
    return ax


def marginals(
    draws: Any, weights: Any, names: Sequence[str], axes: Any = None, *, n_bins: int = 40
) -> Any:
    """Histogram of each parameter of weighted draws.

    Parameters
    ----------
    draws : (n, p) array_like
    weights : (n,) array_like
    names : sequence of str
    axes : sequence of p Axes, optional
    n_bins : int

    Returns
    -------
    (p,) ndarray of Axes
    """
    values, w = np.asarray(draws, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    p = len(names)
    if axes is None:
        n_columns = min(p, 3)
        n_rows = -(-p // n_columns)
        grid = new_figure(2.2 * n_columns, 1.7 * n_rows).subplots(n_rows, n_columns, squeeze=False)
        for spare in grid.ravel()[p:]:
            spare.set_visible(False)
        axes = grid.ravel()[:p]
    axes = np.asarray(axes).ravel()
    if values.ndim != 2 or values.shape[1] != p or len(axes) != p:
        raise ValueError(
            f"{p} names need draws with {p} columns and {p} Axes; got draws of shape "
            f"{values.shape} and {len(axes)} Axes."
        )
    for i, ax in enumerate(axes):
        order = np.argsort(values[:, i])
        share = np.cumsum(w[order]) / w.sum()
        low, high = np.interp([0.002, 0.998], share, values[order, i])
        margin = 0.05 * (high - low) or 1.0
        quiet(ax).hist(values[:, i], n_bins, range=(low - margin, high + margin), weights=w,
                       histtype="stepfilled", facecolor=BAND, edgecolor=BLUE)  # fmt: skip
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.set_xlabel(names[i])
    return axes


def spread(
    values: Mapping[str, Any],
    ax: Axes | None = None,
    *,
    marks: Mapping[str, Mapping[str, float]] | None = None,
    label: str = "",
) -> Axes:
    """Values of a quantity over many test sets, a row of dots for each case, with marks.

    Parameters
    ----------
    values : mapping of str to (n,) array_like
        Cases, the uppermost first.
    ax : Axes, optional
    marks : mapping of str to mapping of str to float, optional
        What is marked (at most three kinds), and its value for the cases that have one.
    label : str
        Of the horizontal axis.

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax, 5.6, 0.9 + 0.5 * len(values))
    places = {name: len(values) - 1 - i for i, name in enumerate(values)}
    for name, given in values.items():
        row = np.sort(np.asarray(given, dtype=np.float64))
        # Dots that would cover each other step aside, in a fixed pattern.
        aside = 0.09 * (np.arange(len(row)) % 5 - 2)
        ax.plot(row, places[name] + aside, "o", color=BLUE, markersize=3, alpha=0.6,
                markeredgewidth=0, label="_")  # fmt: skip
    styles = (("D", VERMILLION, "white"), ("|", INK, INK), ("s", "white", INK))
    for (what, places_of), (marker, face, edge) in zip(
        (marks or {}).items(), styles, strict=False
    ):
        names = [name for name in values if name in places_of]
        ax.plot([places_of[name] for name in names], [places[name] for name in names], marker,
                linestyle="", markersize=18 if marker == "|" else 7, markerfacecolor=face,
                markeredgecolor=edge, markeredgewidth=2.0 if marker == "|" else 1.0, zorder=3,
                label=what)  # fmt: skip
    ax.set_yticks(list(places.values()), list(places))
    ax.set_ylim(-0.6, len(values) - 0.4)
    ax.set_xlabel(label)
    if marks:
        ax.legend(frameon=False, fontsize=8, ncols=3, loc="lower center",
                  bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2)  # fmt: skip
    return ax
