"""The information matrix of four points at once: whitened slopes, inner products, determinant."""

from __future__ import annotations

import math

from paims._arrays import FloatArray
from paims.gp._compiled._simd import (
    LANES,
    add,
    div,
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
    symmetric_product,
    tile_sum,
    write,
)

PARALLEL = 1e-6  # a smaller pivot of the scaled information matrix has lost too many digits


@part
def whiten(
    w: FloatArray, dof: int, size: int, total: int, LI: int, D: int, V: int, M: int
) -> None:
    """M = L^-1 D L^-T - c I with c its mean eigenvalue, so that tr M = 0.

    With D = N + N', N block lower triangular (its transpose is stored) and V = L^-1 N, it is
    V L^-T + L^-1 V' - c I: n^3 operations instead of the 4 n^3 of two products. M is stored as
    its tiles, those of the diagonal first and then those below it.
    """
    ld = LANES * total
    below = M + 12 * size
    for group in range(0, size, GROUP):
        for strip in range(group, size, STRIP):
            for i in range(strip, size, 3):
                stop = min(strip + STRIP, i + 3)
                for j in range(group, min(group + GROUP, i + 3), 3):
                    k = max(strip, j)
                    tile = V + i * ld + LANES * j
                    a, b = LI + i * ld + LANES * k, D + j * ld + LANES * k
                    t = product(w, a, ld, b, ld, stop - k)
                    write(w, tile, ld, t if strip == group else tile_sum(read(w, tile, ld), t))
    for group in range(0, size, GROUP):
        for strip in range(0, min(group + GROUP, size), STRIP):
            k = LANES * strip
            for i in range(group, size, 3):
                for j in range(max(group, strip), min(group + GROUP, i + 3), 3):
                    width = min(STRIP, j + 3 - strip)
                    t = symmetric_product(w, V + k, LI + k, ld, i, j, width)
                    tile = M + 12 * j if i == j else below + 2 * i * (i - 3) + 12 * j
                    write(w, tile, 12, t if strip == 0 else tile_sum(read(w, tile, 12), t))
    trace = splat(0.0)
    for i in range(dof):
        trace = add(trace, load(w, M + 12 * i + 4 * (i % 3)))
    c = div(trace, splat(float(dof)))
    for i in range(dof):
        at = M + 12 * i + 4 * (i % 3)
        store(w, at, sub(load(w, at), c))


@part
def _gram(w: FloatArray, M: int, size: int, rows: int, G: int) -> None:
    """<M_a, M_b> for a >= b, tile by tile; what is below the diagonal counts twice."""
    diagonal = 3 * size
    length = size * (size + 3) // 2
    ld = LANES * length
    for k in range(0, LANES * rows * rows, LANES):
        store(w, G + k, splat(0.0))
    start = 0
    while start < length:
        stop = min(start + STRIP, length if start >= diagonal else diagonal)
        weight = splat(2.0 if start >= diagonal else 1.0)
        for a in range(0, rows, 3):
            for b in range(0, a + 3, 3):
                left, right = M + a * ld + LANES * start, M + b * ld + LANES * start
                t = product(w, left, ld, right, ld, stop - start)
                for k in range(9):
                    at = G + LANES * ((a + k // 3) * rows + b + k % 3)
                    store(w, at, fma(weight, t[k], load(w, at)))
        start = stop


@part
def _pivots(w: FloatArray, G: int, rows: int, n_rows: int, norms: int, pivots: int) -> None:
    """Pivots of <M_i, M_j>; NaN where they have lost digits. Its diagonal goes to ``norms``.

    The entries span many orders of magnitude: the matrix is scaled by its diagonal first.
    """
    ld = LANES * rows
    one, nan, floor = splat(1.0), splat(math.nan), splat(PARALLEL)
    for a in range(n_rows):
        square = load(w, G + a * (ld + LANES))
        store(w, norms + LANES * a, square)
        store(w, pivots + LANES * a, div(one, sqrt(square)))
    for a in range(n_rows):
        row = G + a * ld
        for b in range(a + 1):
            other = G + b * ld
            scale = mul(load(w, pivots + LANES * a), load(w, pivots + LANES * b))
            s = mul(load(w, row + LANES * b), scale)
            for k in range(0, LANES * b, LANES):
                s = fnma(load(w, row + k), load(w, other + k), s)
            if b < a:
                store(w, row + LANES * b, mul(s, load(w, other + LANES * b)))
            else:
                s = where_less(floor, s, s, nan)
                store(w, row + LANES * a, div(one, sqrt(s)))
    for a in range(n_rows):
        r = load(w, G + a * (ld + LANES))
        store(w, pivots + LANES * a, div(load(w, norms + LANES * a), mul(r, r)))


@part
def _orthogonalise(w: FloatArray, M: int, size: int, n_rows: int, norms: int, pivots: int) -> None:
    """The pivots that are NaN anew: |M_i|^2 without its parts along those before it.

    As accurate as the M_i themselves, where their inner products lose the angle between nearly
    parallel ones to rounding. NaN if nothing is left.
    """
    diagonal = LANES * 3 * size
    length = LANES * (size * (size + 3) // 2)
    nan, floor, bottom = splat(math.nan), splat(2.0**-100), splat(-math.inf)
    for a in range(n_rows):
        left = M + a * length
        least = mul(floor, load(w, norms + LANES * a))
        for b in range(a, n_rows):
            right = M + b * length
            on = off = splat(0.0)
            for k in range(0, diagonal, LANES):
                on = fma(load(w, left + k), load(w, right + k), on)
            for k in range(diagonal, length, LANES):
                off = fma(load(w, left + k), load(w, right + k), off)
            inner = add(on, add(off, off))
            if b == a:
                square = where_less(least, inner, inner, nan)
                pivot = load(w, pivots + LANES * a)
                store(w, pivots + LANES * a, where_less(bottom, pivot, pivot, square))
            else:
                ratio = div(inner, square)
                for k in range(0, length, LANES):
                    store(w, right + k, fnma(ratio, load(w, left + k), load(w, right + k)))


@part
def information_pivots(
    w: FloatArray, M: int, size: int, n_rows: int, G: int, norms: int, pivots: int
) -> None:
    """Numbers whose product is |I| / (n-q), from the M_i.

    |I| = (n-q) |<M_i, M_j> - tr M_i tr M_j / (n-q)|; the matrix on the right does not change when
    a multiple of the identity is added to an M_i, and as it is tr M_i = 0.
    """
    rows = -(-n_rows // 3) * 3
    _gram(w, M, size, rows, G)
    _pivots(w, G, rows, n_rows, norms, pivots)
    for k in range(LANES * n_rows):
        if math.isnan(w[pivots + k]):
            _orthogonalise(w, M, size, n_rows, norms, pivots)
            break
