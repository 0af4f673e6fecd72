"""Four points at a time, one in each lane of a vector: the mathematics is in ``_compiled``.

Entry (i, j) of a matrix is a vector with the entries of four matrices, so every operation is the
same in each lane whatever its neighbours hold: a point's result does not depend on its place in
the batch. All matrices are parts of one flat workspace ``w``, named by the index at which they
start, and padded to a multiple of three rows by an identity.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from paims._arrays import FloatArray
from paims.gp._compiled._information import information_pivots, whiten
from paims.gp._compiled._kernels import (
    Shape,
    fill_correlation,
    fill_slope,
    slope_polynomial,
)
from paims.gp._compiled._simd import (
    LANES,
    add,
    div,
    entry,
    fma,
    fnma,
    load,
    mul,
    part,
    splat,
    sqrt,
    store,
    sub,
    where_less,
)
from paims.gp._compiled._tiles import (
    GROUP,
    STRIP,
    product,
    read,
    replace_scaled_difference,
    solve,
    symmetric_product,
    tile_difference,
    transpose,
    write,
)

SINGULAR = 8.0 * 2.0**-52  # a pivot this small beside its diagonal entry is rounding error


def layout(n: int, p: int, q: int, n_rows: int) -> tuple[int, ...]:
    """Where each matrix starts in the workspace of ``run_lanes``; the last number is its size.

    Parameters
    ----------
    n, p, q : int
        Number of runs, inputs and basis functions.
    n_rows : int
        Rows of the information matrix beside the variance's; 0 when it is not wanted.
    """
    size, basis, rows = (-(-s // 3) * 3 for s in (n - q, q, n_rows))
    total = size + basis
    wanted = n_rows > 0
    lengths = [
        total * total,  # D: T K T', then L^-T, then the T dK_i T' in turn
        (total + 3) * total,  # L, and below it (L^-1 T y)'; then V
        total,  # 1 / L_ii
        wanted * size * total,  # L^-1 of the first block
        size * basis,  # A
        size * basis,  # W
        wanted * n * (n - 1) // 2,  # K0, pair by pair
        rows * size * (size + 3) // 2,  # M_i
        rows * rows,  # <M_i, M_j>
        n_rows,  # |M_i|^2
        n_rows,  # pivots of the information matrix
        p + 1,  # the point: phi as ``point_terms`` has it, and delta
    ]
    return (0, *(int(LANES * s) for s in np.cumsum(lengths)))


@part
def _contrast(w: FloatArray, D: int, A: int, W: int, size: int, total: int, keep: bool) -> None:
    """T D T' for T = [[I, -A], [0, I]], upper triangle in place.

    With W = D12 - A D22 / 2: the first block is D11 - A W' - W A', the second D12 - A D22. When
    not ``keep``, only the first is wanted, with its diagonal tiles halved.
    """
    ld, lda = LANES * total, LANES * (total - size)
    half, one = splat(0.5), splat(1.0)
    for j in range(0, size, 3):
        for a in range(0, total - size, 3):
            right = D + (size + a) * ld + LANES * size
            t = product(w, A + j * lda, lda, right, ld, total - size)
            at = D + j * ld + LANES * (size + a)
            s = read(w, at, ld)
            for k in range(9):
                store(w, W + (j + k // 3) * lda + LANES * (a + k % 3), fnma(half, t[k], s[k]))
            if keep:
                replace_scaled_difference(w, at, ld, t, one)
    for j in range(0, size, 3):
        for i in range(j, size, 3):
            t = symmetric_product(w, A, W, lda, j, i, total - size)
            scale = half if i == j and not keep else one
            replace_scaled_difference(w, D + j * ld + LANES * i, ld, t, scale)


@part
def _factorise(w: FloatArray, D: int, L: int, inverse: int, total: int) -> None:
    """Cholesky D = L L'; the three rows that L has below it, B, become B L^-T.

    A pivot that is rounding error makes the lane NaN, as a negative one does.
    """
    ld = LANES * total
    one, nan, floor = splat(1.0), splat(math.nan), splat(SINGULAR)
    for group in range(0, total + 3, GROUP):
        end = min(group + GROUP, total + 3)
        for j in range(0, min(end, total), 3):
            panel, at, r = L + j * ld, L + j * (ld + LANES), inverse + LANES * j
            for strip in range(0, max(j, 1), STRIP):
                width = min(STRIP, j - strip)
                k = LANES * strip
                for i in range(max(group, j), end, 3):
                    tile = L + i * ld + LANES * j
                    t = product(w, L + i * ld + k, ld, panel + k, ld, width)
                    if strip > 0 or i == total:
                        s = read(w, tile, ld)
                    else:
                        s = transpose(read(w, D + j * ld + LANES * i, ld))
                    if strip + width < j:
                        write(w, tile, ld, tile_difference(s, t))
                    elif i > j:
                        write(w, tile, ld, solve(w, at, ld, r, s, t))
                    else:
                        d = D + j * (ld + LANES)
                        u = sub(s[0], t[0])
                        u = where_less(mul(floor, load(w, d)), u, u, nan)
                        r0 = div(one, sqrt(u))
                        l10, l20 = mul(sub(s[3], t[3]), r0), mul(sub(s[6], t[6]), r0)
                        u = fnma(l10, l10, sub(s[4], t[4]))
                        u = where_less(mul(floor, load(w, d + ld + 4)), u, u, nan)
                        r1 = div(one, sqrt(u))
                        l21 = mul(fnma(l10, l20, sub(s[7], t[7])), r1)
                        u = fnma(l21, l21, fnma(l20, l20, sub(s[8], t[8])))
                        u = where_less(mul(floor, load(w, d + 2 * ld + 8)), u, u, nan)
                        store(w, tile + ld, l10)
                        store(w, tile + 2 * ld, l20)
                        store(w, tile + 2 * ld + 4, l21)
                        store(w, r, r0)
                        store(w, r + 4, r1)
                        store(w, r + 8, div(one, sqrt(u)))


@part
def _invert(w: FloatArray, L: int, inverse: int, size: int, total: int, U: int, LI: int) -> None:
    """L^-1 of the first block into LI, by way of its transpose U."""
    ld = LANES * total
    zero, one = splat(0.0), splat(1.0)
    identity = (one, zero, zero, zero, one, zero, zero, zero, one)
    empty = (zero, zero, zero, zero, zero, zero, zero, zero, zero)
    for group in range(0, size, GROUP):
        for j in range(group, size, 3):
            at, r = L + j * (ld + LANES), inverse + LANES * j
            for strip in range(group, max(j, group + 1), STRIP):
                stop = min(strip + STRIP, j)
                for i in range(group, min(group + GROUP, j + 3), 3):
                    k = max(strip, i)
                    tile = U + i * ld + LANES * j
                    a, b = U + i * ld + LANES * k, L + j * ld + LANES * k
                    t = product(w, a, ld, b, ld, stop - k)
                    s = empty if strip == group else read(w, tile, ld)
                    s = identity if i == j else s
                    if stop < j:
                        write(w, tile, ld, tile_difference(s, t))
                    else:
                        x = solve(w, at, ld, r, s, t)
                        write(w, tile, ld, x)
                        write(w, LI + j * ld + LANES * i, ld, transpose(x))


@part
def _factorise_contrasts(
    w: FloatArray,
    D: int,
    L: int,
    inverse: int,
    LI: int,
    z: FloatArray,
    q: int,
    size: int,
    total: int,
    shift: float,
    wanted: bool,
) -> None:
    """L of T K T', S2 at the start of the row below it, and L^-1 of its first block if wanted."""
    for j in range(size, size + q):
        for i in range(size, size + q):
            at = D + LANES * (j * total + i)
            store(w, at, add(load(w, at), splat(shift)))
    last = L + LANES * total * total
    for i in range(3 * total):
        store(w, last + LANES * i, splat(z[i] if i < len(z) else 0.0))
    _factorise(w, D, L, inverse, total)
    S2 = splat(0.0)
    for i in range(last, last + LANES * size, LANES):
        S2 = fma(load(w, i), load(w, i), S2)
    store(w, last, S2)
    if wanted:
        _invert(w, L, inverse, size, total, D, LI)


@part
def _write_row(
    w: FloatArray,
    lane: int,
    inverse: int,
    S2: int,
    pivots: int,
    shape: Shape,
    n_rows: int,
    log_det: float,
    out: FloatArray,
    m: int,
) -> None:
    """Collect a lane's results; all are NaN if one is not finite."""
    _, dof, size, total = shape
    log_det_C = log_det_R = 0.0
    for i in range(total):
        term = 2.0 * math.log(w[inverse + LANES * i + lane])
        if i < size:
            log_det_C -= term
        else:
            log_det_R += term
    log_det_I = math.log(dof) if n_rows > 0 else 0.0
    for k in range(n_rows):
        log_det_I += math.log(w[pivots + LANES * k + lane])
    residual = w[S2 + lane]
    fate = 0.0 if abs(log_det_C + log_det_R + residual + log_det_I) < math.inf else math.nan
    out[m, 0] = log_det_C - log_det_R + fate
    out[m, 1] = log_det + log_det_R + fate
    out[m, 2] = residual + fate
    out[m, 3] = log_det_I + fate


@part
def _spread(w: FloatArray, A: FloatArray, at: int, size: int, basis: int) -> None:
    """Put A, which is the same for all points, into every lane."""
    dof, q = A.shape
    for j in range(size):
        for a in range(basis):
            value = splat(A[j, a] if j < dof and a < q else 0.0)
            store(w, at + LANES * (j * basis + a), value)


def make_run(version: int) -> Callable[..., None]:
    """Make ``run_lanes``, whose code is cached on disk under ``version``.

    Numba's cache looks at the file of the function only. What a closure holds is part of its key
    too, so a change of the functions in other files is seen if ``version`` is made of them.
    """

    @entry
    def run_lanes(
        terms: FloatArray,
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
        information: int,
        start: int,
        stop: int,
        where: tuple[int, ...],
        w: FloatArray,
        out: FloatArray,
    ) -> None:
        """Fill ``out[start:stop]``, four points at a time; see ``core_terms`` for the columns.

        ``A``, ``z``, ``log_det`` and ``shift`` are what ``contrasts`` makes of H and y,
        ``terms`` and ``points`` what ``pair_terms`` and ``point_terms`` make of X and phi,
        ``power``, ``polynomial``, ``slope`` and ``radial`` are the kernel's, and ``where`` is the
        ``layout`` of the workspace ``w``.
        """
        if version < 0:
            return
        dof, q = A.shape
        p = points.shape[1]
        n_rows = 0 if information == 0 else p + information - 1
        size, basis = -(-dof // 3) * 3, -(-q // 3) * 3
        total = size + basis
        shape = (dof + q, dof, size, total)
        D, L, inverse, LI, A_lanes, W, K0, M, G, norms, pivots, point, _ = where
        if n_rows == 0:
            K0 = -1
        factor = slope_polynomial(polynomial, radial)
        _spread(w, A, A_lanes, size, basis)
        for first in range(start, stop, LANES):
            for lane in range(LANES):
                m = min(first + lane, stop - 1)
                for k in range(p):
                    w[point + LANES * k + lane] = points[m, k]
                w[point + LANES * p + lane] = delta[m]
            for k in range(-1, n_rows):  # -1 is K itself
                if 0 <= k < p:
                    fill_slope(terms, k, power, factor, slope, w, point, shape, D, K0)
                else:
                    fill_correlation(
                        terms, p, polynomial, slope, radial, w, point, shape, shift, k == p, D, K0
                    )
                _contrast(w, D, A_lanes, W, size, total, k < 0)
                if k < 0:
                    _factorise_contrasts(
                        w, D, L, inverse, LI, z, q, size, total, shift, n_rows > 0
                    )
                else:
                    at = M + LANES * k * (size * (size + 3) // 2)
                    whiten(w, dof, size, total, LI, D, L, at)
            if n_rows > 0:
                information_pivots(w, M, size, n_rows, G, norms, pivots)
            S2 = L + LANES * total * total
            for lane in range(min(LANES, stop - first)):
                m = first + lane
                _write_row(w, lane, inverse, S2, pivots, shape, n_rows, log_det, out, m)

    return run_lanes
