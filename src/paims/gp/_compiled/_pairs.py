"""Correlation matrices of one point, eight pairs of runs at a time, and their slopes.

The formulas are those of ``_kernels``, where four points share a pair; here consecutive pairs of
a column share a point. A matrix is its lower triangle, column by column, ``ld`` doubles from a
column to the next; up to seven entries below a column are written to, which ``ld`` has room for.

What a pair brings to t is worked out from the runs where it is d or d^2 (``kind`` 1 and 2): to
read it, p n^2/2 numbers, would take longer than the rest. For other powers (``kind`` 0) it comes
from ``pair_terms``.
"""

from __future__ import annotations

import numpy as np

from paims._arrays import FloatArray
from paims.gp._compiled._kernels import (
    decayed,
    decayed_radially,
    log_slope,
    pair_terms,
    point_terms,
    scaled,
)
from paims.gp._compiled._simd import (
    LANES,
    Vector,
    add,
    copysign,
    div,
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
from paims.gp._kernels import ExponentialForm

WIDE = 2 * LANES  # two vectors at a time: one alone would wait for its own results


def leading_dimension(n: int) -> int:
    """Doubles from a column to the next: room below it, and whole vectors."""
    return -(-(n + WIDE - 1) // LANES) * LANES


def run_terms(X: FloatArray, form: ExponentialForm) -> tuple[int, FloatArray]:
    """``kind``, and the runs, input by input and padded, or for kind 0 what pairs bring to t."""
    exponent = form.phi_power * form.power
    if exponent not in (1.0, 2.0):
        return 0, np.append(pair_terms(X, form), np.zeros(WIDE))
    n, p = X.shape
    runs = np.zeros((p, leading_dimension(n)))
    runs[:, :n] = X.T
    return int(exponent), runs.ravel()


def scale_terms(phi: FloatArray, form: ExponentialForm, kind: int) -> FloatArray:
    """What each point brings to t, (m, p)."""
    return point_terms(phi, form) * (form.scale**form.power if kind else 1.0)


@inline
def _pair(there: Vector, here: float, kind: Vector) -> Vector:
    """What pairs bring to t for an input, from what is stored of it and of the column's run."""
    d = copysign(sub(there, splat(here)), splat(0.0))
    return mul(d, where_less(splat(1.0), kind, d, splat(1.0)))


@inline
def _stored(kind: int, n: int, ld: int, j: int) -> tuple[int, int]:
    """Where row i of column j is stored for input k: k times the first, plus the second and i."""
    if kind > 0:
        stride, base = ld, 0
    else:
        stride, base = n * (n - 1) // 2, j * n - j * (j + 3) // 2 - 1
    return stride, base


@part
def fill_correlation(
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
    K0: int,
) -> None:
    """K - shift 1 1' into D, and K0 without its diagonal unless that is negative.

    For a radial kernel, what stands for K0 in the slopes.
    """
    offset = splat(1.0 - shift)
    zero = splat(0.0)
    mode, degree = splat(float(kind)), len(polynomial) - 1
    for j in range(n):
        stride, base = _stored(kind, n, ld, j)
        for i in range(j + 1, n, WIDE):
            e, f, g, h = zero, zero, zero, zero
            for k in range(p):
                c, at = splat(w[point + k]), k * stride + base + i
                here = runs[k * stride + j] if kind > 0 else 0.0
                s = scaled(_pair(load(runs, at), here, mode), c)
                t = scaled(_pair(load(runs, at + LANES), here, mode), c)
                e, f = add(e, s), add(f, t)
                if degree > 0 and not radial:
                    u = v = splat(polynomial[degree])
                    for d in range(degree - 1, 0, -1):
                        u = fma(u, s, splat(polynomial[d]))
                        v = fma(v, t, splat(polynomial[d]))
                    u, v = mul(u, s), mul(v, t)
                    g, h = fma(g, u, add(g, u)), fma(h, v, add(h, v))
            if radial:
                first = decayed_radially(polynomial, slope, e)
                second = decayed_radially(polynomial, slope, f)
            else:
                first, second = decayed(e, g), decayed(f, h)
            at = D + j * ld + i
            store(w, at, add(first[1], offset))
            store(w, at + LANES, add(second[1], offset))
            if K0 >= 0:
                at = K0 + j * ld + i
                store(w, at, first[0])
                store(w, at + LANES, second[0])
        w[D + j * (ld + 1)] = 1.0 - shift + delta


@part
def fill_slope(
    runs: FloatArray,
    kind: int,
    n: int,
    k: int,
    power: float,
    polynomial: FloatArray,
    slope: FloatArray,
    w: FloatArray,
    point: int,
    ld: int,
    D: int,
    K0: int,
) -> None:
    """dK/d log phi_k = K0 h_k into D."""
    c, mode = splat(w[point + k]), splat(float(kind))
    for j in range(n):
        column = j * ld
        stride, base = _stored(kind, n, ld, j)
        here, at = runs[k * stride + j] if kind > 0 else 0.0, k * stride + base
        for i in range(j + 1, n, LANES):
            t = scaled(_pair(load(runs, at + i), here, mode), c)
            h = log_slope(power, polynomial, slope, t)
            store(w, D + column + i, mul(load(w, K0 + column + i), h))
        w[D + column + j] = 0.0


@part
def slope_sums(
    runs: FloatArray,
    kind: int,
    n: int,
    p: int,
    power: float,
    polynomial: FloatArray,
    slope: FloatArray,
    w: FloatArray,
    point: int,
    ld: int,
    ratio: float,
    Q: int,
    K0: int,
    a: int,
    sums: int,
) -> None:
    """Sum (ratio a_i a_j - Q_ij) K0_ij h_k over the pairs, for each k, four lanes each.

    The division of h is by a(t) >= 1.
    """
    zero, mode, degree = splat(0.0), splat(float(kind)), len(polynomial) - 1
    for k in range(0, LANES * p, LANES):
        store(w, sums + k, zero)
    for j in range(n):
        stride, base = _stored(kind, n, ld, j)
        column = j * ld
        scale = splat(ratio * w[a + j])
        for i in range(n, ld):  # what is below the column counts nothing
            w[K0 + column + i] = 0.0
        for i in range(j + 1, n, WIDE):
            at = column + i
            f = sub(mul(scale, load(w, a + i)), load(w, Q + at))
            g = sub(mul(scale, load(w, a + i + LANES)), load(w, Q + at + LANES))
            f = mul(splat(power), mul(f, load(w, K0 + at)))
            g = mul(splat(power), mul(g, load(w, K0 + at + LANES)))
            for k in range(p):
                c, at = splat(w[point + k]), k * stride + base + i
                here = runs[k * stride + j] if kind > 0 else 0.0
                s = scaled(_pair(load(runs, at), here, mode), c)
                t = scaled(_pair(load(runs, at + LANES), here, mode), c)
                if degree > 0:
                    u = v = splat(polynomial[degree])
                    x = y = splat(slope[degree])
                    for d in range(degree - 1, -1, -1):
                        u, v = fma(u, s, splat(polynomial[d])), fma(v, t, splat(polynomial[d]))
                        x, y = fma(x, s, splat(slope[d])), fma(y, t, splat(slope[d]))
                    s, t = div(mul(s, x), u), div(mul(t, y), v)
                total = fma(g, t, load(w, sums + LANES * k))
                store(w, sums + LANES * k, fma(f, s, total))
