"""Error-free arithmetic against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from paims.diagnostics import _double_double as dd


def exact(pair: dd.Pair, index: tuple[int, ...]) -> Fraction:
    return Fraction(float(pair[0][index])) + Fraction(float(pair[1][index]))


def numbers(size: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=size) * 10.0 ** rng.integers(-8, 8, size)


def test_products_and_sums_are_exact() -> None:
    a, b = numbers(50, 1), numbers(50, 2)
    product, summed = dd.two_product(a, b), dd.two_sum(a, b)
    for i in range(50):
        assert exact(product, (i,)) == Fraction(a[i]) * Fraction(b[i])
        assert exact(summed, (i,)) == Fraction(a[i]) + Fraction(b[i])


def test_pairs_have_twice_the_digits() -> None:
    a = dd.two_sum(numbers(50, 3), 1e-17 * numbers(50, 4))
    b = dd.two_sum(numbers(50, 5), 1e-17 * numbers(50, 6))
    product = dd.multiply(a, b)
    for i in range(50):
        truth = exact(a, (i,)) * exact(b, (i,))
        assert abs(exact(product, (i,)) - truth) <= abs(truth) * Fraction(1, 2**100)
    positive = (np.abs(a[0]), np.zeros(50)), (np.abs(b[0]), 1e-18 * np.abs(b[0]))
    summed = dd.add(*positive)
    for i in range(50):
        truth = exact(positive[0], (i,)) + exact(positive[1], (i,))
        assert abs(exact(summed, (i,)) - truth) <= truth * Fraction(1, 2**100)


@pytest.mark.parametrize("size", [1, 2, 7, 64, 101])
def test_totals_survive_cancellation(size: int) -> None:
    values = numbers(size, 7)
    doubled = np.concatenate([values, -values, [1e-20]])
    doubled = doubled[np.random.default_rng(8).permutation(len(doubled))]
    result = dd.total((doubled, np.zeros_like(doubled)))
    assert float(result) == pytest.approx(1e-20, rel=1e-3)
    if size > 7:
        assert doubled.sum() != pytest.approx(1e-20, rel=0.1)


def test_gram_is_accurate_for_columns_of_any_size() -> None:
    rng = np.random.default_rng(9)
    B = rng.normal(size=(2, 20, 4)) * np.array([1.0, 1e-6, 1e9, 0.0])
    gram = dd.gram(B)
    largest = np.abs(B).max(axis=1)
    for m in range(2):
        for i in range(4):
            for j in range(4):
                truth = sum(
                    (Fraction(B[m, g, i]) * Fraction(B[m, g, j]) for g in range(20)), Fraction(0)
                )
                error = abs(exact(gram, (m, i, j)) - truth)
                assert float(error) <= 20 * 2.0**-75 * largest[m, i] * largest[m, j]


def test_gram_refuses_too_many_rows() -> None:
    with pytest.raises(ValueError, match="at most 512"):
        dd.gram(np.ones((1, 513, 2)))
