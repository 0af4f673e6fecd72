r"""One correlation for several outputs: each with a trend and a variance of its own.

Given the hyper-parameters u the outputs' integrated likelihoods have the factorisation of K in
common, so m of them cost :math:`O(n^3 + n^2 m)`. Their product treats the outputs as independent.
Where they are not it is a composite likelihood: its curvature is right, m times that of one
output, but its slope varies more than that. With :math:`\rho_{jk}` the outputs' correlations the
covariance of two slopes is :math:`\rho_{jk}^2` times the variance of one (they are quadratic forms
of correlated normals), and this is so for every parameter. Raised to the power

.. math:: \frac{\tilde m}{m}, \qquad
          \tilde m = \frac{m^2}{\sum_{jk} \rho_{jk}^2} = \frac{(\sum_i l_i)^2}{\sum_i l_i^2},

l the eigenvalues of the correlations, curvature and variance of the slope agree again, as they do
for a likelihood: :math:`\tilde m` is the effective number of outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from paims._arrays import FloatArray, IndexArray
from paims._parallel import for_chunks, single_threaded_blas
from paims.gp._checks import check_points
from paims.gp._factorisation import (
    Factorisation,
    cholesky,
    diagonal,
    project_out,
    solve_lower_rows,
)
from paims.gp._kernels import Kernel, has_form
from paims.gp._means import Basis
from paims.gp._nugget import Nugget, NuggetPrior
from paims.gp._posterior import Posterior
from paims.gp._predictive import Predictive
from paims.gp._priors import Prior

__all__ = ["OutputsPredictive", "SharedPosterior"]

# Doubles in the largest array of a block.
_BLOCK_SIZE = 250_000
# An output that the basis leaves less of than this is one that the basis explains.
_EXPLAINED = 1e-13
_SHOWN = 8
# Runs more than there are basis functions that an output needs to be part of a lead.
_LEAST_RUNS = 4


@dataclass(frozen=True)
class OutputsPredictive:
    r"""Student-t predictions of several outputs, one for each draw of the hyper-parameters.

    Attributes
    ----------
    mean : (c, k, m) ndarray
    scale2 : (c, k, m) ndarray
        Squared scales.
    dof : (m,) ndarray
        Degrees of freedom.
    """

    mean: FloatArray
    scale2: FloatArray
    dof: FloatArray


@dataclass(frozen=True)
class _Pattern:
    """Outputs that are known for the same runs."""

    outputs: IndexArray
    rows: IndexArray


class SharedPosterior(Posterior):
    r"""Log posterior density of hyper-parameters that several outputs have in common.

    .. math::
        \log p(u \mid D) = \frac{\tilde m}{m} \sum_j \Big\{ -\tfrac{n-q}{2} \log S_j^2
        - \tfrac12 \log|K| - \tfrac12 \log|H^T K^{-1} H| \Big\} + \log p(u) + \text{const}

    Outputs may miss different runs: those that miss the same have a factorisation in common.

    Parameters
    ----------
    X : (n, p) array_like
        Inputs of the runs.
    Y : (n, m) array_like
        Outputs; NaN where a run has none.
    kernel, mean, prior, nugget, nugget_prior, n_jobs
        As in :class:`Posterior`.
    effective : float, optional
        The effective number of outputs, :math:`\tilde m`; m by default.

    Attributes
    ----------
    Y : (n, m) ndarray
    effective : float
    """

    def __init__(
        self,
        X: Any,
        Y: Any,
        kernel: str | Kernel = "squared_exponential",
        mean: str | Basis | Callable[[FloatArray], Any] = "linear",
        prior: str | Prior | Any = "reference",
        nugget: str | float | Nugget = "estimate",
        nugget_prior: str | NuggetPrior = "uniform",
        *,
        effective: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        Y = np.array(Y, dtype=np.float64)
        if Y.ndim != 2 or Y.shape[1] == 0:
            raise ValueError(f"Y must have shape (n, m); got an array of shape {Y.shape}.")
        missing = np.isnan(Y)
        # The base class sees one complete output: for what does not depend on the outputs.
        first = np.where(missing[:, 0], np.nanmean(Y[:, 0]), Y[:, 0])
        super().__init__(X, first, kernel, mean, prior, nugget, nugget_prior, n_jobs=n_jobs)
        self.Y = Y
        self.effective = float(Y.shape[1] if effective is None else effective)
        self.patterns = _patterns(missing)
        self._check_outputs()

    def _check_outputs(self) -> None:
        if not np.isfinite(self.Y[~np.isnan(self.Y)]).all():
            raise ValueError("Y must be finite, or NaN where a run has no output.")
        for pattern in self.patterns:
            rows, outputs = pattern.rows, pattern.outputs
            if len(rows) <= self.n_basis:
                raise ValueError(
                    f"Output(s) {outputs.tolist()} have {len(rows)} runs; {self.n_basis} basis "
                    "functions need more."
                )
            H, Y = self.H[rows], self.Y[np.ix_(rows, outputs)]
            left = np.abs(Y - H @ np.linalg.lstsq(H, Y, rcond=None)[0]).max(axis=0)
            explained = np.asarray(left <= _EXPLAINED * np.abs(Y).max(axis=0))
            if explained.any():
                raise ValueError(
                    f"Output(s) {outputs[explained].tolist()} are reproduced exactly by the "
                    "mean's basis functions: there is nothing for a process to explain."
                )

    @property
    def n_outputs(self) -> int:
        """Number m of outputs."""
        return int(self.Y.shape[1])

    @property
    def has_gradient(self) -> bool:
        """Whether there is :meth:`value_and_gradient`: compiled, for kernels that numbers tell."""
        return super().has_gradient and has_form(self.kernel)

    @property
    def identity(self) -> dict[str, FloatArray]:
        """What tells this posterior from others of the same runs."""
        return {"Y": self.Y, "effective": np.array([self.effective])}

    def of_runs(self, rows: IndexArray, prior: Prior, nugget: Nugget) -> SharedPosterior:
        """As in the base class, of the outputs that have enough of the runs."""
        Y = self.Y[rows]
        enough = np.count_nonzero(~np.isnan(Y), axis=0) >= self.n_basis + _LEAST_RUNS
        return SharedPosterior(
            self.X[rows],
            Y[:, enough],
            self.kernel,
            self.mean,
            prior,
            nugget,
            effective=self.effective * float(enough.mean()),
            n_jobs=self.n_jobs,
        )

    def __call__(self, u: Any) -> FloatArray:
        """Log posterior densities ``(c,)`` of a batch ``u`` (c, n_params), up to a constant."""
        u = check_points("u", u, self.n_params)
        each = self.log_likelihoods(u)
        return self._with_priors(u, (self.effective / self.n_outputs) * each.sum(axis=1))

    def value_and_gradient(self, u: Any) -> tuple[FloatArray, FloatArray]:
        """Log posterior densities, up to a constant, and gradients in u: see the base class.

        Parameters
        ----------
        u : (c, n_params) array_like
        """
        u = check_points("u", u, self.n_params)
        self._require_gradient()
        phi, nugget = self.to_physical(u)
        likelihood, slopes = np.zeros(len(u)), np.zeros((len(u), self.n_inputs + 1))
        from paims.gp import _compiled  # noqa: PLC0415 - Numba is slow to import

        kernel: Any = self.kernel  # one with a form, as there is a gradient
        for pattern in self.patterns:
            X, H, Y = self._runs_of(pattern)
            terms, found = _compiled.outputs_gradients(X, H, Y, kernel, phi, nugget, self.n_jobs)
            likelihood += self._of_terms(terms, len(X)).sum(axis=1)
            slopes += found
        power = self.effective / self.n_outputs
        values = self._with_priors(u, power * likelihood)
        return self._with_slopes(u, nugget, values, power * slopes)

    def log_posteriors(self, u: Any) -> FloatArray:
        """Log posterior densities ``(c, m)`` that each output would have on its own."""
        u = check_points("u", u, self.n_params)
        each = self.log_likelihoods(u)
        prior = self._with_priors(u, np.zeros(len(u)))
        return np.where(np.isnan(each), -np.inf, each + prior[:, None])

    def _with_priors(self, u: FloatArray, log_likelihood: FloatArray) -> FloatArray:
        phi, nugget = self.to_physical(u)
        if self.prior.uses_information:
            core = self._core_terms(phi, nugget)
        else:
            core = np.zeros((len(u), 4))
        parts = self._parts(u, nugget, core)
        with np.errstate(all="ignore"):
            total = log_likelihood + parts["log_prior"]
            total = total + parts["log_nugget_prior"] + parts["log_jacobian"]
        failed = np.isnan(log_likelihood) | np.isnan(core[:, 0])
        with self._lock:
            self.n_evaluations += len(failed)
            self.n_failures += int(failed.sum())
        result: FloatArray = np.where(failed | np.isnan(total), -np.inf, total)
        return result

    def log_likelihoods(self, u: Any) -> FloatArray:
        """Integrated log likelihoods ``(c, m)`` of the outputs; NaN where a point fails."""
        phi, nugget = self.to_physical(u)
        out = np.full((len(phi), self.n_outputs), np.nan)
        valid = (np.isfinite(phi) & (phi > 0.0)).all(axis=1) & np.isfinite(nugget)
        phi, nugget = np.where(valid[:, None], phi, 1.0), np.where(valid, nugget, 1.0)
        for pattern in self.patterns:
            X, H, Y = self._runs_of(pattern)
            terms = self._terms(X, H, Y, phi, nugget)
            out[:, pattern.outputs] = self._of_terms(terms, len(X))
        out[~valid] = np.nan
        return out

    def _of_terms(self, terms: FloatArray, n_runs: int) -> FloatArray:
        """Log likelihoods ``(c, k)`` of outputs that are known for the same runs."""
        freedom = n_runs - self.n_basis
        with np.errstate(all="ignore"):
            found = -0.5 * freedom * np.log(terms[:, 2:]) - 0.5 * terms[:, :2].sum(axis=1)[:, None]
        return np.where(np.isfinite(found), found, np.nan)

    def _terms(
        self, X: FloatArray, H: FloatArray, Y: FloatArray, phi: FloatArray, nugget: FloatArray
    ) -> FloatArray:
        """Columns log|K|, log|H'K^-1 H| and S2 of each output; compiled where numbers tell K."""
        if not has_form(self.kernel):
            return outputs_terms(X, H, Y, self.kernel, phi, nugget, self.n_jobs)
        from paims.gp import _compiled  # noqa: PLC0415 - Numba is slow to import

        return _compiled.outputs_terms(X, H, Y, self.kernel, phi, nugget, self.n_jobs)

    def _runs_of(self, pattern: _Pattern) -> tuple[FloatArray, FloatArray, FloatArray]:
        rows = pattern.rows
        return self.X[rows], self.H[rows], self.Y[np.ix_(rows, pattern.outputs)]

    def _regressions(
        self, u: FloatArray, pattern: _Pattern, work: Callable[[slice, _Regressions], None]
    ) -> None:
        """Call ``work(rows, regressions)`` for blocks of draws."""
        phi, nugget = self.to_physical(u)
        X, H, Y = self._runs_of(pattern)

        def block(start: int, stop: int) -> None:
            with np.errstate(all="ignore"):
                draws = slice(start, stop)
                factors = Factorisation(X, H, Y[:, 0], self.kernel, phi[draws], nugget[draws])
                work(draws, _Regressions(factors, Y))

        size = max(1, _BLOCK_SIZE // (len(X) * max(len(X), Y.shape[1])))
        with single_threaded_blas():
            for_chunks(block, len(phi), size, self.n_jobs)

    def predict_outputs(
        self, u: Any, X_new: FloatArray, *, include_nugget: bool = True
    ) -> OutputsPredictive:
        """Predictive distributions of all outputs given each u.

        Parameters
        ----------
        u : (c, n_params) array_like
        X_new : (k, p) ndarray
        include_nugget : bool
            As in :meth:`Posterior.predict`.
        """
        u = check_points("u", u, self.n_params)
        H_new = self.mean(X_new)
        shape = (len(u), len(X_new), self.n_outputs)
        mean, scale2, dof = np.empty(shape), np.empty(shape), np.empty(self.n_outputs)
        for pattern in self.patterns:
            dof[pattern.outputs] = freedom = len(pattern.rows) - self.n_basis

            def work(
                draws: slice,
                found: _Regressions,
                outputs: IndexArray = pattern.outputs,
                freedom: int = freedom,
            ) -> None:
                scale = (found.S2 / freedom)[:, None, :]
                step = _points_at_once(found)
                for start in range(0, len(X_new), step):
                    part = slice(start, start + step)
                    means, term = found.predict(X_new[part], H_new[part], include_nugget)
                    mean[draws, part, outputs] = means
                    scale2[draws, part, outputs] = term[:, :, None] * scale

            self._regressions(u, pattern, work)
        return OutputsPredictive(mean, scale2, dof)

    def predict(
        self, u: Any, X_new: Any, *, include_nugget: bool = True, return_cov: bool = False
    ) -> Predictive:
        """Predictions of an even choice of the outputs, side by side as ``(c, k * outputs)``.

        What a few draws have to agree on to stand for many; :meth:`predict_outputs` is for all.
        """
        if return_cov:
            raise ValueError("There is no joint covariance of several outputs here.")
        shown = np.unique(
            np.linspace(0, self.n_outputs - 1, min(_SHOWN, self.n_outputs)).astype(int)
        )
        some = copy(self)
        some.Y = self.Y[:, shown]
        some.patterns = _patterns(np.isnan(some.Y))
        found = some.predict_outputs(u, np.asarray(X_new), include_nugget=include_nugget)
        flat = (len(found.mean), -1)
        dof = int(found.dof.min())
        return Predictive(found.mean.reshape(flat), found.scale2.reshape(flat), dof)

    def residuals(self, u: Any) -> FloatArray:
        r"""Whitened residuals ``(n - q, m)`` at one point u ``(n_params,)``, each of length 1.

        Where an output misses a run, the prediction of that run from the others takes its place.
        """
        u = np.asarray(u, dtype=np.float64)[None]
        Y = self.Y
        if np.isnan(Y).any():
            Y = np.where(np.isnan(Y), self.predict_outputs(u, self.X).mean[0], Y)
        phi, nugget = self.to_physical(u)
        factors = Factorisation(self.X, self.H, Y[:, 0], self.kernel, phi, nugget)
        residual = _Regressions(factors, Y).residual[0]
        full = np.linalg.qr(factors.F[0], mode="complete")[0] if self.n_basis else np.eye(len(Y))
        left: FloatArray = np.asarray(full)[:, self.n_basis :].T @ residual
        norm = np.sqrt(np.einsum("ij,ij->j", left, left))
        return np.asarray(left / np.where(norm > 0.0, norm, 1.0), dtype=np.float64)


class _Regressions:
    """The whitened regressions of several outputs, from the factors that they have in common."""

    def __init__(self, factors: Factorisation, Y: FloatArray) -> None:
        self.factors = factors
        rows = np.broadcast_to(Y.T, (len(factors.L), *Y.T.shape)).copy()
        whitened = solve_lower_rows(factors.L, rows).swapaxes(1, 2)
        self.residual = project_out(factors.Q1, whitened)
        self.residual[factors.failed] = np.nan
        self.beta = factors.solve_R(factors.Q1.swapaxes(1, 2) @ whitened)
        self.S2 = np.einsum("cij,cij->cj", self.residual, self.residual)

    def predict(
        self, X_new: FloatArray, H_new: FloatArray, include_nugget: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Means ``(c, k, m)`` and the correlation term ``(c, k)``."""
        factors = self.factors
        _, term = factors.predict(X_new, H_new, include_nugget)
        K_new = factors.kernel.correlation(X_new, factors.X, factors.phi)
        V = solve_lower_rows(factors.L, K_new)
        return H_new @ self.beta + V @ self.residual, term


def _points_at_once(found: _Regressions) -> int:
    """Points whose arrays, by draws and by runs or outputs, fit into little memory."""
    n_draws, n_runs, n_outputs = found.residual.shape
    return int(max(1, _BLOCK_SIZE // (n_draws * max(n_runs, n_outputs))))


def outputs_terms(
    X: FloatArray,
    H: FloatArray,
    Y: FloatArray,
    kernel: Kernel,
    phi: FloatArray,
    nugget: FloatArray,
    n_jobs: int | None = None,
) -> FloatArray:
    """The plain NumPy twin of ``_compiled.outputs_terms``, for points that are in range."""
    (n, q), m = H.shape, Y.shape[1]
    rows = np.ascontiguousarray(np.column_stack([H, Y]).T)
    out = np.full((len(phi), 2 + m), np.nan)

    def work(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            K = kernel.correlation(X, X, phi[start:stop])
            K[:, np.arange(n), np.arange(n)] += nugget[start:stop, None]
            L = cholesky(K)
            failed = ~np.isfinite(L).all(axis=(1, 2))
            L[failed] = np.eye(n)
            stack = np.broadcast_to(rows, (stop - start, q + m, n)).copy()
            whitened = solve_lower_rows(L, stack).swapaxes(1, 2)
            Q1, R = np.linalg.qr(whitened[:, :, :q])
            residual = project_out(np.asarray(Q1), whitened[:, :, q:])
            block = out[start:stop]
            block[:, 0] = 2.0 * np.log(diagonal(L)).sum(axis=1)
            block[:, 1] = 2.0 * np.log(np.abs(diagonal(np.asarray(R)))).sum(axis=1)
            block[:, 2:] = np.einsum("cij,cij->cj", residual, residual)
            block[failed] = np.nan

    with single_threaded_blas():
        for_chunks(work, len(phi), max(1, _BLOCK_SIZE // (n * max(n, q + m))), n_jobs)
    return out


def effective_outputs(residuals: FloatArray) -> float:
    r"""Effective number of outputs, from whitened residuals ``(f, m)`` of length 1.

    :math:`m^2 / \sum_{jk} \rho_{jk}^2`, where the square of a correlation r that f independent
    residuals show is too large by :math:`(1 - \rho^2)/f` on average.
    """
    freedom, m = residuals.shape
    gram = residuals.T @ residuals if m <= freedom else residuals @ residuals.T
    squares = (float(np.sum(gram**2)) - m) / max(m * (m - 1), 1)  # mean over pairs
    if freedom > 1:
        squares = (squares - 1.0 / freedom) / (1.0 - 1.0 / freedom)
    squares = min(max(squares, 0.0), 1.0)
    return float(m / (1.0 + (m - 1) * squares))


def _patterns(missing: Any) -> list[_Pattern]:
    """Groups of outputs by the runs that they miss."""
    distinct, inverse = np.unique(missing, axis=1, return_inverse=True)
    inverse = np.asarray(inverse).ravel()
    return [
        _Pattern(np.flatnonzero(inverse == i), np.flatnonzero(~distinct[:, i]))
        for i in range(distinct.shape[1])
    ]
