"""Correlation matrices of four points at once, and their slopes in log phi and log delta.

A kernel is known by the numbers of its ``ExponentialForm``. A pair of runs enters by one number
per input, computed once per data set, and a point by one number per input; t is their product:

    t = (scale d^phi_power)^power phi^-power
    r = a(t) exp(-t)
    h = power t (a(t) - a'(t)) / a(t)

K0 = prod_i r_i, with a single exponential of the sum, and dK/d log phi_i = K0 h_i.

A radial kernel is one such r of all inputs. There the products s_i of a pair and a point are
squares, t is the root of their sum, and with b(t) = (a(t) - a'(t)) / t

    K0 = a(t) exp(-t),   dK/d log phi_i = b(t) exp(-t) s_i:

what is kept for the slopes in the place of K0 is b(t) exp(-t), and h_i is s_i.
"""

from __future__ import annotations

from collections.abc import Callable

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
    sqrt,
    store,
    sub,
    where_less,
)
from paims.gp._kernels import ExponentialForm

# exp(-1000) is 0: a larger t changes nothing but could overflow in a product; nor does its square.
_FAR = 1e6
DOMINANT = 1e-5  # nuggets above it get their row from K0

# (n, dof, size, total): runs, runs that are not pivots, the same padded, and pivots padded too.
# Run i is row i of a matrix, or size + i - dof if it is a pivot (i >= dof).
Shape = tuple[int, int, int, int]


def pair_terms(X: FloatArray, form: ExponentialForm) -> FloatArray:
    """What each pair i < j of rows of X brings to t: flat, input by input, row by row."""
    rows, columns = np.triu_indices(len(X), 1)
    terms = np.empty((X.shape[1], len(rows)))
    for x, row in zip(X.T, terms, strict=True):
        d = np.abs(x[rows] - x[columns])
        row[:] = (form.scale * d**form.phi_power) ** form.power
    return terms.ravel()


def point_terms(phi: FloatArray, form: ExponentialForm) -> FloatArray:
    """What each point brings to t, (m, p); finite for every phi > 0, as 0 times it has to be 0."""
    with np.errstate(over="ignore", under="ignore"):
        return np.minimum(phi**-form.power, 1e300)


@inline
def scaled(pair: Vector, point: Vector) -> Vector:
    """Return t of a pair at a point for one input."""
    t, bound = mul(pair, point), splat(_FAR)
    return where_less(t, bound, t, bound)


@inline
def horner(coefficients: FloatArray, least: int, t: Vector) -> Vector:
    """Sum of coefficients[k] t^(k - least) over k >= least, by Horner's rule."""
    last = len(coefficients) - 1
    value = splat(coefficients[last])
    for k in range(last - 1, least - 1, -1):
        value = fma(value, t, splat(coefficients[k]))
    return value


@inline
def log_slope(power: float, polynomial: FloatArray, slope: FloatArray, t: Vector) -> Vector:
    """Return h = d log r / d log phi."""
    h = mul(splat(power), t)
    if len(polynomial) == 1:
        return h
    return div(mul(h, horner(slope, 0, t)), horner(polynomial, 0, t))


@inline
def times_factor(
    exponent: Vector, growth: Vector, polynomial: FloatArray, t: Vector
) -> tuple[Vector, Vector]:
    """One more factor a(t) exp(-t) in exp(-exponent) (1 + growth)."""
    if len(polynomial) > 1:
        factor = mul(t, horner(polynomial, 1, t))
        growth = fma(growth, factor, add(growth, factor))
    return add(exponent, t), growth


@inline
def decayed(exponent: Vector, growth: Vector) -> tuple[Vector, Vector]:
    """K0 = exp(-exponent) (1 + growth), and K0 - 1 without cancellation where K0 is near 1."""
    zero, one = splat(0.0), splat(1.0)
    decay, decay_m1 = exp_expm1(sub(zero, exponent))
    K0 = where_less(zero, decay, fma(growth, decay, decay), zero)
    near = add(growth, fma(growth, decay_m1, decay_m1))
    return K0, where_less(growth, one, near, sub(K0, one))


@inline
def slope_polynomial(polynomial: FloatArray, radial: bool) -> FloatArray:
    """Give the polynomial of ``log_slope``: none for a radial kernel, whose h_i is s_i."""
    return polynomial[: 1 if radial else len(polynomial)]


@inline
def decayed_radially(
    polynomial: FloatArray, slope: FloatArray, square: Vector
) -> tuple[Vector, Vector]:
    """b(t) exp(-t) and K0 - 1 of a radial kernel, from the square of t."""
    t, zero = sqrt(square), splat(0.0)
    K0_m1 = decayed(t, mul(t, horner(polynomial, 1, t)))[1]
    return mul(horner(slope, 1, t), exp_expm1(sub(zero, t))[0]), K0_m1


@inline
def _correlation(
    terms: FloatArray,
    pair: int,
    n_pairs: int,
    p: int,
    polynomial: FloatArray,
    w: FloatArray,
    at: int,
) -> tuple[Vector, Vector]:
    """K0 of a pair at four points, and K0 - 1."""
    exponent, growth = splat(0.0), splat(0.0)
    for k in range(p):
        t = scaled(splat(terms[k * n_pairs + pair]), load(w, at + LANES * k))
        exponent, growth = times_factor(exponent, growth, polynomial, t)
    return decayed(exponent, growth)


@inline
def _radial_correlation(
    terms: FloatArray,
    pair: int,
    n_pairs: int,
    p: int,
    polynomial: FloatArray,
    slope: FloatArray,
    w: FloatArray,
    at: int,
) -> tuple[Vector, Vector]:
    """What stands for K0 in the slopes of a radial kernel; and K0 - 1."""
    square = splat(0.0)
    for k in range(p):
        square = add(square, scaled(splat(terms[k * n_pairs + pair]), load(w, at + LANES * k)))
    return decayed_radially(polynomial, slope, square)


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


def _make_fill(radial: bool) -> Callable[..., None]:
    """Compile for either kind of kernel: with both in one loop, neither keeps to the registers."""

    @part
    def fill(
        terms: FloatArray,
        p: int,
        polynomial: FloatArray,
        slope: FloatArray,
        w: FloatArray,
        point: int,
        shape: Shape,
        shift: float,
        slopes: bool,
        D: int,
        K0: int,
    ) -> None:
        """As below, for one kind of kernel."""
        n = shape[0]
        ld = LANES * shape[3]
        n_pairs = n * (n - 1) // 2
        zero, one = splat(0.0), splat(1.0)
        delta = load(w, point + LANES * p)
        sign, offset = one, splat(1.0 - shift)
        diagonal, pad = add(offset, delta), one
        if slopes:
            sign = where_less(splat(DOMINANT), delta, splat(-1.0), zero)
            offset = mul(sign, offset)
            diagonal, pad = where_less(sign, zero, offset, delta), zero
        pair = 0
        for j in range(n):
            for i in range(j + 1, n):
                if radial:
                    value, less_one = _radial_correlation(
                        terms, pair, n_pairs, p, polynomial, slope, w, point
                    )
                else:
                    value, less_one = _correlation(terms, pair, n_pairs, p, polynomial, w, point)
                if K0 >= 0 and not slopes:
                    store(w, K0 + LANES * pair, value)
                _place(w, D, ld, shape, j, i, fma(sign, less_one, offset))
                pair += 1
        _fill_diagonal(w, D, shape, diagonal, pad)

    return fill


_fill_product = _make_fill(False)
_fill_radial = _make_fill(True)


@inline
def fill_correlation(
    terms: FloatArray,
    p: int,
    polynomial: FloatArray,
    slope: FloatArray,
    radial: bool,
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
    if radial:
        _fill_radial(terms, p, polynomial, slope, w, point, shape, shift, slopes, D, K0)
    else:
        _fill_product(terms, p, polynomial, slope, w, point, shape, shift, slopes, D, K0)


@part
def fill_slope(
    terms: FloatArray,
    k: int,
    power: float,
    polynomial: FloatArray,
    slope: FloatArray,
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
            h = log_slope(power, polynomial, slope, scaled(splat(terms[pair]), scale))
            _place(w, D, ld, shape, j, i, mul(load(w, value), h))
            pair += 1
            value += LANES
    _fill_diagonal(w, D, shape, splat(0.0), splat(0.0))
