"""Every basis of the mean, and the checks of its design matrix."""

from __future__ import annotations

import numpy as np
import pytest

from paims.gp import (
    MEANS,
    Basis,
    Constant,
    Linear,
    Polynomial,
    Posterior,
    Quadratic,
    UserBasis,
    Zero,
)
from paims.gp._means import as_basis, design_matrix, is_polynomial


def with_sine(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), np.sin(X[:, 0])])


EVERY = [*(cls() for cls in MEANS.values()), UserBasis(with_sine)]


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(0).random((20, 3))


@pytest.mark.parametrize("basis", EVERY, ids=lambda basis: type(basis).__name__)
def test_conformance(basis: Basis, X: np.ndarray) -> None:
    H = design_matrix(basis, X)
    assert H.dtype == np.float64
    assert H.flags.c_contiguous
    assert len(H) == 20
    assert len(basis.column_names(3)) == H.shape[1]
    # A regressor is a function of its own input alone.
    np.testing.assert_array_equal(np.concatenate([basis(X[:8]), basis(X[8:])]), H)


def test_values() -> None:
    x = np.array([[2.0, 3.0]])
    assert Zero()(x).shape == (1, 0)
    np.testing.assert_array_equal(Constant()(x), [[1.0]])
    np.testing.assert_array_equal(Linear()(x), [[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(Quadratic()(x), [[1.0, 2.0, 3.0, 4.0, 6.0, 9.0]])
    assert Quadratic().column_names(2) == ["1", "x1", "x2", "x1^2", "x1*x2", "x2^2"]


def test_names_and_errors() -> None:
    assert {"constant", "linear", "quadratic", "zero"} <= set(MEANS)
    for name in MEANS:
        assert as_basis(name).name == name
    assert as_basis(with_sine).function is with_sine
    with pytest.raises(ValueError, match=r"'linear'.*got 'cubic'"):
        as_basis("cubic")


def test_dependent_columns_are_named(X: np.ndarray) -> None:
    X[:, 2] = 2.0 * X[:, 0] - 1.0
    with pytest.raises(ValueError, match=r"linearly dependent.*x[13] \(column [13]\)") as error:
        design_matrix(Linear(), X)
    assert "x2" not in str(error.value)
    design_matrix(Constant(), X)


def test_two_levels_make_a_square_redundant(X: np.ndarray) -> None:
    X[:, 1] = np.round(X[:, 1])
    with pytest.raises(ValueError, match=r"x2"):
        design_matrix(Quadratic(), X)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_an_offset_is_not_a_dependence(offset: float, X: np.ndarray) -> None:
    design_matrix(Linear(), X + offset)


def test_zero_column_is_dependent(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="h2"):
        design_matrix(UserBasis(lambda X: np.column_stack([X[:, 0], 0.0 * X[:, 0]])), X)


def test_too_few_runs(X: np.ndarray) -> None:
    design_matrix(Linear(), X[:7])
    with pytest.raises(ValueError, match=r"6 runs are too few.*4 basis functions.*6 are needed"):
        design_matrix(Linear(), X[:6])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: X[:, 0], r"shape \(n, p\)"),
        (lambda X: X[1:], "one row for each of the 20"),
        (lambda X: np.full((len(X), 2), np.nan), "finite"),
        (lambda X: X[:, : len(X) // 10], "as many columns"),
    ],
)
def test_bad_functions(function, message: str, X: np.ndarray) -> None:
    basis = UserBasis(function)
    with pytest.raises(ValueError, match=message):
        np.concatenate([basis(X), basis(X[:10])])


def test_a_basis_that_is_not_callable() -> None:
    with pytest.raises(TypeError, match="callable"):
        UserBasis(3.0)


def test_user_basis_equals_the_built_in_one(X: np.ndarray) -> None:
    y = X[:, 0] ** 2 + np.sin(X[:, 1])
    u = np.random.default_rng(1).normal(size=(5, 4))
    by_hand = Posterior(X, y, mean=lambda X: np.column_stack([np.ones(len(X)), X]))
    np.testing.assert_array_equal(by_hand(u), Posterior(X, y, mean="linear")(u))


def test_a_polynomial_stays_one_in_other_units(X: np.ndarray) -> None:
    class Cubic(Polynomial):
        def exponents(self, n_inputs):
            return np.array([e for e in np.ndindex((4,) * n_inputs) if sum(e) <= 3])

    a, b = np.array([0.3, -2.0, 5.0]), np.array([2.0, 0.1, 7.0])
    for basis in [*(cls() for cls in MEANS.values()), Cubic()]:
        assert is_polynomial(basis)
        np.testing.assert_allclose(basis(a + b * X), basis(X) @ basis.affine(a, b).T, rtol=1e-12)
        exponents = basis.exponents(3)
        values = np.prod(X[:, None, :] ** exponents, axis=2)
        np.testing.assert_allclose(basis(X), values, rtol=1e-14)


def test_values_of_its_own_are_not_told_by_exponents() -> None:
    class Centred(Linear):
        def __call__(self, X):
            return super().__call__(X - 0.5)

    assert not is_polynomial(Centred())
    assert not is_polynomial(UserBasis(with_sine))
