"""Differences of outputs from their prediction, freed of their correlation."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from paims._arrays import FloatArray
from paims.diagnostics._marginals import as_dof, as_outputs
from paims.gp._checks import as_float_array, check_finite

#: What is left of a variance below this part of the largest is round-off of the covariance.
RTOL = 1e-10


class Whitening:
    """The pivoted Cholesky factor of a covariance matrix, without what is only round-off."""

    def __init__(self, cov: FloatArray) -> None:
        largest = float(np.diag(cov).max())
        if not largest > 0.0:
            raise ValueError("The predictive covariance has no positive variance on its diagonal.")
        factor, pivots, rank, _ = dpstrf(cov, tol=RTOL * largest, lower=1)
        self.order = (pivots - 1)[:rank]
        self.factor = np.tril(factor[:rank, :rank])

    def __call__(self, difference: FloatArray) -> FloatArray:
        """Errors ``(..., rank)`` of differences ``(..., k)``."""
        errors = solve_triangular(self.factor, difference[..., self.order].T, lower=True)
        return np.asarray(errors, dtype=np.float64).T


def checked_difference(y: Any, mean: Any, cov: Any) -> tuple[FloatArray, FloatArray]:
    mean = as_float_array("mean", mean, 1)
    cov = as_float_array("cov", cov, 2)
    k = len(mean)
    if cov.shape != (k, k):
        raise ValueError(f"cov must have shape ({k}, {k}) for {k} means; got {cov.shape}.")
    check_finite("mean", mean)
    check_finite("cov", cov)
    return as_outputs(y, k) - mean, cov


def checked_samples(samples: Any, mean: Any) -> FloatArray:
    samples = as_float_array("samples", samples, 2)
    if samples.shape[1] != len(mean) or len(samples) < 100:
        raise ValueError(
            f"samples must have shape (size, {len(mean)}) with a size of at least 100; got "
            f"{samples.shape}."
        )
    check_finite("samples", samples)
    difference: FloatArray = samples - np.asarray(mean)
    return difference


def variance_dof(dof: float | None) -> float:
    value = as_dof(dof)
    if value <= 2.0:
        raise ValueError(f"A Student-t with dof <= 2 has no covariance; got dof={dof!r}.")
    return value
