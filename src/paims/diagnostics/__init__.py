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
from paims.diagnostics._crps import crps
from paims.diagnostics._joint import JointErrors, cholesky_errors, eigen_errors
from paims.diagnostics._leave_one_out import LeaveOneOut, leave_one_out
from paims.diagnostics._length_scales import LengthScales, length_scales
from paims.diagnostics._mahalanobis import Mahalanobis, mahalanobis
from paims.diagnostics._main_effects import MainEffects, main_effects
from paims.diagnostics._marginals import Components, Prediction
from paims.diagnostics._residuals import (
    QuantileQuantile,
    Residuals,
    quantile_quantile,
    standardised_residuals,
)
from paims.diagnostics._scores import Scores, nlpd, rmse, scores
from paims.diagnostics._screening import Inertness, Screening, inertness, screen
from paims.diagnostics._sobol import SobolIndices, sobol_indices
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
