r"""The whitened regression at a block of draws, and what is predicted from it.

With :math:`K = LL^T`: :math:`F = L^{-1}H = Q_1 R`, :math:`\hat\beta = R^{-1} Q_1^T L^{-1} y` and
the residual :math:`e = (I - Q_1 Q_1^T) L^{-1} y`, so that :math:`S^2 = e^T e`.

The functions are linear algebra on stacks of small matrices, one for each draw. Each matrix is
treated by calls of its own, so what becomes of one does not depend on the others.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtrs

from paims._arrays import FloatArray
from paims.gp._kernels import Kernel


def cholesky(A: FloatArray) -> FloatArray:
    """Lower factors of a stack; NaN for the matrices that are not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        result = np.full_like(A, np.nan)
        for matrix, factor in zip(A, result, strict=True):
            try:
                factor[:] = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                continue
        return result


def solve_lower(L: FloatArray, B: FloatArray) -> FloatArray:
    """L^-1 B for stacks of lower triangular L.

    NumPy has no stacked triangular solve. Reversed in both axes L is upper triangular; its LU
    factorisation with pivoting is then itself, and the general solve a back substitution.
    """
    solution = np.asarray(np.linalg.solve(L[:, ::-1, ::-1], B[:, ::-1]), dtype=np.float64)
    return solution[:, ::-1]


def solve_lower_rows(L: FloatArray, rows: FloatArray) -> FloatArray:
    """L^-1 b for every row b of ``rows`` (m, k, n), in place.

    For many right-hand sides: twice as fast as :func:`solve_lower`, at a call for each matrix.
    """
    for factor, block in zip(L, rows, strict=True):
        # Transposed, C order is the Fortran order that LAPACK wants: nothing is copied.
        block[:] = dtrtrs(factor.T, block.T, lower=0, trans=1, overwrite_b=1)[0].T
    return rows


def project_out(Q1: FloatArray, B: FloatArray) -> FloatArray:
    """(I - Q1 Q1') B for orthonormal columns Q1."""
    projected: FloatArray = B - Q1 @ (Q1.swapaxes(-1, -2) @ B)
    return projected


def diagonal(A: FloatArray) -> FloatArray:
    """Diagonals ``(m, n)`` of a stack."""
    return np.diagonal(A, axis1=1, axis2=2)


class Factorisation:
    """Factors of K at c draws of the hyper-parameters.

    Parameters
    ----------
    X, H, y : ndarray
        Inputs ``(n, p)``, design matrix ``(n, q)`` and outputs ``(n,)`` of the runs.
    kernel : Kernel
    phi : (c, p) ndarray
    nugget : (c,) ndarray

    Attributes
    ----------
    beta : (c, q) ndarray
    S2 : (c,) ndarray
        Both are NaN where K is not positive definite, and so is all that is derived from them.
    """

    def __init__(
        self,
        X: FloatArray,
        H: FloatArray,
        y: FloatArray,
        kernel: Kernel,
        phi: FloatArray,
        nugget: FloatArray,
    ) -> None:
        n, q = H.shape
        valid = (np.isfinite(phi) & (phi > 0.0)).all(axis=1) & np.isfinite(nugget)
        self.X, self.kernel, self.phi, self.nugget = X, kernel, phi, nugget
        K = kernel.correlation(X, X, phi)
        K[:, np.arange(n), np.arange(n)] += nugget[:, None]
        self.L = cholesky(K)
        self.failed = ~(valid & np.isfinite(self.L).all(axis=(1, 2)))
        self.L[self.failed] = np.eye(n)
        rows = np.broadcast_to(np.column_stack([H, y]).T, (len(phi), q + 1, n)).copy()
        whitened = solve_lower_rows(self.L, rows).swapaxes(1, 2)
        self.F = whitened[:, :, :q]
        self.Q1, self.R = (np.asarray(factor) for factor in np.linalg.qr(self.F))
        w = whitened[:, :, q:]
        self.residual = project_out(self.Q1, w)[:, :, 0]
        self.residual[self.failed] = np.nan
        self.S2 = np.einsum("ci,ci->c", self.residual, self.residual)
        self.beta = self.solve_R(self.Q1.swapaxes(1, 2) @ w)[:, :, 0]
        self.beta[self.failed] = np.nan

    def solve_R(self, B: FloatArray) -> FloatArray:
        """R^-1 B; the general solve is a back substitution for a triangular matrix."""
        return np.asarray(np.linalg.solve(self.R, B), dtype=np.float64)

    def _predict(
        self, X_new: FloatArray, H_new: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        r"""Mean ``(c, k)``, and the whitened blocks that make the correlation term.

        The mean is :math:`h^T\hat\beta + t^T K^{-1} (y - H\hat\beta) = h^T\hat\beta + v^T e`
        with :math:`v = L^{-1} t`, the rows of the second result ``(c, k, n)``; the third,
        ``(c, q, k)``, is :math:`g = R^{-T} (h - F^T v)`.
        """
        V = solve_lower_rows(self.L, self.kernel.correlation(X_new, self.X, self.phi))
        G = solve_lower(self.R.swapaxes(1, 2), H_new.T - (V @ self.F).swapaxes(1, 2))
        mean = self.beta @ H_new.T + (V @ self.residual[:, :, None])[:, :, 0]
        return mean, V, G

    def predict(
        self, X_new: FloatArray, H_new: FloatArray, include_nugget: bool
    ) -> tuple[FloatArray, FloatArray]:
        r"""Mean and correlation term :math:`1 - v^T v + g^T g` of each input, ``(c, k)``.

        The last term of the paper's equation is added: the trend is not known. What round-off
        leaves below 0 is 0.
        """
        mean, V, G = self._predict(X_new, H_new)
        term = 1.0 - np.einsum("cki,cki->ck", V, V) + np.einsum("cqk,cqk->ck", G, G)
        if include_nugget:
            term += self.nugget[:, None]
        return mean, np.maximum(term, 0.0)

    def predict_jointly(
        self, X_new: FloatArray, H_new: FloatArray, include_nugget: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Mean ``(c, k)`` and correlation matrix ``(c, k, k)``, its diagonal not below 0."""
        mean, V, G = self._predict(X_new, H_new)
        matrix = self.kernel.correlation(X_new, X_new, self.phi)
        matrix += G.swapaxes(1, 2) @ G - V @ V.swapaxes(1, 2)
        matrix = 0.5 * (matrix + matrix.swapaxes(1, 2))
        diagonal = np.arange(len(X_new))
        if include_nugget:
            matrix[:, diagonal, diagonal] += self.nugget[:, None]
        matrix[:, diagonal, diagonal] = np.maximum(matrix[:, diagonal, diagonal], 0.0)
        return mean, matrix

    def leave_one_out(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        r"""Mean and squared scale ``(c, n)`` of each run given all others.

        :math:`y_i - [Qy]_i / Q_{ii}` and
        :math:`(S^2 - [Qy]_i^2 / Q_{ii}) / ((n - 1 - q) Q_{ii})`. With :math:`b_i` the columns of
        :math:`B = (I - Q_1 Q_1^T) L^{-1}`, :math:`Q = B^T B` and :math:`Qy = B^T e`; the
        difference is the squared norm of e without its part along :math:`b_i`.
        """
        c, n, q = self.F.shape
        rows = solve_lower_rows(self.L, np.broadcast_to(np.eye(n), (c, n, n)).copy())
        rows -= (rows @ self.Q1) @ self.Q1.swapaxes(1, 2)
        norm = np.sqrt(np.einsum("cij,cij->ci", rows, rows))
        rows /= norm[:, :, None]
        along = (rows @ self.residual[:, :, None])[:, :, 0]
        without = self.residual[:, None] - along[:, :, None] * rows
        S2_without = np.einsum("cij,cij->ci", without, without)
        return y - along / norm, S2_without / ((n - 1 - q) * norm**2)

    def coefficient_scale(self) -> FloatArray:
        r""":math:`(H^T K^{-1} H)^{-1} = R^{-1} R^{-T}`, shape ``(c, q, q)``."""
        c, q, _ = self.R.shape
        inverse = self.solve_R(np.broadcast_to(np.eye(q), (c, q, q)))
        scale: FloatArray = inverse @ inverse.swapaxes(1, 2)
        return scale
