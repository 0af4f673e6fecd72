"""How a run of the sampler went, the draws it made, and distributions beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paims._arrays import FloatArray
from paims.plots._style import (
    BAND,
    BLUE,
    GREY,
    INK,
    MARKERS,
    VERMILLION,
    as_shown,
    axes_or_new,
    new_figure,
    panels,
    plain_log_ticks,
    quiet,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from paims.sampling import Mode, SampleResult

__all__ = ["annealing", "box_plots", "marginals", "pairs", "spread"]


def pairs(
    result: SampleResult,
    modes: Sequence[Mode] = (),
    axes: Any = None,
    *,
    n_points: int = 1500,
    random_state: Any = 0,
) -> Any:
    """Pair plot of weighted draws, with the modes marked.

    Weighted draws are resampled to equally weighted points, so that the density of points is that
    of the distribution.

    Parameters
    ----------
    result : SampleResult
    modes : sequence of Mode
        Such as ``result.modes()``, by falling mass; marked A, B, C, ... with their masses.
    axes : (d, d) array of Axes, optional
        d is the number of parameters; those above the diagonal are hidden.
    n_points : int, default 1500
    random_state : int, Generator or None, default 0

    Returns
    -------
    (d, d) ndarray of Axes
    """
    d = len(result.names)
    if axes is None:
        size = 1.7 * d + 0.4
        axes = new_figure(size, size).subplots(d, d, squeeze=False)
    axes = np.asarray(axes)
    if axes.shape != (d, d):
        raise ValueError(f"axes must have shape ({d}, {d}) for {d} parameters; got {axes.shape}.")
    points = result.resample(n_points, random_state)
    limits = [_limits(points[:, i], [mode.location[i] for mode in modes]) for i in range(d)]
    for i in range(d):
        for j in range(d):
            ax = axes[i, j]
            if j > i:
                ax.set_visible(False)
                continue
            quiet(ax)
            if i == j:
                _marginal(ax, points[:, i], limits[i])
            else:
                ax.plot(points[:, j], points[:, i], ".", color=BLUE, markersize=1.6, alpha=0.35,
                        markeredgewidth=0, rasterized=True)  # fmt: skip
                ax.set_ylim(limits[i])
            ax.set_xlim(limits[j])
            mark_modes(ax, modes, j, None if i == j else i)
            hide_inner_labels(ax, result.names, i, j)
    if modes:
        mode_legend(axes, modes)
    return axes


def _marginal(ax: Axes, values: FloatArray, limits: tuple[float, float]) -> None:
    ax.hist(values, 40, range=limits, histtype="stepfilled", facecolor=BAND, edgecolor=BLUE)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)


def _limits(values: FloatArray, also: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(values, [0.002, 0.998])
    low, high = min([low, *also]), max([high, *also])
    margin = 0.06 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def mark_modes(ax: Axes, modes: Sequence[Mode], j: int, i: int | None) -> None:
    """Mark the modes in coordinates j and i; lines at coordinate j if there is no other."""
    for number, mode in enumerate(modes):
        if i is None:
            ax.axvline(mode.location[j], color=VERMILLION, linewidth=1.0,
                       linestyle=("-", "--", ":", "-.")[number % 4])  # fmt: skip
            continue
        ax.plot(mode.location[j], mode.location[i], MARKERS[number % len(MARKERS)],
                color=VERMILLION, markeredgecolor="white", markersize=7, zorder=3)  # fmt: skip
        ax.annotate(_letter(number), (mode.location[j], mode.location[i]), xytext=(5, 4),
                    textcoords="offset points", fontsize=8, fontweight="bold",
                    color=INK)  # fmt: skip


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number + 1)


def _mass(mode: Mode) -> str:
    digits = 2 if mode.mass_error >= 0.005 else 4
    return f"mass {mode.mass:.{digits}f} $\\pm$ {mode.mass_error:.{digits}f}"


def hide_inner_labels(ax: Axes, names: Sequence[str], i: int, j: int) -> None:
    """Write names and numbers at the left and at the bottom only."""
    if i == len(names) - 1:
        ax.set_xlabel(as_shown(names[j]))
    else:
        ax.set_xticklabels([])
    if j == 0 and i > 0:
        ax.set_ylabel(as_shown(names[i]))
    elif j < i:
        ax.set_yticklabels([])


def mode_legend(axes: Any, modes: Sequence[Mode]) -> None:
    """List the modes and their masses where the hidden axes are."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - an extra

    handles = [
        Line2D([], [], linestyle="", marker=MARKERS[n % len(MARKERS)], color=VERMILLION,
               label=f"{_letter(n)}: {_mass(mode)}")
        for n, mode in enumerate(modes)
    ]  # fmt: skip
    legend = axes[0, 0].legend(handles=handles, frameon=False, fontsize=8, loc="upper left",
                      bbox_to_anchor=(1.05, 1.0), borderaxespad=0.0)  # fmt: skip
    # It stands where the hidden axes are: the layout must not make room for it.
    legend.set_in_layout(False)


def annealing(levels: Any, axes: Any = None) -> Any:
    """Trace of an annealing run: temperature, effective size and acceptance by level.

    Parameters
    ----------
    levels : structured ndarray
        ``SampleResult.levels``.
    axes : sequence of three Axes, optional

    Returns
    -------
    (3,) ndarray of Axes
    """
    if len(levels) == 0:
        raise ValueError("levels is empty: the run had none to show.")
    if axes is None:
        axes = new_figure(4.6, 5.0).subplots(3, 1, sharex=True)
    axes = np.asarray(axes).ravel()
    if len(axes) != 3:
        raise ValueError(f"axes must hold three Axes; got {len(axes)}.")
    level = levels["level"]
    temperature, size, acceptance = (quiet(ax) for ax in axes)
    temperature.axhline(1.0, color=GREY, linewidth=0.8, linestyle="--")
    temperature.plot(level, levels["temperature"], "o-", color=BLUE, markersize=4)
    temperature.set_yscale("log")
    plain_log_ticks(temperature.yaxis)
    temperature.set_ylabel("temperature")
    size.plot(level, levels["effective_size"], "o-", color=BLUE, markersize=4)
    size.set_ylim(0.0, 1.1 * float(np.max(levels["effective_size"])))
    size.set_ylabel("effective size")
    series = (
        ("local_acceptance", "first stage, local", BLUE, "-"),
        ("global_acceptance", "first stage, global", VERMILLION, "--"),
        ("second_acceptance", "second stage", INK, ":"),
    )
    for (name, label, colour, line), marker in zip(series, MARKERS, strict=False):
        acceptance.plot(level, levels[name], marker=marker, linestyle=line, color=colour,
                        markersize=4, label=label)  # fmt: skip
    acceptance.set_ylim(0.0, 1.0)
    acceptance.set_ylabel("acceptance")
    acceptance.set_xlabel("level")
    acceptance.legend(frameon=False, fontsize=8, ncols=3, loc="lower center",
                      bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2, handletextpad=0.4,
                      columnspacing=1.2)  # fmt: skip
    acceptance.locator_params(axis="x", integer=True)
    return axes


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
    ax.set_xticks(place, [as_shown(name) for name in names])
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
        axes = panels(p, 3, (2.2, 1.7))
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
        ax.set_xlabel(as_shown(names[i]))
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
