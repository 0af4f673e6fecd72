"""The report's figures: drawn by :mod:`paims.plots`, written as SVG that follows the page's theme.

Colours of the drawings become the page's CSS variables, so that one figure serves light, dark and
paper; texts stay texts, in the page's font.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paims import plots
from paims._names import as_label, visible
from paims.diagnostics import Coverage, LeaveOneOut, MainEffects, Residuals, SobolIndices
from paims.plots import _style
from paims.report._study import Study, prediction_at
from paims.sampling import Mode, SampleResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["Figure", "all_figures"]

# Colours of the plots to variables of the page.
_VARIABLES = {
    _style.BLUE: "blue",
    _style.ORANGE: "orange",
    _style.VERMILLION: "vermillion",
    _style.INK: "ink",
    _style.GREY: "grey",
    _style.BAND: "band",
    "#000000": "ink",
    "#ffffff": "paper",
}
_MAX_PAIRS = 6
_N_SLICE = 61


@dataclass(frozen=True)
class Figure:
    """A figure of the page: its SVG, what it shows in words, and its caption."""

    svg: str
    alt: str
    caption: str


def all_figures(study: Study, output: str) -> dict[str, Figure]:
    """Draw every figure that the study has numbers for."""
    figures = {
        "runs": _runs(study, output),
        "pairs": _pairs(study),
        "slices": _slices(study, output),
    }
    levels = study.emulator.result_.levels
    if len(levels):
        figures["annealing"] = _annealing(levels)
    if study.loo is not None:
        what = "Each run predicted from all others. About 5 % should lie outside the band, "
        what += "without a pattern."
        figures["loo"] = _residuals(study.loo.residuals, "loo", "left-out runs", what)
        figures["loo_coverage"] = _coverage(study.loo.coverage, "loo-coverage", "left-out runs")
        figures["pareto"] = _pareto(study.loo)
    if study.validation is not None:
        residuals, coverage = study.validation.residuals, study.validation.coverage
        what = "Runs that the emulator has never seen."
        figures["validation"] = _residuals(residuals, "validation", "held-out runs", what)
        figures["validation_coverage"] = _coverage(
            coverage, "validation-coverage", "held-out runs"
        )
    if study.screening is not None:
        figures["sobol"] = _sobol(study.screening.sobol)
    if study.effects is not None:
        figures["effects"] = _effects(study.effects, output)
    return figures


def _canvas(width: float, height: float) -> Canvas:
    """An empty figure that belongs to no window system."""
    from matplotlib.figure import Figure as MatplotlibFigure  # noqa: PLC0415 - slow to import

    return MatplotlibFigure(figsize=(width, height), layout="constrained")


def _svg(canvas: Canvas, name: str, alt: str) -> str:
    from matplotlib import rc_context  # noqa: PLC0415 - slow to import

    buffer = io.StringIO()
    # The salt makes ids differ between the figures of a page, and not between two runs.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        # Texts are set in the reader's fonts, whatever Matplotlib's own lack.
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        metadata: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        canvas.savefig(buffer, format="svg", transparent=True, dpi=150, metadata=metadata)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # In the tags only: between them are names, one of which may look like a colour.
    text = re.sub(r"<[^>]*>", lambda tag: _with_variables(tag[0]), text)
    label = visible(alt).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _with_variables(tag: str) -> str:
    """A tag of SVG with the page's variables for colours, and sizes alone for fonts."""
    for colour, variable in _VARIABLES.items():
        tag = re.sub(re.escape(colour), f"var(--{variable})", tag, flags=re.IGNORECASE)
    tag = re.sub(r'font: (\d[\d.]*)px [^;"]*', r"font-size: \1px", tag)
    # Ids of groups are the same in every figure, and nothing refers to them.
    return re.sub(r'^(<g\b[^>]*?) id="[^"]*"', r"\1", tag)


def _figure(canvas: Canvas, name: str, alt: str, caption: str) -> Figure:
    return Figure(_svg(canvas, name, alt), alt, caption)


def _grid(p: int) -> tuple[Canvas, Any]:
    """A figure with p axes, side by side on one vertical scale."""
    axes = _style.panels(p, _style.few_columns(p), (2.5, 2.1), figure_fn=_canvas, sharey=True)
    return axes[0].figure, axes


def _runs(study: Study, output: str) -> Figure:
    active = np.flatnonzero(study.emulator.inputs_.active)
    canvas, axes = _grid(len(active))
    for place, (ax, i) in enumerate(zip(axes, active, strict=True)):
        _style.quiet(ax)
        ax.plot(study.X[:, i], study.y, "o", color=_style.BLUE, markersize=3.5)
        ax.set_xlabel(as_label(study.names[i]))
        ax.locator_params(axis="x", nbins=4)
        if place == 0:
            ax.set_ylabel(as_label(output))
    alt = f"Scatter plots of {output} against each of {len(active)} inputs, {len(study.y)} runs."
    return _figure(canvas, "runs", alt, f"The {len(study.y)} runs: {output} against each input.")


def _pairs(study: Study) -> Figure:
    result, modes, labels, n_left = _logarithmic_draws(study)
    d = len(labels)
    size = (2.1 if d < 4 else 1.6) * d + 0.4
    canvas = _canvas(size, size)
    plots.pairs(result, modes, canvas.subplots(d, d, squeeze=False))
    where = "; ".join(
        f"mode {letter}, mass {mode.mass:.2f}: "
        + ", ".join(f"{label} {10**v:.3g}" for label, v in zip(labels, mode.location, strict=True))
        for letter, mode in zip("ABCD", modes, strict=False)
    )
    caption = (
        "Draws of the length-scales (in the inputs' units) and the nugget, on logarithmic scales; "
        "each point is one possible setting, letters mark the modes."
    )
    if n_left:
        caption += f" The {n_left} inputs that matter least are not shown."
    alt = f"Pair plot of the draws of {', '.join(labels)}, with {len(modes)} mode(s). {where}."
    return _figure(canvas, "pairs", alt, caption)


def _logarithmic_draws(study: Study) -> tuple[SampleResult, list[Mode], list[str], int]:
    """Draws and modes in log10 of physical units, their labels, and how many inputs are left out.

    Of many inputs those that matter most are kept.
    """
    emulator = study.emulator
    names, table = emulator.map_.input_names, emulator.draws_
    estimated = emulator.posterior_.nugget.n_params == 1
    order = np.arange(len(names))
    if study.screening is not None:
        order = np.argsort(-study.screening.sobol.total, kind="stable")
    shown = np.sort(order[: _MAX_PAIRS - estimated])
    labels = [f"length {names[i]}" for i in shown]
    columns = [table[f"length_scale_{names[i]}"] for i in shown]
    places = [mode.length_scales[shown] for mode in emulator.modes_]
    if estimated:
        labels.append("nugget")
        columns.append(table["nugget"])
        places = [
            np.append(place, mode.nugget)
            for place, mode in zip(places, emulator.modes_, strict=True)
        ]
    result = replace(
        emulator.result_,
        draws=np.log10(np.column_stack(columns)),
        weights=emulator.weights_,
        names=tuple(f"log10 {as_label(label)}" for label in labels),
        posterior=None,
    )
    modes = [
        Mode(place, mode.log_density, mode.mass, mode.mass_error, place, np.zeros(len(labels)))
        for place, mode in zip(map(np.log10, places), emulator.modes_, strict=True)
    ]
    return result, modes, labels, len(names) - len(shown)


def _annealing(levels: npt.NDArray[np.void]) -> Figure:
    canvas = _canvas(5.6, 5.0)
    plots.annealing(levels, canvas.subplots(3, 1, sharex=True))
    alt = (
        f"Annealing in {len(levels)} levels: the temperature falls from "
        f"{levels['temperature'][0]:.3g} to {levels['temperature'][-1]:.3g}; the effective size "
        f"ends at {levels['effective_size'][-1]:.0f}."
    )
    caption = (
        "How the sampler went: from a wide reference distribution (high temperature) to the "
        "posterior (temperature 1). Acceptance that falls to zero would be a bad sign."
    )
    return _figure(canvas, "annealing", alt, caption)


def _residuals(residuals: Residuals, name: str, what: str, caption: str) -> Figure:
    canvas = _canvas(4.6, 3.4)
    plots.residuals(residuals, canvas.subplots())
    alt = (
        f"Residuals of {what} against the predicted mean: {residuals.n_outside} of "
        f"{len(residuals.scores)} lie outside the 95 % band; the largest is "
        f"{np.abs(residuals.scores).max():.2f}."
    )
    return _figure(canvas, name, alt, caption)


def _coverage(coverage: Coverage, name: str, what: str) -> Figure:
    canvas = _canvas(3.6, 3.4)
    plots.coverage(coverage, canvas.subplots())
    near = int(np.argmin(np.abs(coverage.nominal - 0.5)))
    alt = (
        f"Share of {what} inside intervals against the intervals' level: "
        f"{coverage.empirical[near]:.0%} inside the 50 % intervals, "
        f"{coverage.empirical[int(np.argmin(np.abs(coverage.nominal - 0.95)))]:.0%} inside the "
        "95 % intervals."
    )
    caption = (
        "Do intervals hold as many outputs as they promise? On the line: yes. Below: they are too "
        "narrow. The band is what chance allows."
    )
    return _figure(canvas, name, alt, caption)


def _pareto(loo: LeaveOneOut) -> Figure:
    canvas = _canvas(4.6, 3.0)
    plots.pareto_k(loo, canvas.subplots())
    alt = f"Pareto k-hat of each run: {len(loo.unreliable)} of {len(loo.observed)} above 0.7."
    caption = (
        "How far leaving a run out would change the length-scales themselves. Above 0.7 the "
        "leave-one-out result of that run is itself not reliable."
    )
    return _figure(canvas, "pareto", alt, caption)


def _labels(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(as_label(name) for name in names)


def _sobol(sobol: SobolIndices) -> Figure:
    canvas = _canvas(5.4, 1.2 + 0.45 * len(sobol.names))
    ax = plots.sobol(replace(sobol, names=_labels(sobol.names)), canvas.subplots())
    # Above the bars: with two or three inputs there is no room beside them.
    ax.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    shares = ", ".join(
        f"{name} {first:.2f} alone, {total:.2f} in total"
        for name, first, total in zip(sobol.names, sobol.first, sobol.total, strict=True)
    )
    caption = "Sobol' indices: how much of the output's variance comes from each input."
    return _figure(canvas, "sobol", f"Sobol' indices: {shares}.", caption)


def _effects(effects: MainEffects, output: str) -> Figure:
    canvas, axes = _grid(len(effects.names))
    plots.main_effects(replace(effects, names=_labels(effects.names)), axes)
    for ax in axes:
        if ax.get_ylabel():
            ax.set_ylabel(as_label(f"average {output}"))
    swings = ", ".join(
        f"{name} {swing:.3g}" for name, swing in zip(effects.names, effects.swing, strict=True)
    )
    caption = (
        "Main effects: the output along one input, averaged over all others, with its 90 % range "
        "over the draws."
    )
    return _figure(canvas, "effects", f"Main effects; change over the range: {swings}.", caption)


def _slices(study: Study, output: str) -> Figure:
    """Slices through the centre of the box; the page's script puts live ones in their place."""
    inputs = study.emulator.inputs_
    p = int(inputs.active.sum())
    canvas, axes = _grid(p)
    for i, ax in enumerate(axes):
        _style.quiet(ax)
        scaled = np.full((_N_SLICE, p), 0.5)
        scaled[:, i] = np.linspace(0.0, 1.0, _N_SLICE)
        X = inputs.undo(scaled)
        mixture = prediction_at(study.emulator, X)
        x = X[:, inputs.active][:, i]
        for level, alpha in ((0.95, 0.2), (0.5, 0.4)):
            ax.fill_between(x, *mixture.interval(level), color=_style.BLUE, alpha=alpha, lw=0)
        ax.plot(x, mixture.mean, color=_style.BLUE)
        ax.set_xlabel(as_label(study.emulator.map_.input_names[i]))
        ax.locator_params(axis="x", nbins=4)
        if i == 0:
            ax.set_ylabel(as_label(output))
    alt = f"Predicted {output} along each input through the middle of the range, with bands."
    caption = "Slices through the middle of the range: mean, 50 % and 95 % bands."
    return _figure(canvas, "slices", alt, caption)
