"""Figures of the diagnostics, of screening and of the sampler.

One figure per function: it takes what :mod:`paims.diagnostics` computed (or the sampler's result)
and Axes to draw on, and returns them. Without Axes a new figure is made. Matplotlib's settings are
left alone.
"""

from paims.plots._calibration import coverage, pit_histogram
from paims.plots._errors import (
    joint_errors,
    mahalanobis,
    pareto_k,
    quantile_quantile,
    residuals,
)
from paims.plots._sampling import annealing, pairs
from paims.plots._screening import length_scales, main_effect, main_effects, sobol

__all__ = [
    "annealing",
    "coverage",
    "joint_errors",
    "length_scales",
    "mahalanobis",
    "main_effect",
    "main_effects",
    "pairs",
    "pareto_k",
    "pit_histogram",
    "quantile_quantile",
    "residuals",
    "sobol",
]
