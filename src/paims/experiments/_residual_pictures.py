"""Standardised residuals and coverage: the single best point above or left, the mixture beside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from paims import diagnostics, plots
from paims._arrays import FloatArray
from paims.emulator import MixturePrediction
from paims.experiments._pictures import Picture, canvas


def residual_picture(
    name: str, residuals: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]], where: str
) -> Picture:
    """Residuals against predicted means: best point above, mixture below, a column per scheme.

    Parameters
    ----------
    name : str
        Of the experiment.
    residuals : mapping
        By scheme and by "best" and "mixture": predicted means and standardised residuals.
    where : str
        What they were computed at.
    """
    figure = canvas(3.6 * len(residuals) + 0.6, 4.6)
    axes = figure.subplots(2, len(residuals), sharex="col", sharey="col", squeeze=False)
    for column, (scheme, parts) in zip(axes.T, residuals.items(), strict=True):
        titles = {"best": f"best point, {scheme} scheme", "mixture": f"mixture, {scheme} scheme"}
        reach = 1.96
        for ax, part in zip(column, ("best", "mixture"), strict=True):
            mean, scores = parts[part]
            # The paper's residuals: errors in units of the predictive standard deviation.
            shown = diagnostics.Residuals(mean + scores, mean, np.ones_like(mean), scores)
            plots.residuals(shown, ax, numbers=False)
            ax.set_title(titles[part], fontsize=9)
            reach = max(reach, float(np.abs(scores).max()))
        column[0].set_ylim(-1.15 * reach, 1.35 * reach)
        column[0].set_xlabel("")
    for ax in axes[:, 1:].ravel():
        ax.set_ylabel("")
    return Picture(
        f"{name}/residuals",
        f"Standardised residuals at {where} with the 95 % bands: the single best point above, the "
        "mixture below. Crosses lie outside.",
        figure,
    )


def coverage_picture(
    name: str, predictions: Mapping[str, MixturePrediction], y: FloatArray, seed: int
) -> Picture:
    """Coverage of intervals of all levels, with bands that know of the dependence of outputs.

    Parameters
    ----------
    name : str
        Of the experiment.
    predictions : mapping of str to MixturePrediction
    y : (k,) ndarray
        Outputs there.
    seed : int
    """
    figure = canvas(3.2 * len(predictions) + 0.4, 3.5)
    axes = figure.subplots(1, len(predictions), sharey=True, squeeze=False)[0]
    for ax, (title, prediction) in zip(axes, predictions.items(), strict=True):
        samples = diagnostics.reference_pit(prediction.sample(400, seed))
        curve = diagnostics.coverage_curve(diagnostics.pit(y, prediction), reference=samples)
        plots.coverage(curve, ax)
        ax.set_title(title, fontsize=9)
    for ax in axes[1:]:
        ax.set_ylabel("")
    return Picture(
        f"{name}/coverage",
        f"Share of {len(y)} test outputs inside their intervals against the nominal level, for "
        "the single best point and for the mixture; the band is what a right prediction gives.",
        figure,
    )
