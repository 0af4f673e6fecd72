"""How good is an emulator, and which inputs matter: numbers first, each with its verdict.

Predictions against held-out outputs, after Bastos & O'Hagan (2009): :func:`validate` and its
parts. Leave-one-out without refits: :func:`leave_one_out`. Which inputs matter: :func:`screen`
and its parts. Figures of all of these are in :mod:`paims.plots`.
"""

from paims.diagnostics._calibration import (
    Coverage,
    Uniformity,
    coverage_curve,
    pit,
    reference_pit,
    uniformity,
)
from paims.diagnostics._effects import MainEffects, SobolIndices, main_effects, sobol_indices
from paims.diagnostics._joint import (
    JointErrors,
    Mahalanobis,
    cholesky_errors,
    eigen_errors,
    mahalanobis,
)
from paims.diagnostics._leave_one_out import LeaveOneOut, leave_one_out
from paims.diagnostics._prediction import Components, Prediction
from paims.diagnostics._residuals import (
    QuantileQuantile,
    Residuals,
    quantile_quantile,
    standardised_residuals,
)
from paims.diagnostics._scores import Scores, crps, nlpd, rmse, scores
from paims.diagnostics._screening import (
    Inertness,
    LengthScales,
    Screening,
    inertness,
    length_scales,
    screen,
)
from paims.diagnostics._validation import Validation, validate

__all__ = [
    "Components",
    "Coverage",
    "Inertness",
    "JointErrors",
    "LeaveOneOut",
    "LengthScales",
    "Mahalanobis",
    "MainEffects",
    "Prediction",
    "QuantileQuantile",
    "Residuals",
    "Scores",
    "Screening",
    "SobolIndices",
    "Uniformity",
    "Validation",
    "cholesky_errors",
    "coverage_curve",
    "crps",
    "eigen_errors",
    "inertness",
    "leave_one_out",
    "length_scales",
    "mahalanobis",
    "main_effects",
    "nlpd",
    "pit",
    "quantile_quantile",
    "reference_pit",
    "rmse",
    "scores",
    "screen",
    "sobol_indices",
    "standardised_residuals",
    "uniformity",
    "validate",
]
