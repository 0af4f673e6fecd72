"""Which inputs matter: length-scales, Sobol' indices, main effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from paims.plots._style import (
    BAND,
    BLUE,
    GREY,
    INK,
    ORANGE,
    as_shown,
    axes_or_new,
    few_columns,
    panels,
    plain_log_ticks,
    quiet,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from paims.diagnostics import LengthScales, MainEffects, SobolIndices

__all__ = ["length_scales", "main_effect", "main_effects", "sobol"]


def length_scales(result: LengthScales, ax: Axes | None = None) -> Axes:
    """Boxes of the relative length-scales: median, 50 % box, 90 % whiskers.

    Parameters
    ----------
    result : LengthScales
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    p = len(result.names)
    ax = axes_or_new(ax, 4.6, 0.9 + 0.42 * p)
    place = np.arange(p)[::-1]
    whisker_low, low, middle, high, whisker_high = result.quantiles
    ax.hlines(place, whisker_low, whisker_high, color=BLUE, linewidth=1.2)
    ax.barh(place, high - low, 0.5, left=low, facecolor=BAND, edgecolor=BLUE, linewidth=1.2)
    ax.vlines(middle, place - 0.25, place + 0.25, color=INK, linewidth=2.0)
    ax.axvline(1.0, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
    for y, probability in zip(place, result.probability_flat, strict=True):
        ax.text(1.02, y, f"{probability:.2f}", transform=ax.get_yaxis_transform(), va="center",
                fontsize=8, color=INK)  # fmt: skip
    ax.text(1.02, p - 0.42, "P(flat)", transform=ax.get_yaxis_transform(), va="bottom",
            fontsize=8, color=GREY)  # fmt: skip
    ax.set_xscale("log")
    plain_log_ticks(ax.xaxis)
    ax.set_yticks(place, [as_shown(name) for name in result.names])
    ax.set_ylim(-0.6, p - 0.4)
    ax.set_xlabel("length-scale / range of the input")
    return ax


def sobol(result: SobolIndices, ax: Axes | None = None) -> Axes:
    """Bars of first-order and total indices with their 90 % range over draws, by falling total.

    Parameters
    ----------
    result : SobolIndices
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    p = len(result.names)
    ax = axes_or_new(ax, 4.6, 0.9 + 0.45 * p)
    order = np.argsort(-result.total, kind="stable")
    place = np.arange(p)[::-1]
    series: tuple[tuple[str, float, str, str | None, Any, Any], ...] = (
        ("alone (first-order)", 0.19, BLUE, None, result.first, result.first_interval),
        ("with interactions (total)", -0.19, ORANGE, "///", result.total, result.total_interval),
    )
    for label, shift, colour, hatch, value, interval in series:
        y = place + shift
        ax.barh(y, value[order], 0.36, color=colour, hatch=hatch, edgecolor="white",
                linewidth=0, label=label)  # fmt: skip
        ax.hlines(y, interval[0, order], interval[1, order], color=INK, linewidth=1.4)
        ax.plot(interval[:, order], np.vstack([y, y]), "|", color=INK, markersize=6)
    for y, i in zip(place, order, strict=True):
        end = max(result.total[i], result.total_interval[1, i])
        ax.annotate(f"{result.total[i]:.3f}", (end, y - 0.19), xytext=(5, 0),
                    textcoords="offset points", va="center", fontsize=8, color=INK)  # fmt: skip
    ax.set_yticks(place, [as_shown(result.names[i]) for i in order])
    ax.set_xlim(0.0, 1.1 * max(1.0, float(result.total_interval.max())))
    ax.set_xlabel("share of the output's variance")
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return ax


def main_effect(result: MainEffects, i_input: int, ax: Axes | None = None) -> Axes:
    """Main effect of one input, with its 90 % range over draws.

    Parameters
    ----------
    result : MainEffects
    i_input : int
        Position of the input.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax, 3.0, 2.4)
    x = result.x[i_input]
    ax.axhline(result.overall, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
    ax.fill_between(x, result.lower[i_input], result.upper[i_input], color=ORANGE, alpha=0.45,
                    linewidth=0)  # fmt: skip
    ax.plot(x, result.mean[i_input], color=BLUE, linewidth=1.6)
    ax.set_xlim(x[0], x[-1])
    ax.locator_params(axis="x", nbins=4)
    ax.set_xlabel(as_shown(result.names[i_input]))
    ax.set_ylabel("average output")
    return ax


def main_effects(result: MainEffects, axes: Any = None) -> Any:
    """Main effects of all inputs, side by side on one scale.

    Parameters
    ----------
    result : MainEffects
    axes : sequence of p Axes, optional

    Returns
    -------
    (p,) ndarray of Axes
    """
    p = len(result.names)
    if axes is None:
        axes = panels(p, few_columns(p), (2.3, 2.1), sharey=True)
    axes = np.asarray(axes).ravel()
    if len(axes) != p:
        raise ValueError(f"axes must hold one Axes for each of the {p} inputs; got {len(axes)}.")
    low, high = float(result.lower.min()), float(result.upper.max())
    margin = 0.05 * (high - low) or 1.0
    for i, ax in enumerate(axes):
        main_effect(result, i, quiet(ax))
        ax.set_ylim(low - margin, high + margin)
        if not ax.get_subplotspec() or not ax.get_subplotspec().is_first_col():
            ax.set_ylabel("")
    return axes
