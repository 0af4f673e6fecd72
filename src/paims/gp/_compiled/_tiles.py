"""Tiles of 3 x 3 vectors: the operations that matrices of vectors are made of.

Nine sums are enough to keep two multipliers busy, and with six operands they fit the sixteen
registers of the smallest machine in mind. A tile is a tuple, row by row; matrices are stored by
rows in a flat workspace ``w``, ``ld`` doubles from a row to the next.
"""

from __future__ import annotations

from paims._arrays import FloatArray
from paims.gp._compiled._simd import (
    LANES,
    Vector,
    add,
    fma,
    fnma,
    inline,
    load,
    mul,
    splat,
    store,
    sub,
)

# Products run over groups of rows and strips of columns, so that what is used again is near.
GROUP = 12
STRIP = 48
Tile = tuple[Vector, Vector, Vector, Vector, Vector, Vector, Vector, Vector, Vector]


@inline
def product(w: FloatArray, a: int, lda: int, b: int, ldb: int, length: int) -> Tile:
    """Tile of A B': entries sum_k A_ik B_jk of three rows of A and three of B."""
    c00 = c01 = c02 = c10 = c11 = c12 = c20 = c21 = c22 = splat(0.0)
    a1, a2, b1, b2 = a + lda, a + 2 * lda, b + ldb, b + 2 * ldb
    for k in range(0, LANES * length, LANES):
        x0, x1, x2 = load(w, a + k), load(w, a1 + k), load(w, a2 + k)
        y = load(w, b + k)
        c00, c10, c20 = fma(x0, y, c00), fma(x1, y, c10), fma(x2, y, c20)
        y = load(w, b1 + k)
        c01, c11, c21 = fma(x0, y, c01), fma(x1, y, c11), fma(x2, y, c21)
        y = load(w, b2 + k)
        c02, c12, c22 = fma(x0, y, c02), fma(x1, y, c12), fma(x2, y, c22)
    return c00, c01, c02, c10, c11, c12, c20, c21, c22


@inline
def symmetric_product(w: FloatArray, a: int, b: int, ld: int, i: int, j: int, length: int) -> Tile:
    """Tile (i, j) of A B' + B A'."""
    c00 = c01 = c02 = c10 = c11 = c12 = c20 = c21 = c22 = splat(0.0)
    a0, b0, x, y = a + i * ld, b + i * ld, a + j * ld, b + j * ld
    a1, a2, b1, b2 = a0 + ld, a0 + 2 * ld, b0 + ld, b0 + 2 * ld
    x1, x2, y1, y2 = x + ld, x + 2 * ld, y + ld, y + 2 * ld
    for k in range(0, LANES * length, LANES):
        u0, u1, u2 = load(w, a0 + k), load(w, a1 + k), load(w, a2 + k)
        v = load(w, y + k)
        c00, c10, c20 = fma(u0, v, c00), fma(u1, v, c10), fma(u2, v, c20)
        v = load(w, y1 + k)
        c01, c11, c21 = fma(u0, v, c01), fma(u1, v, c11), fma(u2, v, c21)
        v = load(w, y2 + k)
        c02, c12, c22 = fma(u0, v, c02), fma(u1, v, c12), fma(u2, v, c22)
        u0, u1, u2 = load(w, b0 + k), load(w, b1 + k), load(w, b2 + k)
        v = load(w, x + k)
        c00, c10, c20 = fma(u0, v, c00), fma(u1, v, c10), fma(u2, v, c20)
        v = load(w, x1 + k)
        c01, c11, c21 = fma(u0, v, c01), fma(u1, v, c11), fma(u2, v, c21)
        v = load(w, x2 + k)
        c02, c12, c22 = fma(u0, v, c02), fma(u1, v, c12), fma(u2, v, c22)
    return c00, c01, c02, c10, c11, c12, c20, c21, c22


@inline
def read(w: FloatArray, a: int, ld: int) -> Tile:
    """Read a tile whose first entry is at ``a``."""
    b, c = a + ld, a + 2 * ld
    return (
        load(w, a), load(w, a + 4), load(w, a + 8),
        load(w, b), load(w, b + 4), load(w, b + 8),
        load(w, c), load(w, c + 4), load(w, c + 8),
    )  # fmt: skip


@inline
def transpose(t: Tile) -> Tile:
    """Transpose a tile."""
    return t[0], t[3], t[6], t[1], t[4], t[7], t[2], t[5], t[8]


@inline
def write(w: FloatArray, a: int, ld: int, t: Tile) -> None:
    """Write a tile with its first entry at ``a``."""
    for i in range(3):
        for j in range(3):
            store(w, a + i * ld + 4 * j, t[3 * i + j])


@inline
def tile_sum(s: Tile, t: Tile) -> Tile:
    """Add two tiles."""
    return (
        add(s[0], t[0]), add(s[1], t[1]), add(s[2], t[2]),
        add(s[3], t[3]), add(s[4], t[4]), add(s[5], t[5]),
        add(s[6], t[6]), add(s[7], t[7]), add(s[8], t[8]),
    )  # fmt: skip


@inline
def tile_difference(s: Tile, t: Tile) -> Tile:
    """Subtract a tile from another."""
    return (
        sub(s[0], t[0]), sub(s[1], t[1]), sub(s[2], t[2]),
        sub(s[3], t[3]), sub(s[4], t[4]), sub(s[5], t[5]),
        sub(s[6], t[6]), sub(s[7], t[7]), sub(s[8], t[8]),
    )  # fmt: skip


@inline
def replace_scaled_difference(w: FloatArray, a: int, ld: int, t: Tile, scale: Vector) -> None:
    """Replace a tile by scale (tile - t)."""
    for i in range(3):
        for j in range(3):
            at = a + i * ld + 4 * j
            store(w, at, mul(scale, sub(load(w, at), t[3 * i + j])))


@inline
def solve(w: FloatArray, diagonal: int, ld: int, inverse: int, s: Tile, t: Tile) -> Tile:
    """X with X L_jj' = s - t; ``diagonal`` is where L_jj is, ``inverse`` where its 1/L_ii are."""
    l10 = load(w, diagonal + ld)
    l20, l21 = load(w, diagonal + 2 * ld), load(w, diagonal + 2 * ld + 4)
    r0, r1, r2 = load(w, inverse), load(w, inverse + 4), load(w, inverse + 8)
    x00, x10 = mul(sub(s[0], t[0]), r0), mul(sub(s[3], t[3]), r0)
    x20 = mul(sub(s[6], t[6]), r0)
    x01 = mul(fnma(x00, l10, sub(s[1], t[1])), r1)
    x11 = mul(fnma(x10, l10, sub(s[4], t[4])), r1)
    x21 = mul(fnma(x20, l10, sub(s[7], t[7])), r1)
    x02 = mul(fnma(x01, l21, fnma(x00, l20, sub(s[2], t[2]))), r2)
    x12 = mul(fnma(x11, l21, fnma(x10, l20, sub(s[5], t[5]))), r2)
    x22 = mul(fnma(x21, l21, fnma(x20, l20, sub(s[8], t[8]))), r2)
    return x00, x01, x02, x10, x11, x12, x20, x21, x22
