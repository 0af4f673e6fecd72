"""All parameters of a weighted sample against each other, as densities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paims._arrays import FloatArray
from paims.plots._sampling import hide_inner_labels, mark_modes, mode_legend
from paims.plots._style import BAND, BLUE, new_figure, quiet
from paims.sampling import SampleResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["corner"]

_REGIONS = (0.9, 0.5)  # masses of the highest-density regions whose borders are drawn
_SMOOTHING = 1.0  # standard deviation in cells


def corner(
    result: SampleResult, names: Sequence[str] | None = None, *, n_bins: int = 40
) -> Figure:
    """Corner plot of a result: weighted histograms, and joint densities with the modes marked.

    Lines are the borders of the highest-density regions that hold 50 and 90 per cent.

    Parameters
    ----------
    result : SampleResult
    names : sequence of str, optional
        Parameters and derived quantities to show; by default all parameters.
    n_bins : int
        Cells of each axis.

    Returns
    -------
    matplotlib.figure.Figure
    """
    shown = tuple(result.names if names is None else names)
    columns = [_column(result, name) for name in shown]
    d = len(shown)
    modes = result.modes()
    # Derived quantities of the modes' tops are not known.
    index = [result.names.index(name) if name in result.names else None for name in shown]
    figure = new_figure(1.8 * d + 0.6, 1.8 * d + 0.6)
    axes = figure.subplots(d, d, squeeze=False)
    limits = [_limits(values, result.weights) for values in columns]
    for i in range(d):
        for j in range(d):
            ax, across, up = axes[i, j], index[j], index[i]
            if j > i:
                ax.set_visible(False)
                continue
            quiet(ax)
            ax.set_xlim(limits[j])
            if i == j:
                _histogram(ax, columns[i], result.weights, limits[i], n_bins)
            else:
                ax.set_ylim(limits[i])
                _density(ax, columns[j], columns[i], result.weights, n_bins)
            if across is not None and up is not None:
                mark_modes(ax, modes, across, None if i == j else up)
            hide_inner_labels(ax, shown, i, j)
    if modes and d > 1:
        mode_legend(axes, modes)
    return figure


def _column(result: SampleResult, name: str) -> FloatArray:
    if name in result.names:
        return np.asarray(result.draws[:, result.names.index(name)])
    if name in result.derived:
        return np.asarray(result.derived[name])
    known = ", ".join([*result.names, *result.derived])
    raise ValueError(f"names has {name!r}, which the result does not; it has {known}.")


def _limits(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    low, high = np.quantile(values, [0.001, 0.999], weights=weights, method="inverted_cdf")
    margin = 0.06 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _histogram(
    ax: Axes, values: FloatArray, weights: FloatArray, limits: tuple[float, float], n_bins: int
) -> None:
    ax.hist(values, n_bins, range=limits, weights=weights, histtype="stepfilled", facecolor=BAND,
            edgecolor=BLUE)  # fmt: skip
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)


def _density(ax: Axes, x: FloatArray, y: FloatArray, weights: FloatArray, n_bins: int) -> None:
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415 - an extra
    from scipy.ndimage import gaussian_filter  # noqa: PLC0415 - slow to import

    limits = (ax.get_xlim(), ax.get_ylim())
    mass, x_edges, y_edges = np.histogram2d(x, y, n_bins, range=limits, weights=weights)
    mass = gaussian_filter(mass, _SMOOTHING).T
    colours = LinearSegmentedColormap.from_list("paims", ["white", BLUE])
    ax.pcolormesh(x_edges, y_edges, mass, cmap=colours, rasterized=True)
    levels = region_levels(mass, _REGIONS)
    if len(levels):
        middles = [0.5 * (edges[1:] + edges[:-1]) for edges in (x_edges, y_edges)]
        ax.contour(*middles, mass, levels=levels, colors=BLUE, linewidths=0.8)


def region_levels(mass: FloatArray, regions: Sequence[float]) -> Any:
    """Heights above which cells hold the given shares of the mass, ascending and distinct."""
    ordered = np.sort(mass.ravel())[::-1]
    reached = np.cumsum(ordered) / ordered.sum()
    found = [ordered[np.searchsorted(reached, share)] for share in regions]
    return np.unique([level for level in found if 0.0 < level < ordered[0]])
