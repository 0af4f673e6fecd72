"""Functions of two coordinates: level curves, draws over them, and what is predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from paims._arrays import FloatArray
from paims.plots._style import BLUE, GREY, INK, MARKERS, VERMILLION, axes_or_new, panels, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LevelCloud", "curve", "level_clouds", "level_curves", "prediction_surface"]

_LEVELS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


def level_curves(
    x: Any,
    y: Any,
    height: Any,
    ax: Axes | None = None,
    *,
    levels: Sequence[float] = _LEVELS,
    marks: Mapping[str, Any] | None = None,
    labels: tuple[str, str] = ("", ""),
    diagonal: bool = True,
    numbers: bool = True,
) -> Axes:
    """Level curves of a surface above its minimum, with points marked.

    Parameters
    ----------
    x, y : (k,) and (m,) array_like
        Grid of each coordinate.
    height : (k, m) array_like
        Above the minimum; infinite where there is no value, which is hatched.
    ax : Axes, optional
    levels : sequence of float
        At which curves are drawn, rising.
    marks : mapping of str to (2,) array_like, optional
        Letters and where they stand.
    labels : tuple of str
        Of the axes.
    diagonal : bool
        Whether to draw the line of equal coordinates.
    numbers : bool
        Whether to write the levels on the curves.

    Returns
    -------
    Axes
    """
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415 - an extra

    ax = axes_or_new(ax, 4.2, 4.0)
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    values = np.asarray(height, dtype=np.float64).T
    known = np.isfinite(values)
    shown = np.ma.masked_array(np.where(known, values, 0.0), ~known)
    shades = LinearSegmentedColormap.from_list("depth", ["#8FB9D1", "#E4EEF4", "#FFFFFF"])
    steps = shades(np.linspace(0.0, 1.0, len(levels) + 1))
    ax.contourf(x, y, shown, [0.0, *levels], colors=steps, extend="max")
    if not known.all():
        missing = (~known).astype(float)
        hatched = ax.contourf(x, y, missing, [0.5, 1.5], colors="none", hatches=["////"])
        hatched.set_edgecolor(GREY)
        hatched.set_linewidth(0.0)
    curves = ax.contour(x, y, shown, levels, colors=INK, linewidths=0.6)
    if numbers:
        for text in ax.clabel(curves, levels, fontsize=6, fmt="%g", inline_spacing=2):
            text.set_rotation(0.0)
    ends = [max(x[0], y[0]), min(x[-1], y[-1])]
    if diagonal:
        ax.plot(ends, ends, color=GREY, linewidth=0.8, linestyle="--")
    for marker, (letter, place) in zip(MARKERS * 9, (marks or {}).items(), strict=False):
        _mark(ax, letter, np.asarray(place), marker)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(y[0], y[-1])
    ax.set_aspect("equal")
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    return ax


def _mark(ax: Axes, letter: str, place: FloatArray, marker: str) -> None:
    from matplotlib import patheffects  # noqa: PLC0415 - an extra

    ax.plot(*place, marker, color=VERMILLION, markeredgecolor="white", markersize=7, zorder=4)
    text = ax.annotate(letter, tuple(place), xytext=(6, 4), textcoords="offset points",
                       fontsize=10, fontweight="bold", color=INK, zorder=5)  # fmt: skip
    text.set_path_effects([patheffects.withStroke(linewidth=2.5, foreground="white")])


@dataclass(frozen=True, eq=False)
class LevelCloud:
    """Points of an annealing level.

    Attributes
    ----------
    level : int
    points : (n, 2) ndarray
    temperature : float
        Infinite for the reference distribution.
    first, second : float
        Shares of candidates accepted in the first and in the second stage.
    """

    level: int
    points: FloatArray
    temperature: float
    first: float
    second: float


def level_clouds(
    x: Any,
    y: Any,
    height: Any,
    clouds: Sequence[LevelCloud],
    axes: Any = None,
    *,
    labels: tuple[str, str] = ("", ""),
) -> Any:
    """Points of each annealing level over the level curves, side by side.

    Parameters
    ----------
    x, y, height
        As in :func:`level_curves`.
    clouds : sequence of LevelCloud
        One for each level.
    axes : sequence of Axes, optional
        One for each level.
    labels : tuple of str
        Of the axes.

    Returns
    -------
    ndarray of Axes
    """
    n = len(clouds)
    if axes is None:
        axes = panels(n, 4, (2.1, 2.35), sharex=True, sharey=True)
    axes = np.asarray(axes).ravel()
    if len(axes) != n:
        raise ValueError(f"axes must hold one Axes for each of {n} levels; got {len(axes)}.")
    for place, (ax, cloud) in enumerate(zip(axes, clouds, strict=True)):
        level_curves(x, y, height, quiet(ax), numbers=False, diagonal=False)
        ax.plot(cloud.points[:, 0], cloud.points[:, 1], ".", color=VERMILLION, markersize=1.8,
                markeredgewidth=0, alpha=0.6, rasterized=True)  # fmt: skip
        ax.set_title(cloud_title(cloud), fontsize=8, color=INK)
        spec = ax.get_subplotspec()
        if spec is None or spec.is_first_col():
            ax.set_ylabel(labels[1])
        n_columns = 1 if spec is None else spec.get_gridspec().ncols
        if place + n_columns >= n:
            ax.set_xlabel(labels[0])
            ax.tick_params(labelbottom=True)
    return axes


def cloud_title(cloud: LevelCloud) -> str:
    """Two lines: which level and its temperature, and how many moves were accepted."""
    if not np.isfinite(cloud.temperature):
        return f"level {cloud.level}: reference\n"
    return (
        f"level {cloud.level}: $\\tau$ = {cloud.temperature:.3g}\n"
        f"accepted: first {cloud.first:.2f}, second {cloud.second:.2f}"
    )


def prediction_surface(
    x: Any,
    y: Any,
    fields: Mapping[str, Any],
    runs: Any,
    axes: Any = None,
    *,
    labels: tuple[str, str] = ("", ""),
) -> Any:
    """Fields over two inputs, such as truth, predictive mean and its uncertainty.

    Parameters
    ----------
    x, y : (k,) and (m,) array_like
        Grid of each input.
    fields : mapping of str to (k, m) array_like
        Titles and values. A title that starts with ``"|"`` or with "standard" has a scale of its
        own with those like it, from 0; the others share one.
    runs : (n, 2) array_like
        Inputs of the runs.
    axes : sequence of Axes, optional
        One for each field.
    labels : tuple of str
        Of the axes.

    Returns
    -------
    ndarray of Axes
    """
    if axes is None:
        axes = panels(len(fields), len(fields), (2.5, 2.9), sharex=True, sharey=True)
    axes = np.asarray(axes).ravel()
    if len(axes) != len(fields):
        raise ValueError(f"axes must hold one Axes for each of {len(fields)} fields.")
    groups: dict[bool, list[FloatArray]] = {True: [], False: []}
    for title, values in fields.items():
        groups[_is_error(title)].append(np.asarray(values, dtype=np.float64))
    places = np.asarray(runs, dtype=np.float64)
    for ax, (title, values) in zip(axes, fields.items(), strict=True):
        error = _is_error(title)
        low = 0.0 if error else min(float(v.min()) for v in groups[error])
        high = max(float(v.max()) for v in groups[error])
        image = quiet(ax).contourf(x, y, np.asarray(values).T, np.linspace(low, high, 13),
                                   cmap="Oranges" if error else "cividis")  # fmt: skip
        ax.plot(places[:, 0], places[:, 1], "o", markersize=4.5, markerfacecolor="white",
                markeredgecolor=INK, markeredgewidth=0.8, clip_on=False)  # fmt: skip
        ax.set_title(title, fontsize=9, color=INK)
        ax.set_aspect("equal")
        ax.set_xlabel(labels[0])
        bar = ax.figure.colorbar(image, ax=ax, orientation="horizontal", shrink=0.9, aspect=25,
                                 format="%.3g")  # fmt: skip
        bar.ax.tick_params(labelsize=7, color=GREY)
        bar.locator = _few_ticks()
        bar.update_ticks()
    axes[0].set_ylabel(labels[1])
    return axes


def _is_error(title: str) -> bool:
    return title.startswith(("|", "standard"))


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - an extra

    return MaxNLocator(4)


def curve(
    x: Any,
    mean: Any,
    lower: Any,
    upper: Any,
    ax: Axes | None = None,
    *,
    truth: Any = None,
    runs: tuple[Any, Any] | None = None,
    labels: tuple[str, str] = ("", ""),
) -> Axes:
    """Prediction along one input with its interval, beside the truth and the runs.

    Parameters
    ----------
    x, mean, lower, upper : (k,) array_like
    ax : Axes, optional
    truth : (k,) array_like, optional
    runs : tuple of array_like, optional
        Inputs and outputs of the runs.
    labels : tuple of str
        Of the axes.

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax)
    ax.fill_between(x, lower, upper, color="#B9D3E2", linewidth=0, label="95 % interval")
    if truth is not None:
        ax.plot(x, truth, color=INK, linewidth=1.0, linestyle="--", label="simulator")
    ax.plot(x, mean, color=BLUE, linewidth=1.6, label="predictive mean")
    if runs is not None:
        ax.plot(*runs, "o", color=VERMILLION, markeredgecolor="white", markersize=6, zorder=3,
                label="run", clip_on=False)  # fmt: skip
    ax.set_xlim(np.min(x), np.max(x))
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    return ax
