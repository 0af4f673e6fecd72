"""One point at a time through LAPACK: the terms of the posterior where matrices are large.

The mathematics is in ``_compiled``. Four points in the lanes of a vector, as ``_lanes`` has them,
are faster as long as their matrices fit into a core's cache; LAPACK's blocks are made for those
that do not. A point is done in stages, so that a caller can be interrupted between them: -1 for
everything that K alone gives, 0 to n_rows - 1 for the rows of the information matrix, and n_rows
for its determinant.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from paims._arrays import Array, FloatArray
from paims.gp._compiled._information import PARALLEL
from paims.gp._compiled._kernels import DOMINANT, slope_polynomial
from paims.gp._compiled._lanes import SINGULAR
from paims.gp._compiled._lapack import (
    Addresses,
    add_symmetric_product,
    cholesky,
    gram,
    solve,
    subtract_products,
    whiten,
)
from paims.gp._compiled._pairs import fill_correlation, fill_slope, leading_dimension
from paims.gp._compiled._simd import entry, part

_ROOT2 = math.sqrt(2.0)


def layout(n: int, p: int, q: int, n_rows: int) -> tuple[int, ...]:
    """Where each matrix starts in the workspace of ``run_large``; the last number is its size.

    Parameters
    ----------
    n, p, q : int
        Number of runs, inputs and basis functions.
    n_rows : int
        Rows of the information matrix beside the variance's; 0 when it is not wanted.
    """
    dof, matrix, wanted = n - q, n * leading_dimension(n), n_rows > 0
    lengths = [
        matrix,  # L: T K T', then its factor
        wanted * matrix,  # D: the T dK_i T' in turn
        wanted * matrix,  # K0
        q * dof,  # W'
        n,  # diagonal of T K T', then Lc^-1 C y
        n_rows * (dof * (dof + 1) // 2),  # M_i, packed, what is off the diagonal times sqrt(2)
        n_rows * n_rows,  # <M_i, M_j>
        p,  # the point
    ]
    return (0, *(int(s) for s in np.cumsum(lengths)))


@part
def contrast(
    lapack: Addresses,
    w: FloatArray,
    D: int,
    A: FloatArray,
    W: int,
    dof: int,
    q: int,
    ld: int,
    keep: bool,
) -> None:
    """T D T' for T = [[I, -A], [0, I]] in place; only its first block unless ``keep``.

    With W' = D21 - D22 A' / 2: the first block is D11 - A W' - W A', the second D21 - D22 A'.
    ``A`` is stored by rows, so that Fortran sees A'.
    """
    if q == 0:
        return
    below, corner = D + dof, D + dof * (ld + 1)
    for j in range(dof):
        for a in range(q):
            w[W + j * q + a] = w[below + j * ld + a]
    add_symmetric_product(lapack, -0.5, w[corner:], ld, A, q, 1.0, w[W:], q, q, dof)
    if keep:
        add_symmetric_product(lapack, -1.0, w[corner:], ld, A, q, 1.0, w[below:], ld, q, dof)
    subtract_products(lapack, A, w[W:], q, w[D:], dof, ld)


@part
def factorise(
    lapack: Addresses,
    w: FloatArray,
    L: int,
    diagonal: int,
    n: int,
    dof: int,
    ld: int,
    shift: float,
    info: Array,
) -> bool:
    """Cholesky factor of T K T' in place; False where a pivot is rounding error or worse."""
    for j in range(dof, n):
        for i in range(j, n):
            w[L + j * ld + i] += shift
    for i in range(n):
        w[diagonal + i] = w[L + i * (ld + 1)]
    if not cholesky(lapack, w[L:], n, ld, info):
        return False
    for i in range(n):
        pivot = w[L + i * (ld + 1)] ** 2
        if not pivot > SINGULAR * w[diagonal + i]:
            return False
    return True


@part
def determinants_and_residual(
    lapack: Addresses,
    w: FloatArray,
    L: int,
    b: int,
    z: FloatArray,
    n: int,
    log_det: float,
    ld: int,
    row: FloatArray,
) -> None:
    """Fill log|K|, log|H'K^-1 H| and S2 into ``row``; Lc^-1 C y stays at b."""
    dof = len(z)
    log_det_C = log_det_R = S2 = 0.0
    for i in range(n):
        term = 2.0 * math.log(w[L + i * (ld + 1)])
        if i < dof:
            log_det_C += term
        else:
            log_det_R -= term
    for i in range(dof):
        w[b + i] = z[i]
    solve(lapack, w[L:], dof, ld, w[b:])
    for i in range(dof):
        S2 += w[b + i] ** 2
    row[0] = log_det_C - log_det_R
    row[1] = log_det + log_det_R
    row[2] = S2


@part
def _pack(w: FloatArray, D: int, dof: int, ld: int, M: int) -> None:
    """M = D - c I, c its mean eigenvalue, so that tr M = 0; see ``layout``."""
    trace = 0.0
    for i in range(dof):
        trace += w[D + i * (ld + 1)]
    c = trace / dof
    at = M
    for j in range(dof):
        w[at] = w[D + j * (ld + 1)] - c
        for i in range(1, dof - j):
            w[at + i] = _ROOT2 * w[D + j * (ld + 1) + i]
        at += dof - j


@part
def _log_determinant(w: FloatArray, G: int, n_rows: int) -> float:
    """Log determinant of <M_i, M_j>, scaled by its diagonal; NaN if it has lost its digits."""
    result = 0.0
    for a in range(n_rows):
        result += math.log(w[G + a * (n_rows + 1)])
    for a in range(n_rows):
        square = w[G + a * (n_rows + 1)]
        for b in range(a + 1):
            # column by column, lower triangle; the diagonal is replaced last
            s = w[G + b * n_rows + a]
            for k in range(b):
                s -= w[G + k * n_rows + a] * w[G + k * n_rows + b]
            if b < a:
                w[G + b * n_rows + a] = s / w[G + b * (n_rows + 1)]
            elif s > PARALLEL * square:
                result += math.log(s / square)
                w[G + a * (n_rows + 1)] = math.sqrt(s)
            else:
                return math.nan
    return result


@part
def _log_determinant_of_rest(w: FloatArray, M: int, length: int, n_rows: int) -> float:
    """The same from the M_i: |M_i|^2 without its parts along those before it.

    As accurate as the M_i themselves, where their inner products lose the angle between nearly
    parallel ones to rounding. NaN if nothing is left.
    """
    result = 0.0
    for a in range(n_rows):
        left = w[M + a * length : M + (a + 1) * length]
        before = np.dot(left, left)
        for b in range(a):
            along = w[M + b * length : M + (b + 1) * length]
            ratio = np.dot(left, along) / np.dot(along, along)
            for i in range(length):
                left[i] -= ratio * along[i]
        square = np.dot(left, left)
        if not square > 2.0**-100 * before:
            return math.nan
        result += math.log(square)
    return result


@part
def _log_information(
    lapack: Addresses, w: FloatArray, M: int, length: int, n_rows: int, G: int
) -> float:
    """Log determinant of <M_i, M_j>."""
    gram(lapack, w[M:], length, n_rows, w[G:])
    found = _log_determinant(w, G, n_rows)
    return _log_determinant_of_rest(w, M, length, n_rows) if math.isnan(found) else found


@part
def _fill_nugget_slope(
    runs: FloatArray,
    kind: int,
    n: int,
    p: int,
    polynomial: FloatArray,
    slope: FloatArray,
    radial: bool,
    w: FloatArray,
    point: int,
    ld: int,
    shift: float,
    delta: float,
    D: int,
) -> None:
    """dK/d log delta, up to sign and a multiple of K, which change no determinant.

    That is delta I, or K0 - shift 1 1' for all but small nuggets; ``_kernels`` says why.
    """
    if delta > DOMINANT:
        fill_correlation(
            runs, kind, n, p, polynomial, slope, radial, w, point, ld, shift, 0.0, D, -1
        )
        return
    for j in range(n):
        w[D + j * ld : D + j * ld + n] = 0.0
        w[D + j * (ld + 1)] = delta


def make_run(version: int) -> Callable[..., None]:
    """Make ``run_large``, whose code is cached on disk under ``version``, as ``_lanes`` has it."""

    @entry
    def run_large(
        lapack: Addresses,
        runs: FloatArray,
        kind: int,
        A: FloatArray,
        z: FloatArray,
        log_det: float,
        shift: float,
        power: float,
        polynomial: FloatArray,
        slope: FloatArray,
        radial: bool,
        points: FloatArray,
        delta: FloatArray,
        n_rows: int,
        ld: int,
        m: int,
        first: int,
        last: int,
        where: tuple[int, ...],
        w: FloatArray,
        out: FloatArray,
    ) -> None:
        """Fill ``out[m]`` by the stages from ``first`` to ``last``; see ``core_terms``.

        ``A``, ``z``, ``log_det`` and ``shift`` are what ``contrasts`` makes of H and y, ``runs``
        and ``kind`` what ``run_terms`` makes of X, ``points`` is of ``scale_terms``, and
        ``where`` is the ``layout`` of the workspace ``w``.
        """
        if version < 0:
            return
        dof, q = A.shape
        n, p = dof + q, points.shape[1]
        L, D, K0, W, b, M, G, point, _ = where
        length = dof * (dof + 1) // 2
        row, info = out[m], np.zeros(1, dtype=np.int32)
        nugget = delta[m]
        for stage in range(first, last + 1):
            if stage < 0:
                for k in range(p):
                    w[point + k] = points[m, k]
                at = K0 if n_rows > 0 else -1
                fill_correlation(
                    runs, kind, n, p, polynomial, slope, radial, w, point, ld, shift, nugget, L, at
                )
                contrast(lapack, w, L, A, W, dof, q, ld, True)
                if factorise(lapack, w, L, b, n, dof, ld, shift, info):
                    determinants_and_residual(lapack, w, L, b, z, n, log_det, ld, row)
                    row[3] = 0.0
            elif math.isnan(row[0]):
                return
            elif stage < n_rows:
                if stage < p:
                    factor = slope_polynomial(polynomial, radial)
                    fill_slope(runs, kind, n, stage, power, factor, slope, w, point, ld, D, K0)
                else:
                    _fill_nugget_slope(
                        runs, kind, n, p, polynomial, slope, radial, w, point, ld, shift, nugget, D
                    )
                contrast(lapack, w, D, A, W, dof, q, ld, False)
                whiten(lapack, w[D:], w[L:], dof, ld, info)
                _pack(w, D, dof, ld, M + stage * length)
            else:
                row[3] = math.log(dof) + _log_information(lapack, w, M, length, n_rows, G)
        if not math.isfinite(row.sum()):
            row[:] = math.nan

    return run_large
