r"""Sums of products with twice the digits of a double, as pairs (high, low) of arrays.

Quadratic forms :math:`c^T A c` of an emulator's mean are sums of huge terms that cancel: with
nearly singular correlation matrices the coefficients c reach 1e8 and more for a result of order
1, and double precision leaves no digit. Error-free sums and products of Dekker (1971) and Knuth.
"""

from __future__ import annotations

import numpy as np

from paims._arrays import FloatArray

__all__ = ["MAX_ROWS", "add", "gram", "multiply", "total", "two_product"]

Pair = tuple[FloatArray, FloatArray]

_SPLIT = 134217729.0  # 2^27 + 1
# Bits kept by the high part of a matrix's entries: 2 * 22 and a sum of 512 terms fit into 53.
_HIGH_BITS = 22
MAX_ROWS = 512


def two_product(a: FloatArray, b: FloatArray) -> Pair:
    """Give a * b exactly (Dekker), as long as nothing over- or underflows."""
    product = a * b
    a_high = _SPLIT * a
    a_high = a_high - (a_high - a)
    a_low = a - a_high
    b_high = _SPLIT * b
    b_high = b_high - (b_high - b)
    b_low = b - b_high
    error = a_high * b_high
    error -= product
    error += a_high * b_low
    error += a_low * b_high
    error += a_low * b_low
    return product, error


def two_sum(a: FloatArray, b: FloatArray) -> Pair:
    """Give a + b exactly (Knuth)."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def _renormalised(high: FloatArray, low: FloatArray) -> Pair:
    """Same sum with a low part below half a unit of the high part; needs high >= low."""
    total = high + low
    return total, low - (total - high)


def multiply(a: Pair, b: Pair) -> Pair:
    """Product of two pairs."""
    high, low = two_product(a[0], b[0])
    low += a[0] * b[1]
    low += a[1] * b[0]
    return _renormalised(high, low)


def add(a: Pair, b: Pair) -> Pair:
    """Sum of two pairs."""
    high, low = two_sum(a[0], b[0])
    low += a[1]
    low += b[1]
    return _renormalised(high, low)


def total(a: Pair) -> FloatArray:
    """Sum over the last axis, by halves."""
    high, low = a
    while high.shape[-1] > 1:
        half = high.shape[-1] // 2
        odd = high[..., 2 * half :], low[..., 2 * half :]
        high, low = add(
            (high[..., :half], low[..., :half]),
            (high[..., half : 2 * half], low[..., half : 2 * half]),
        )
        if odd[0].shape[-1]:
            high = np.concatenate([high, odd[0]], axis=-1)
            low = np.concatenate([low, odd[1]], axis=-1)
    result: FloatArray = high[..., 0] + low[..., 0]
    return result


def gram(B: FloatArray) -> Pair:
    """B'B of a stack ``(m, rows, columns)`` with at most 512 rows.

    The entries are cut into a high part, whose products and sums are exact in double precision,
    and a rest. The error is about 2^-76 of the product of the columns' largest entries.
    """
    if B.shape[-2] > MAX_ROWS:
        raise ValueError(f"gram takes at most {MAX_ROWS} rows; got {B.shape[-2]}.")
    largest = np.abs(B).max(axis=-2, keepdims=True)
    # Adding and subtracting 1.5 * 2^52 units rounds to a whole number of units.
    unit = np.exp2(np.ceil(np.log2(np.where(largest > 0.0, largest, 1.0))) - _HIGH_BITS)
    big = 1.5 * 2.0**52 * unit
    high = (B + big) - big
    rest = B - high
    transposed = high.swapaxes(-1, -2)
    cross = transposed @ rest
    low = cross + cross.swapaxes(-1, -2) + rest.swapaxes(-1, -2) @ rest
    return _renormalised(transposed @ high, low)
