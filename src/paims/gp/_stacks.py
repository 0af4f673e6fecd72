"""Linear algebra on stacks of small matrices, one for each point of a batch.

Each matrix is treated by calls of its own, so what becomes of one does not depend on the others.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtrs

from paims._arrays import FloatArray


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
