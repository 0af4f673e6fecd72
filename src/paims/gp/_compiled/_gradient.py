"""The gradient of the integrated log likelihood, one point at a time through LAPACK.

    l = -(n-q)/2 log S2 - 1/2 log|K| - 1/2 log|H'K^-1 H|
    dl = sum_ij M_ij dK_ij,   M = ((n-q)/S2 a a' - Q)/2,   a = Qy

Q = C'(C K C')^-1 C and a come from the factor of ``_large`` by one inverse more than a value has;
then all p derivatives take one pass over the pairs of runs, dK/d log phi_k = K0 h_k, and that in
delta is tr M.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from paims._arrays import FloatArray
from paims.gp._compiled._kernels import slope_polynomial
from paims.gp._compiled._lapack import (
    Addresses,
    add_product,
    add_product_with_symmetric,
    invert,
    solve_transposed,
)
from paims.gp._compiled._large import contrast, determinants_and_residual, factorise
from paims.gp._compiled._pairs import fill_correlation, leading_dimension, slope_sums
from paims.gp._compiled._simd import LANES, entry, part

N_STAGES = 3


def layout(n: int, p: int, q: int) -> tuple[int, ...]:
    """Where each matrix starts in the workspace of ``run_gradient``; last comes its size."""
    ld = leading_dimension(n)
    lengths = [
        n * ld,  # L: T K T', its factor, then Q
        n * ld,  # K0
        q * (n - q),  # W'
        ld,  # diagonal of T K T', then a
        LANES * p,  # sums, lane by lane
        p,  # the point
    ]
    return (0, *(int(s) for s in np.cumsum(lengths)))


@part
def projector(lapack: Addresses, w: FloatArray, L: int, A: FloatArray, a: int, ld: int) -> None:
    """Q in the place of L, and a in that of Lc^-1 C y, zero below its n entries."""
    dof, q = A.shape
    info = np.zeros(1, dtype=np.int32)
    solve_transposed(lapack, w[L:], dof, ld, w[a:])
    for i in range(dof, ld):
        w[a + i] = 0.0
    invert(lapack, w[L:], dof, ld, info)
    if q == 0:
        return
    for j in range(dof):
        for i in range(q):
            w[a + dof + i] -= A[j, i] * w[a + j]
    below, corner = L + dof, L + dof * (ld + 1)
    add_product_with_symmetric(lapack, -1.0, A, q, w[L:], ld, 0.0, w[below:], ld, q, dof)
    add_product(lapack, -1.0, w[below:], ld, A, q, 0.0, w[corner:], ld, q, q, dof)


def make_run(version: int) -> Callable[..., None]:
    """Make ``run_gradient``, whose code is cached on disk under ``version``."""

    @entry
    def run_gradient(
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
        ld: int,
        m: int,
        first: int,
        last: int,
        where: tuple[int, ...],
        w: FloatArray,
        out: FloatArray,
        gradient: FloatArray,
    ) -> None:
        """Fill ``out[m]`` as ``run_large`` does, and ``gradient[m]``: in log phi, and in delta.

        Stages 0 to 2 are the value, Q, and the sums over pairs.
        """
        if version < 0:
            return
        dof, q = A.shape
        n, p = dof + q, points.shape[1]
        L, K0, W, a, sums, point, _ = where
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
                if factorise(lapack, w, L, a, n, dof, ld, shift, info):
                    determinants_and_residual(lapack, w, L, a, z, n, log_det, ld, row)
                    row[3] = 0.0
            elif not (math.isfinite(row[0]) and math.isfinite(row[1]) and row[2] > 0.0):
                return
            elif stage == 1:
                projector(lapack, w, L, A, a, ld)
            else:
                ratio = dof / row[2]
                factor = slope_polynomial(polynomial, radial)
                slope_sums(
                    runs, kind, n, p, power, factor, slope, w, point, ld, ratio, L, K0, a, sums
                )
                for k in range(p):
                    slopes[k] = 0.0
                    for lane in range(LANES):
                        slopes[k] += w[sums + LANES * k + lane]
                slopes[p] = 0.0
                for i in range(n):
                    slopes[p] += 0.5 * (ratio * w[a + i] ** 2 - w[L + i * (ld + 1)])

    return run_gradient
