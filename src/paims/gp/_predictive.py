r"""What the emulator says given hyper-parameters: predictions, checks, coefficients.

Given :math:`(\phi, \delta)` everything is a Student-t distribution with :math:`n - q` degrees of
freedom. The paper's Gaussian is its moment match: it has the same mean and variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paims._arrays import FloatArray
from paims._parallel import for_chunks, single_threaded_blas
from paims.gp._factorisation import Factorisation
from paims.gp._kernels import Kernel

__all__ = ["Coefficients", "Predictive"]

# Doubles in the largest array of a block of draws, and new inputs treated at once.
_BLOCK_SIZE = 250_000
_BLOCK_INPUTS = 4096


@dataclass(frozen=True)
class Predictive:
    r"""Student-t predictions, one row for each draw of the hyper-parameters.

    Attributes
    ----------
    mean : (m, k) ndarray
        Location; also the mean.
    scale2 : (m, k) or (m, k, k) ndarray
        Squared scale, or the scale matrix; NaN, like the mean, where K could not be factorised.
    dof : int
        Degrees of freedom.
    """

    mean: FloatArray
    scale2: FloatArray
    dof: int

    @property
    def variance(self) -> FloatArray:
        r"""Variance (or covariance), ``scale2 * dof / (dof - 2)``.

        It is the paper's :math:`\hat\sigma^2 = S^2/(n-q-2)` times the correlation term.
        """
        if self.dof <= 2:
            return np.full_like(self.scale2, np.inf)
        return self.scale2 * (self.dof / (self.dof - 2.0))


@dataclass(frozen=True)
class Coefficients:
    r"""The integrated trend and variance, one row for each draw of the hyper-parameters.

    Attributes
    ----------
    mean : (m, q) ndarray
        :math:`\hat\beta = (H^T K^{-1} H)^{-1} H^T K^{-1} y`.
    scale2 : (m, q, q) ndarray
        Scale matrix :math:`S^2 (H^T K^{-1} H)^{-1} / (n - q)` of the coefficients' Student-t.
    S2 : (m,) ndarray
        :math:`S^2 = y^T Q y`.
    dof : int
        Degrees of freedom, n - q.
    """

    mean: FloatArray
    scale2: FloatArray
    S2: FloatArray
    dof: int


@dataclass(frozen=True)
class Conditional:
    """The process given hyper-parameters and runs, for many draws of the former.

    Attributes
    ----------
    X, H, y : ndarray
        Inputs ``(n, p)``, design matrix ``(n, q)`` and outputs ``(n,)`` of the runs.
    kernel : Kernel
    n_jobs : int or None
        Number of threads.
    """

    X: FloatArray
    H: FloatArray
    y: FloatArray
    kernel: Kernel
    n_jobs: int | None

    def _for_blocks(
        self,
        phi: FloatArray,
        nugget: FloatArray,
        n_columns: int,
        work: Callable[[slice, Factorisation], None],
    ) -> None:
        """Call ``work(rows, factors)`` for blocks of draws, so that few factors are held."""

        def block(start: int, stop: int) -> None:
            rows = slice(start, stop)
            with np.errstate(all="ignore"):
                factors = Factorisation(
                    self.X, self.H, self.y, self.kernel, phi[rows], nugget[rows]
                )
                work(rows, factors)

        n = len(self.y)
        with single_threaded_blas():
            for_chunks(
                block, len(phi), max(1, _BLOCK_SIZE // (n * max(n, n_columns))), self.n_jobs
            )

    def predict(
        self,
        phi: FloatArray,
        nugget: FloatArray,
        X_new: FloatArray,
        H_new: FloatArray,
        include_nugget: bool,
        return_cov: bool,
    ) -> Predictive:
        """Predictions at ``X_new`` (k, p) with regressors ``H_new`` (k, q)."""
        m, k = len(phi), len(X_new)
        dof = self.H.shape[0] - self.H.shape[1]
        mean = np.empty((m, k))
        scale2 = np.empty((m, k, k) if return_cov else (m, k))

        def work(rows: slice, factors: Factorisation) -> None:
            sigma2 = factors.S2 / dof
            if return_cov:
                mean[rows], matrix = factors.predict_jointly(X_new, H_new, include_nugget)
                scale2[rows] = sigma2[:, None, None] * matrix
                return
            for start in range(0, k, _BLOCK_INPUTS):
                part = slice(start, start + _BLOCK_INPUTS)
                mean[rows, part], term = factors.predict(X_new[part], H_new[part], include_nugget)
                scale2[rows, part] = sigma2[:, None] * term

        self._for_blocks(phi, nugget, k if return_cov else min(k, _BLOCK_INPUTS), work)
        return Predictive(mean, scale2, dof)

    def leave_one_out(self, phi: FloatArray, nugget: FloatArray) -> Predictive:
        """Predictions of each run from all others."""
        n, q = self.H.shape
        mean, scale2 = np.empty((len(phi), n)), np.empty((len(phi), n))

        def work(rows: slice, factors: Factorisation) -> None:
            mean[rows], scale2[rows] = factors.leave_one_out(self.y)

        self._for_blocks(phi, nugget, n, work)
        return Predictive(mean, scale2, n - 1 - q)

    def coefficients(self, phi: FloatArray, nugget: FloatArray) -> Coefficients:
        """Coefficients of the trend, and S2."""
        n, q = self.H.shape
        m = len(phi)
        mean, scale2, S2 = np.empty((m, q)), np.empty((m, q, q)), np.empty(m)

        def work(rows: slice, factors: Factorisation) -> None:
            mean[rows], S2[rows] = factors.beta, factors.S2
            sigma2 = factors.S2 / (n - q)
            scale2[rows] = sigma2[:, None, None] * factors.coefficient_scale()

        self._for_blocks(phi, nugget, n, work)
        return Coefficients(mean, scale2, S2, n - q)
