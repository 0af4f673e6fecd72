r"""Several outputs at one point, from one factorisation: see ``_large`` and ``_gradient``.

The gradient of the sum of their integrated log likelihoods is that of one, with the mean

    M = ((1/m) sum_j ((n-q)/S2_j) a_j a_j' - Q)/2,   a_j = Q y_j

in the place of M, and m times as large: the outputs cost one product of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from paims._arrays import FloatArray
from paims.gp._compiled._gradient import projector
from paims.gp._compiled._kernels import slope_polynomial
from paims.gp._compiled._lapack import Addresses, add_product, solve, solve_transposed
from paims.gp._compiled._large import contrast, determinants_and_residual, factorise
from paims.gp._compiled._pairs import fill_correlation, leading_dimension, slope_sums
from paims.gp._compiled._simd import LANES, entry, part

N_STAGES = 3


def layout(n: int, p: int, q: int, m: int) -> tuple[int, ...]:
    """Where each matrix starts in the workspace of ``run_outputs_gradient``; last its size."""
    ld = leading_dimension(n)
    lengths = [
        n * ld,  # L: T K T', its factor, then Q less what the outputs bring
        n * ld,  # K0
        q * (n - q),  # W'
        ld,  # diagonal of T K T', then zeros
        m * ld,  # Lc^-1 C y of each output, then a
        LANES * p,  # sums, lane by lane
        p,  # the point
    ]
    return (0, *(int(s) for s in np.cumsum(lengths)))


@part
def _residuals(
    lapack: Addresses, w: FloatArray, L: int, b: int, Z: FloatArray, row: FloatArray, ld: int
) -> None:
    """Lc^-1 C y of the outputs after the first, one after the other from b on, and their S2."""
    for j in range(1, len(Z)):
        at, S2 = b + j * ld, 0.0
        for i in range(Z.shape[1]):
            w[at + i] = Z[j, i]
        solve(lapack, w[L:], Z.shape[1], ld, w[at:])
        for i in range(Z.shape[1]):
            S2 += w[at + i] ** 2
        row[2 + j] = S2


@part
def _mean_of_outputs(
    lapack: Addresses,
    w: FloatArray,
    L: int,
    A: FloatArray,
    a: int,
    row: FloatArray,
    m: int,
    ld: int,
) -> None:
    """Q - (1/m) sum_j ((n-q)/S2_j) a_j a_j' in the place of L."""
    dof, q = A.shape
    n = dof + q
    for j in range(1, m):
        at = a + j * ld
        solve_transposed(lapack, w[L:], dof, ld, w[at:])
        for i in range(dof, ld):
            w[at + i] = 0.0
        for k in range(dof):
            for i in range(q):
                w[at + dof + i] -= A[k, i] * w[at + k]
    projector(lapack, w, L, A, a, ld)  # after which the factor is no more; the first a is there
    for j in range(m):
        scale = math.sqrt(dof / row[2 + j] / m)
        for i in range(n):
            w[a + j * ld + i] *= scale
    add_product(lapack, -1.0, w[a:], ld, w[a:], ld, 1.0, w[L:], ld, n, n, m)


def make_run(version: int) -> Callable[..., None]:
    """Make ``run_outputs``, whose code is cached on disk under ``version``, as in ``_lanes``."""

    @entry
    def run_outputs(
        lapack: Addresses,
        runs: FloatArray,
        kind: int,
        A: FloatArray,
        Z: FloatArray,
        log_det: float,
        shift: float,
        polynomial: FloatArray,
        slope: FloatArray,
        radial: bool,
        points: FloatArray,
        delta: FloatArray,
        ld: int,
        m: int,
        where: tuple[int, ...],
        w: FloatArray,
        out: FloatArray,
    ) -> None:
        """Fill ``out[m]`` with log|K|, log|H'K^-1 H| and the S2 of the outputs.

        ``Z`` has C y of each output as a row; the other arguments are those of ``run_large``.
        """
        if version < 0:
            return
        dof, q = A.shape
        n, p = dof + q, points.shape[1]
        L, W, b, point = where[0], where[3], where[4], where[7]
        row, info = out[m], np.zeros(1, dtype=np.int32)
        for k in range(p):
            w[point + k] = points[m, k]
        fill_correlation(
            runs, kind, n, p, polynomial, slope, radial, w, point, ld, shift, delta[m], L, -1
        )
        contrast(lapack, w, L, A, W, dof, q, ld, True)
        if not factorise(lapack, w, L, b, n, dof, ld, shift, info):
            return
        determinants_and_residual(lapack, w, L, b, Z[0], n, log_det, ld, row)
        for j in range(1, len(Z)):
            for i in range(dof):
                w[b + i] = Z[j, i]
            solve(lapack, w[L:], dof, ld, w[b:])
            S2 = 0.0
            for i in range(dof):
                S2 += w[b + i] ** 2
            row[2 + j] = S2
        if not math.isfinite(row.sum()):
            row[:] = math.nan

    return run_outputs


def make_run_gradient(version: int) -> Callable[..., None]:
    """Make ``run_outputs_gradient``, cached as the other."""

    @entry
    def run_outputs_gradient(
        lapack: Addresses,
        runs: FloatArray,
        kind: int,
        A: FloatArray,
        Z: FloatArray,
        log_det: float,
        shift: float,
        power: float,
        polynomial: FloatArray,
        slope: FloatArray,
        radial: bool,
        points: FloatArray,
        delta: FloatArray,
        ld: int,
        m: int,
        first: int,
        last: int,
        where: tuple[int, ...],
        w: FloatArray,
        out: FloatArray,
        gradient: FloatArray,
    ) -> None:
        """Fill ``out[m]`` as ``run_outputs`` does, and ``gradient[m]``: in log phi, and in delta.

        Stages 0 to 2 are the values, M, and the sums over pairs.
        """
        if version < 0:
            return
        dof, q = A.shape
        n, p, n_outputs = dof + q, points.shape[1], len(Z)
        L, K0, W, zeros, a, sums, point, _ = where
        row, slopes = out[m], gradient[m]
        for stage in range(first, last + 1):
            if stage == 0:
                for k in range(p):
                    w[point + k] = points[m, k]
                fill_correlation(
                    runs, kind, n, p, polynomial, slope, radial, w, point, ld, shift, delta[m], L,
                    K0,
                )  # fmt: skip
                contrast(lapack, w, L, A, W, dof, q, ld, True)
                info = np.zeros(1, dtype=np.int32)
                if factorise(lapack, w, L, zeros, n, dof, ld, shift, info):
                    determinants_and_residual(lapack, w, L, a, Z[0], n, log_det, ld, row)
                    _residuals(lapack, w, L, a, Z, row, ld)
            elif not (math.isfinite(row.sum()) and row[2:].min() > 0.0):
                return
            elif stage == 1:
                _mean_of_outputs(lapack, w, L, A, a, row, n_outputs, ld)
            else:
                for i in range(ld):
                    w[zeros + i] = 0.0
                factor = slope_polynomial(polynomial, radial)
                slope_sums(
                    runs, kind, n, p, power, factor, slope, w, point, ld, 0.0, L, K0, zeros, sums
                )
                for k in range(p):
                    slopes[k] = 0.0
                    for lane in range(LANES):
                        slopes[k] += n_outputs * w[sums + LANES * k + lane]
                slopes[p] = 0.0
                for i in range(n):
                    slopes[p] -= 0.5 * n_outputs * w[L + i * (ld + 1)]

    return run_outputs_gradient
