"""The look that all figures share: colours that differ in lightness too, quiet axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paims._arrays import FloatArray
from paims._names import as_label, shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "BAND",
    "BLUE",
    "GREY",
    "INK",
    "MARKERS",
    "ORANGE",
    "VERMILLION",
    "as_shown",
    "axes_or_new",
    "few_columns",
    "label_points",
    "new_figure",
    "note",
    "panels",
    "plain_log_ticks",
    "quiet",
]

# Okabe & Ito's palette, safe for colour-blind readers; its blue is dark and its orange light, so
# that the two differ in grey as well.
BLUE = "#0072B2"
ORANGE = "#E69F00"
VERMILLION = "#D55E00"
INK = "#222222"
GREY = "#767676"
BAND = "#DDE6EC"
#: Marker shapes, where several series share axes.
MARKERS = ("o", "s", "^", "D", "v", "P")


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise ImportError(
            "Figures need Matplotlib: install it with pip install 'paims[app]'."
        ) from None
    return pyplot


def axes_or_new(ax: Axes | None, width: float = 4.6, height: float = 3.4) -> Axes:
    """Return the axes given, or those of a new figure."""
    if ax is None:
        _, new = _pyplot().subplots(figsize=(width, height), layout="constrained")
        return quiet(new)
    return quiet(ax)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure."""
    figure: Figure = _pyplot().figure(figsize=(width, height), layout="constrained")
    return figure


def few_columns(n: int) -> int:
    """Columns in which n axes leave few places empty: three or four."""
    return min(n, 3 if n in (3, 5, 6, 9) else 4)


def panels(
    n: int,
    n_columns: int,
    each: tuple[float, float],
    *,
    figure_fn: Callable[[float, float], Figure] = new_figure,
    sharex: bool = False,
    sharey: bool = False,
) -> Any:
    """Make a figure with n axes in rows of at most ``n_columns``, each of a size in inches."""
    n_columns = min(n, n_columns)
    n_rows = -(-n // n_columns)
    figure = figure_fn(each[0] * n_columns + 0.4, each[1] * n_rows)
    if sharey and not sharex:
        # Ticks at the ends of neighbouring axes must not touch.
        figure.set_layout_engine("constrained", w_pad=0.1)
    grid = figure.subplots(n_rows, n_columns, sharex=sharex, sharey=sharey, squeeze=False).ravel()
    for spare in grid[n:]:
        spare.set_visible(False)
    return grid[:n]


def quiet(ax: Axes) -> Axes:
    """Take away what does not carry data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(color=GREY, labelcolor=INK, labelsize=8)
    ax.xaxis.label.set_fontsize(9)
    ax.yaxis.label.set_fontsize(9)
    return ax


def note(ax: Axes, text: str, x: float = 0.02, y: float = 0.98) -> None:
    """Write a short remark into a corner of the axes, by default the upper left."""
    ax.text(
        x,
        y,
        text,
        transform=ax.transAxes,
        ha="left" if x < 0.5 else "right",
        va="top" if y > 0.5 else "bottom",
        fontsize=8,
        color=INK,
    )


def as_shown(name: str) -> str:
    r"""A name as a label: mathematics such as ``$\phi_1$`` if it is some, else as it stands."""
    n_dollars = name.count("$") - name.count(r"\$")
    if "$" not in name:
        return shortened(visible(name, keep="\n"), 40)
    if n_dollars == 0:
        return name
    return name if n_dollars % 2 == 0 and _is_mathematics(name) else as_label(name)


def _is_mathematics(text: str) -> bool:
    """Whether Matplotlib can set a text that has mathematics in it."""
    from matplotlib.mathtext import MathTextParser  # noqa: PLC0415 - slow to import

    try:
        MathTextParser("path").parse(text)
    except (ValueError, RecursionError):
        return False
    return True


def plain_log_ticks(axis: Axis) -> None:
    """Write 0.1, 1, 10 on a logarithmic axis, not powers."""
    axis.set_major_formatter(lambda value, _: f"{value:g}")


def label_points(ax: Axes, x: FloatArray, y: FloatArray, texts: Sequence[str]) -> None:
    """Write labels beside points, most important first, where there is room for them.

    Limits of the axes have to be final. A label that would cover one already there is left out.
    """
    # Asking for the limits brings pending ones into effect.
    ax.get_xlim(), ax.get_ylim()
    taken: list[FloatArray] = []
    scale = ax.figure.dpi / 72.0
    for i, text in enumerate(texts):
        place = ax.transData.transform((x[i], y[i])) / scale
        if any((np.abs(place - other) < (18.0, 9.0)).all() for other in taken):
            continue
        taken.append(place)
        ax.annotate(
            text, (x[i], y[i]), xytext=(4, 3), textcoords="offset points", fontsize=7, color=INK
        )
