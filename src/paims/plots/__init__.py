"""Figures of the diagnostics, of screening and of the sampler.

One figure per function: it takes what :mod:`paims.diagnostics` computed (or the sampler's result)
and Axes to draw on, and returns them. Without Axes a new figure is made. Matplotlib's settings are
left alone.
"""

from paims.plots._calibration import coverage, pit_histogram
from paims.plots._corner import corner
from paims.plots._distributions import box_plots, marginals, spread
from paims.plots._errors import (
    joint_errors,
    mahalanobis,
    pareto_k,
    quantile_quantile,
    residuals,
)
from paims.plots._sampling import annealing, pairs
from paims.plots._screening import length_scales, main_effect, main_effects, sobol
from paims.plots._surfaces import curve, level_clouds, level_curves, prediction_surface

__all__ = [
    "annealing",
    "box_plots",
    "corner",
    "coverage",
    "curve",
    "joint_errors",
    "length_scales",
    "level_clouds",
    "level_curves",
    "mahalanobis",
    "main_effect",
    "main_effects",
    "marginals",
    "pairs",
    "pareto_k",
    "pit_histogram",
    "prediction_surface",
    "quantile_quantile",
    "residuals",
    "sobol",
    "spread",
]
