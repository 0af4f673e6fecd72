"""Residuals of several outputs at one point, from one factorisation: see ``_large``."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from paims._arrays import FloatArray
from paims.gp._compiled._lapack import Addresses, solve
from paims.gp._compiled._large import contrast, determinants_and_residual, factorise
from paims.gp._compiled._pairs import fill_correlation
from paims.gp._compiled._simd import entry


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
