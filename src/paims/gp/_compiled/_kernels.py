"""Correlation matrices of four points at once, and their slopes in log phi and log delta.

A pair of runs enters by one number per input, computed once per data set, and a point by one
number per input; t is their product:

===================  ===================  =======================  ===============================
kernel               t                    r exp(t)                 h
===================  ===================  =======================  ===============================
squared exponential  (d^2/2) (1/phi)      1                        t
Matern 3/2           (sqrt(3) d) (1/phi)  1 + t                    t^2 / (1 + t)
Matern 5/2           (sqrt(5) d) (1/phi)  1 + t + t^2/3            t^2 (1 + t) / s
Matern 7/2           (sqrt(7) d) (1/phi)  1 + t + 2t^2/5 + t^3/15  t^2 s / (15 + 12t + 3t^2 + s t)
power exponential    (d^a) (phi^-a)       1                        a t
===================  ===================  =======================  ===============================

with s = 3 + 3t + t^2. K0 = prod_i r_i, with a single exponential of the sum, and
dK/d log phi_i = K0 h_i.
"""

from __future__ import annotations

import math

import numpy as np

from paims._arrays import FloatArray
from paims.gp._compiled._simd import (
    LANES,
    Vector,
    add,
    div,
    exp_expm1,
    fma,
    inline,
    load,
    mul,
    part,
    splat,
    store,
    sub,
    where_less,
)

SQUARED_EXPONENTIAL, MATERN_32, MATERN_52, MATERN_72, POWER_EXPONENTIAL = range(5)
_FAR = 800.0  # exp(-800) is 0: a larger t changes nothing but could overflow in a product
_DOMINANT = 1e-5  # nuggets above it get their row from K0

# (n, dof, size, total): runs, runs that are not pivots, the same padded, and pivots padded too.
# Run i is row i of a matrix, or size + i - dof if it is a pivot (i >= dof).
Shape = tuple[int, int, int, int]


def pair_terms(X: FloatArray, code: int, power: float) -> FloatArray:
    """What each pair i < j of rows of X brings to t: flat, input by input, row by row."""
    rows, columns = np.triu_indices(len(X), 1)
    terms = np.empty((X.shape[1], len(rows)))
    for x, row in zip(X.T, terms, strict=True):
        d = np.abs(x[rows] - x[columns])
        if code == SQUARED_EXPONENTIAL:
            row[:] = 0.5 * d * d
        elif code == POWER_EXPONENTIAL:
            row[:] = d**power
        else:
            row[:] = math.sqrt(2.0 * code + 1.0) * d  # of 3, 5 or 7, twice the smoothness
    return terms.ravel()


def point_terms(phi: FloatArray, code: int, power: float) -> FloatArray:
    """What each point brings to t, (m, p); finite for every phi > 0, as 0 times it has to be 0."""
    with np.errstate(over="ignore", under="ignore"):
        terms = phi**-power if code == POWER_EXPONENTIAL else 1.0 / phi
        return np.minimum(terms, 1e300)


@inline
def _scaled(pair: Vector, point: Vector) -> Vector:
    """Return t of a pair at a point for one input."""
    t, bound = mul(pair, point), splat(_FAR)
    return where_less(t, bound, t, bound)


@inline
def _slope(code: int, power: float, t: Vector) -> Vector:
    """Return h = d log r / d log phi."""
    if code == SQUARED_EXPONENTIAL:
        return t
    if code == MATERN_32:
        return div(mul(t, t), add(t, splat(1.0)))
    if code == MATERN_52:
        grow = add(t, splat(1.0))
        return div(mul(mul(t, t), grow), fma(t, t, mul(splat(3.0), grow)))
    if code == MATERN_72:
        square, grow = mul(t, t), add(t, splat(1.0))
        top = mul(square, fma(splat(3.0), grow, square))
        return div(top, fma(splat(15.0), grow, mul(square, add(t, splat(6.0)))))
    return mul(splat(power), t)


@inline
def _correlation(
    terms: FloatArray,
    pair: int,
    n_pairs: int,
    p: int,
    code: int,
    w: FloatArray,
    at: int,
) -> tuple[Vector, Vector]:
    """K0 of a pair and K0 - 1, the latter without cancellation where K0 is near 1."""
    zero, one = splat(0.0), splat(1.0)
    exponent, growth = zero, zero  # K0 = exp(-exponent) (1 + growth)
    for k in range(p):
        t = _scaled(splat(terms[k * n_pairs + pair]), load(w, at + LANES * k))
        exponent = add(exponent, t)
        if code in (MATERN_32, MATERN_52, MATERN_72):
            factor = t
            if code == MATERN_52:
                factor = fma(mul(t, t), splat(1.0 / 3.0), t)
            elif code == MATERN_72:
                factor = fma(mul(t, t), fma(t, splat(1.0 / 15.0), splat(0.4)), t)
            growth = fma(growth, factor, add(growth, factor))
    decay, decay_m1 = exp_expm1(sub(zero, exponent))
    K0 = where_less(zero, decay, fma(growth, decay, decay), zero)
    near = add(growth, fma(growth, decay_m1, decay_m1))
    return K0, where_less(growth, one, near, sub(K0, one))


@inline
def _place(w: FloatArray, D: int, ld: int, shape: Shape, j: int, i: int, value: Vector) -> None:
    """Entry (j, i), i > j, of D; its mirror image too within a diagonal tile or the pivots."""
    _, dof, size, total = shape
    row, mirrored = (j + size - dof, total) if j >= dof else (j, j - j % 3 + 3)
    column = i + size - dof if i >= dof else i
    store(w, D + row * ld + LANES * column, value)
    if column < mirrored:
        store(w, D + column * ld + LANES * row, value)


@inline
def _fill_diagonal(w: FloatArray, D: int, shape: Shape, value: Vector, pad: Vector) -> None:
    """Diagonal of D, and around its two blocks the identity times ``pad``."""
    n, dof, size, total = shape
    ld = LANES * total
    for i in range(total):
        real = i < dof or size <= i < size + n - dof
        if not real:
            for j in range(total):
                store(w, D + j * ld + LANES * i, splat(0.0))
                store(w, D + i * ld + LANES * j, splat(0.0))
        store(w, D + i * (ld + LANES), value if real else pad)


@part
def fill_correlation(
    terms: FloatArray,
    p: int,
    code: int,
    w: FloatArray,
    point: int,
    shape: Shape,
    shift: float,
    slopes: bool,
    D: int,
    K0: int,
) -> None:
    """Upper triangle of K - shift 1 1' into D, and K0; or, for ``slopes``, of dK/d log delta.

    dK/d log delta = delta I gives M = L^-1 C (delta I) C' L^-T = I - L^-1 C K0 C' L^-T, of which
    only what is not a multiple of I matters. For all but small nuggets, -(K0 - shift 1 1') takes
    its place: where the nugget dominates, it has the digits that the other form has lost.
    """
    n = shape[0]
    ld = LANES * shape[3]
    n_pairs = n * (n - 1) // 2
    zero, one = splat(0.0), splat(1.0)
    delta = load(w, point + LANES * p)
    sign, offset = one, splat(1.0 - shift)
    diagonal, pad = add(offset, delta), one
    if slopes:
        sign = where_less(splat(_DOMINANT), delta, splat(-1.0), zero)
        offset = mul(sign, offset)
        diagonal, pad = where_less(sign, zero, offset, delta), zero
    pair = 0
    for j in range(n):
        for i in range(j + 1, n):
            value, less_one = _correlation(terms, pair, n_pairs, p, code, w, point)
            if K0 >= 0 and not slopes:
                store(w, K0 + LANES * pair, value)
            _place(w, D, ld, shape, j, i, fma(sign, less_one, offset))
            pair += 1
    _fill_diagonal(w, D, shape, diagonal, pad)


@part
def fill_slope(
    terms: FloatArray,
    k: int,
    code: int,
    power: float,
    w: FloatArray,
    point: int,
    shape: Shape,
    D: int,
    K0: int,
) -> None:
    """Upper triangle of dK/d log phi_k = K0 h_k into D."""
    n = shape[0]
    ld = LANES * shape[3]
    scale = load(w, point + LANES * k)
    pair = k * (n * (n - 1) // 2)
    value = K0
    for j in range(n):
        for i in range(j + 1, n):
            h = _slope(code, power, _scaled(splat(terms[pair]), scale))
            _place(w, D, ld, shape, j, i, mul(load(w, value), h))
            pair += 1
            value += LANES
    _fill_diagonal(w, D, shape, splat(0.0), splat(0.0))
