r"""What the emulator says given hyper-parameters: predictions, checks, coefficients.

Given :math:`(\phi, \delta)` everything is a Student-t distribution with :math:`n - q` degrees of
freedom. The paper's Gaussian is its moment match: it has the same mean and variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular

from paims.gp._arrays import FloatArray
from paims.gp.kernels import Kernel

# Columns of an (n, k) block of correlations with the new inputs: bounds the memory.
_BLOCK_COLUMNS = 4096


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


class Factorisation:
    r"""The whitened regression at one :math:`(\phi, \delta)`.

    With :math:`K = LL^T`: :math:`F = L^{-1}H = Q_1 R`, :math:`\hat\beta = R^{-1} Q_1^T L^{-1} y`
    and the residual :math:`e = (I - Q_1 Q_1^T) L^{-1} y`, so that :math:`S^2 = e^T e`.

    Raises
    ------
    LinAlgError
        If K is not positive definite to working precision.
    """

    def __init__(
        self,
        X: FloatArray,
        H: FloatArray,
        y: FloatArray,
        kernel: Kernel,
        phi: FloatArray,
        nugget: float,
    ) -> None:
        q = H.shape[1]
        if not (np.isfinite(phi).all() and (phi > 0.0).all() and np.isfinite(nugget)):
            raise LinAlgError("phi and the nugget must be finite.")
        self.X, self.kernel, self.phi, self.nugget = X, kernel, phi[None], nugget
        K = kernel.correlation(X, X, self.phi)[0]
        K[np.diag_indices_from(K)] += nugget
        self.L: FloatArray = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        whitened = self.whiten(np.column_stack([H, y]))
        self.F: FloatArray = whitened[:, :q]
        self.Q1: FloatArray = np.empty((len(X), 0))
        self.R: FloatArray = np.empty((0, 0))
        if q:
            self.Q1, self.R = qr(self.F, mode="economic", check_finite=False)
        projection = self.Q1.T @ whitened[:, q]
        self.residual: FloatArray = whitened[:, q] - self.Q1 @ projection
        self.beta = self.solve_R(projection)
        self.S2 = float(self.residual @ self.residual)
        if not np.isfinite(self.S2):
            raise LinAlgError("The whitened residual is not finite.")

    def whiten(self, B: FloatArray) -> FloatArray:
        """L^-1 B."""
        solution: FloatArray = solve_triangular(self.L, B, lower=True, check_finite=False)
        return solution

    def solve_R(self, B: FloatArray, transposed: bool = False) -> FloatArray:
        """R^-1 B, or R^-T B."""
        if not len(B):
            return B
        solution: FloatArray = solve_triangular(
            self.R, B, trans="T" if transposed else "N", check_finite=False
        )
        return solution

    def predict(self, X_new: FloatArray, H_new: FloatArray) -> tuple[FloatArray, ...]:
        r"""Mean, and the two whitened blocks that make the correlation term.

        Returns
        -------
        mean : (k,) ndarray
            :math:`h^T \hat\beta + t^T K^{-1} (y - H\hat\beta)`, as :math:`h^T\hat\beta + V^T e`.
        V : (n, k) ndarray
            :math:`L^{-1} t`.
        G : (q, k) ndarray
            :math:`R^{-T} (h - F^T V)`.
        """
        V = self.whiten(self.kernel.correlation(self.X, X_new, self.phi)[0])
        G = self.solve_R(H_new.T - self.F.T @ V, transposed=True)
        return H_new @ self.beta + V.T @ self.residual, V, G

    def predict_scale2(
        self, X_new: FloatArray, H_new: FloatArray, include_nugget: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Mean ``(k,)`` and correlation term ``(k,)`` of each new input; not below 0."""
        k = len(X_new)
        mean, term = np.empty(k), np.empty(k)
        for start in range(0, k, _BLOCK_COLUMNS):
            block = slice(start, start + _BLOCK_COLUMNS)
            mean[block], V, G = self.predict(X_new[block], H_new[block])
            # The last term of the paper's equation is added: the trend is not known.
            term[block] = 1.0 - np.einsum("ik,ik->k", V, V) + np.einsum("ik,ik->k", G, G)
        if include_nugget:
            term += self.nugget
        return mean, np.maximum(term, 0.0)

    def predict_scale_matrix(
        self, X_new: FloatArray, H_new: FloatArray, include_nugget: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Mean ``(k,)`` and correlation matrix ``(k, k)``; the diagonal is not below 0."""
        mean, V, G = self.predict(X_new, H_new)
        matrix = self.kernel.correlation(X_new, X_new, self.phi)[0] - V.T @ V + G.T @ G
        matrix = 0.5 * (matrix + matrix.T)
        diagonal = np.diag_indices_from(matrix)
        if include_nugget:
            matrix[diagonal] += self.nugget
        matrix[diagonal] = np.maximum(matrix[diagonal], 0.0)
        return mean, matrix

    def leave_one_out(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        r"""Mean and squared scale of each run given all others.

        :math:`y_i - [Qy]_i / Q_{ii}` and
        :math:`(S^2 - [Qy]_i^2 / Q_{ii}) / ((n - 1 - q) Q_{ii})`. With :math:`b_i` the columns of
        :math:`B = (I - Q_1 Q_1^T) L^{-1}`, :math:`Q = B^T B` and :math:`Qy = B^T e`; the
        difference is the squared norm of e without its part along :math:`b_i`.
        """
        n, q = self.F.shape
        B = self.whiten(np.eye(n))
        B -= self.Q1 @ (self.Q1.T @ B)
        norm = np.sqrt(np.einsum("ij,ij->j", B, B))
        B /= norm
        along = B.T @ self.residual
        without = self.residual[:, None] - B * along
        S2_without = np.einsum("ij,ij->j", without, without)
        return y - along / norm, S2_without / ((n - 1 - q) * norm**2)
