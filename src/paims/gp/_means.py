r"""Bases :math:`h(x)` of the mean :math:`h(x)^T \beta`; :math:`\beta` is integrated out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np
from scipy.linalg import qr
from scipy.special import comb

from paims._arrays import FloatArray, IntArray
from paims.gp._checks import as_float_array, check_finite
from paims.gp._registry import Named, as_object, registry

__all__ = [
    "MEANS",
    "Basis",
    "Constant",
    "Linear",
    "Polynomial",
    "Quadratic",
    "UserBasis",
    "Zero",
]


class Basis(Named, ABC):
    """Basis of the mean: a map from inputs ``(n, p)`` to regressors ``(n, q)``."""

    @abstractmethod
    def __call__(self, X: FloatArray) -> FloatArray:
        """Regressors ``(n, q)``, the paper's design matrix H, of the inputs ``X`` (n, p)."""

    @abstractmethod
    def column_names(self, n_inputs: int) -> list[str]:
        """Names of the q regressors, as formulas in ``x1 .. xp``."""


class Polynomial(Basis):
    """A basis of monomials, told by their exponents.

    With each monomial all that divide it must be there: a polynomial then stays one of the same
    basis when the units of the inputs change.
    """

    @abstractmethod
    def exponents(self, n_inputs: int) -> IntArray:
        """Exponents ``(q, p)`` of the monomials."""

    def __call__(self, X: FloatArray) -> FloatArray:
        """Values of the monomials."""
        exponents = self.exponents(X.shape[1])
        H = np.ones((len(X), len(exponents)))
        for j, row in enumerate(exponents):
            for i in np.repeat(np.arange(len(row)), row):
                H[:, j] *= X[:, i]
        return H

    def column_names(self, n_inputs: int) -> list[str]:
        """Such as ``1``, ``x1``, ``x1^2``, ``x1*x2``."""
        return [
            "*".join(f"x{i + 1}" if e == 1 else f"x{i + 1}^{e}" for i, e in enumerate(row) if e)
            or "1"
            for row in self.exponents(n_inputs).tolist()
        ]

    def affine(self, a: FloatArray, b: FloatArray) -> FloatArray:
        r"""Matrix A ``(q, q)`` with :math:`h(a + b x) = A\, h(x)`, by the binomial theorem.

        Parameters
        ----------
        a, b : (p,) ndarray
        """
        whole = self.exponents(len(a))[:, None, :]
        part = whole.swapaxes(0, 1)
        rest = np.maximum(whole - part, 0)  # where it is not one, the binomial coefficient is 0
        A: FloatArray = (comb(whole, part) * a**rest * b**part).prod(axis=2)
        return A


class Zero(Polynomial):
    """No mean at all, q = 0: the process is centred at 0."""

    name = "zero"

    def exponents(self, n_inputs: int) -> IntArray:
        """No monomial."""
        return np.zeros((0, n_inputs), dtype=np.int64)


class Constant(Polynomial):
    """An unknown constant, h(x) = 1."""

    name = "constant"

    def exponents(self, n_inputs: int) -> IntArray:
        """The constant."""
        return np.zeros((1, n_inputs), dtype=np.int64)


class Linear(Polynomial):
    """A plane, h(x) = (1, x_1, ..., x_p): the paper's choice in all its examples."""

    name = "linear"

    def exponents(self, n_inputs: int) -> IntArray:
        """The constant, and each input."""
        return np.eye(n_inputs + 1, n_inputs, -1, dtype=np.int64)


class Quadratic(Polynomial):
    """A full quadratic: 1, x_i, and all products x_i x_j with i <= j; q = (p + 1)(p + 2)/2."""

    name = "quadratic"

    def exponents(self, n_inputs: int) -> IntArray:
        """The constant, each input, then squares and products."""
        unit = np.eye(n_inputs, dtype=np.int64)
        i, j = np.triu_indices(n_inputs)
        return np.vstack([Linear().exponents(n_inputs), unit[i] + unit[j]])


class UserBasis(Basis):
    """A basis from a user's function.

    Parameters
    ----------
    function : callable
        Takes inputs ``(n, p)``, returns regressors ``(n, q)``; q must not depend on n. A
        function defined in a module can be sent to other processes, a lambda cannot.
    """

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        if not callable(function):
            raise TypeError(f"A user's basis must be callable; got {function!r}.")
        self.function = function
        self._n_columns: int | None = None

    def __call__(self, X: FloatArray) -> FloatArray:
        """Call the function and check its result."""
        H = as_float_array("The basis function's result", self.function(X), 2)
        if len(H) != len(X):
            raise ValueError(
                f"The basis function must return one row for each of the {len(X)} inputs; "
                f"it returned an array of shape {H.shape}."
            )
        if self._n_columns is None:
            self._n_columns = H.shape[1]
        if H.shape[1] != self._n_columns:
            raise ValueError(
                f"The basis function must always return as many columns; it returned "
                f"{H.shape[1]} after {self._n_columns}."
            )
        check_finite("The basis function's result", H)
        return H

    def column_names(self, n_inputs: int) -> list[str]:
        """``h1 .. hq``."""
        return [f"h{i + 1}" for i in range(self._n_columns or 0)]

    def __repr__(self) -> str:
        return f"UserBasis({self.function!r})"


#: The means that can be asked for by name.
MEANS: dict[str, type[Basis]] = registry(Basis, globals())


def is_polynomial(basis: Basis) -> TypeGuard[Polynomial]:
    """Whether the exponents tell all of a basis: a subclass may have changed its values."""
    return isinstance(basis, Polynomial) and type(basis).__call__ is Polynomial.__call__


def as_basis(mean: str | Basis | Callable[[FloatArray], Any]) -> Basis:
    """Basis object of a name or of a function, or the object itself."""
    if callable(mean) and not isinstance(mean, Basis):
        return UserBasis(mean)
    function = ", a function of the inputs (n, p) that returns (n, q),"
    return as_object("mean", mean, Basis, MEANS, function)


def design_matrix(basis: Basis, X: FloatArray) -> FloatArray:
    """Design matrix H ``(n, q)`` of the training inputs, checked.

    Raises
    ------
    ValueError
        If n <= q + 2, since the variance S2/(n - q - 2) is then not defined, or if the columns
        of H are linearly dependent: the flat prior of beta leaves the posterior improper.
    """
    H = np.ascontiguousarray(basis(X))
    n, q = H.shape
    if n <= q + 2:
        raise ValueError(
            f"{n} runs are too few for a mean with {q} basis functions: more than q + 2 = "
            f"{q + 2} are needed. Add runs or take a smaller basis (mean='constant')."
        )
    if q == 0:
        return H
    norms = np.linalg.norm(H, axis=0)
    scaled = H / np.where(norms > 0.0, norms, 1.0)
    # Pivoting puts the columns that the others explain last, with a negligible diagonal.
    R, pivots = qr(scaled, mode="r", pivoting=True)
    dependent = pivots[np.flatnonzero(np.abs(np.diag(R[:q])) < 1e-12)]
    if dependent.size:
        names = basis.column_names(X.shape[1])
        listed = ", ".join(f"{names[j]} (column {j})" for j in sorted(dependent.tolist()))
        raise ValueError(
            f"The mean's basis functions are linearly dependent on the training inputs: {listed} "
            "can be written by the others. Drop these, add runs that vary them, or take a "
            "smaller basis."
        )
    return H
