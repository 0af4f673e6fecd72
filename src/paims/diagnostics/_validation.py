"""All diagnostics of a prediction at once: numbers, then what they mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paims._arrays import FloatArray
from paims.diagnostics._calibration import (
    Coverage,
    Uniformity,
    coverage_curve,
    pit,
    reference_pit,
    uniformity,
)
from paims.diagnostics._joint import JointErrors, Mahalanobis, cholesky_errors, mahalanobis
from paims.diagnostics._prediction import Prediction, paired
from paims.diagnostics._residuals import Residuals, standardised_residuals
from paims.diagnostics._scores import Scores, scores
from paims.gp._checks import as_float_array

__all__ = ["Validation", "validate"]


@dataclass(frozen=True, eq=False)
class Validation:
    """Diagnostics of the prediction of some held-out outputs.

    Attributes
    ----------
    scores : Scores
    residuals : Residuals
    cholesky : JointErrors
    mahalanobis : Mahalanobis
    coverage : Coverage
    uniformity : Uniformity
    """

    scores: Scores
    residuals: Residuals
    cholesky: JointErrors
    mahalanobis: Mahalanobis
    coverage: Coverage
    uniformity: Uniformity

    def in_units(self, exponent: int) -> Validation:
        """Those of outputs that are 2^exponent times as large."""
        scores, residuals = self.scores.in_units(exponent), self.residuals.in_units(exponent)
        return replace(self, scores=scores, residuals=residuals)

    @property
    def _named(self) -> dict[str, Residuals | JointErrors | Mahalanobis | Coverage | Uniformity]:
        return {
            "single errors": self.residuals,
            "errors, correlation removed": self.cholesky,
            "all errors together": self.mahalanobis,
            "coverage": self.coverage,
            "probabilities": self.uniformity,
        }

    @property
    def checks(self) -> dict[str, tuple[bool, str]]:
        """Name of each check, whether it passed, and its verdict."""
        return {name: (check.passed, check.verdict) for name, check in self._named.items()}

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self._named.values())

    @property
    def on_the_safe_side(self) -> bool:
        """Whether each check that failed did so because errors are smaller than announced."""
        return all(check.passed or check.on_the_safe_side for check in self._named.values())

    @property
    def verdict(self) -> str:
        """What the numbers say, in words: the scores, and the checks that did not pass."""
        failed = [text for passed, text in self.checks.values() if not passed]
        if not failed:
            return f"{self.scores.verdict} No check speaks against the emulator."
        return " ".join([self.scores.verdict, *failed])

    def __str__(self) -> str:
        s = self.scores
        lines = [
            f"{s.n} outputs: rmse {s.rmse:.4g}, nlpd {s.nlpd:.4g} +- {s.nlpd_error:.2g}, "
            f"crps {s.crps:.4g}, 95 % coverage {s.coverage_95:.3f}"
        ]
        for name, (passed, text) in self.checks.items():
            lines.append(f"{'ok  ' if passed else 'LOOK'} {name}: {text}")
        return "\n".join(lines)


def validate(
    y: Any, prediction: Prediction, *, n_simulations: int = 1000, random_state: Any = 0
) -> Validation:
    """Diagnose the prediction of held-out outputs.

    One Student-t or normal has exact reference distributions for its joint errors. Those of a
    mixture are simulated: ``n_simulations`` joint samples of the prediction go through the same
    diagnostics as the outputs. Tests of uniformity and coverage are simulated in any case, as
    outputs predicted by one emulator are dependent.

    Parameters
    ----------
    y : (k,) array_like
        What was observed.
    prediction : Prediction
        With the nugget's variance in it if ``y`` are runs.
    n_simulations : int, default 1000
        At least 100.
    random_state : int, Generator or None, default 0

    Returns
    -------
    Validation
    """
    if n_simulations < 100:
        raise ValueError(f"n_simulations must be at least 100; got {n_simulations!r}.")
    y, mixtures = paired(y, prediction)
    samples = _joint_samples(prediction, n_simulations, len(y), random_state)
    single = int(np.sum(mixtures.weights > 0.0)) == 1
    how = {"dof": mixtures.dof} if single else {"samples": samples}
    mean, cov = mixtures.mean, prediction.cov()
    reference = reference_pit(samples)
    transforms = pit(y, mixtures)
    return Validation(
        scores=scores(y, mixtures),
        residuals=standardised_residuals(y, mixtures),
        cholesky=cholesky_errors(y, mean, cov, **how),
        mahalanobis=mahalanobis(y, mean, cov, **how),
        coverage=coverage_curve(transforms, reference=reference),
        uniformity=uniformity(transforms, reference=reference),
    )


def _joint_samples(prediction: Prediction, size: int, k: int, random_state: Any) -> FloatArray:
    samples = as_float_array("samples", prediction.sample(size, random_state), 2)
    if samples.shape != (size, k):
        raise ValueError(
            f"prediction.sample({size}) must give shape ({size}, {k}); got {samples.shape}."
        )
    return samples
