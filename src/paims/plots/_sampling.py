"""How a run of the sampler went, and the draws it made."""

from __future__ import annotations

from collections.abc import Sequence
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
    new_figure,
    plain_log_ticks,
    quiet,
)
from paims.sampling import Mode, SampleResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        ax.set_xlabel(names[j])
    else:
        ax.set_xticklabels([])
    if j == 0 and i > 0:
        ax.set_ylabel(names[i])
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
