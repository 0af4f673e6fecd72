r"""Bases :math:`h(x)` of the mean :math:`h(x)^T \beta`; :math:`\beta` is integrated out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import qr

from paims._arrays import FloatArray
from paims.gp._checks import as_float_array, check_finite

__all__ = ["Basis", "Constant", "Linear", "Quadratic", "UserBasis", "Zero", "as_basis"]


class Basis(ABC):
    """Basis of the mean: a map from inputs ``(n, p)`` to regressors ``(n, q)``."""

    name: ClassVar[str] = "user"

    @abstractmethod
    def __call__(self, X: FloatArray) -> FloatArray:
        """Regressors ``(n, q)``, the paper's design matrix H, of the inputs ``X`` (n, p)."""

    @abstractmethod
    def column_names(self, n_inputs: int) -> list[str]:
        """Names of the q regressors, as formulas in ``x1 .. xp``."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Zero(Basis):
    """No mean at all, q = 0: the process is centred at 0."""

    name = "zero"

    def __call__(self, X: FloatArray) -> FloatArray:
        """No regressor."""
        return np.empty((len(X), 0))

    def column_names(self, n_inputs: int) -> list[str]:
        """No name."""
        return []


class Constant(Basis):
    """An unknown constant, h(x) = 1."""

    name = "constant"

    def __call__(self, X: FloatArray) -> FloatArray:
        """One column of ones."""
        return np.ones((len(X), 1))

    def column_names(self, n_inputs: int) -> list[str]:
        """``1``."""
        return ["1"]


class Linear(Basis):
    """A plane, h(x) = (1, x_1, ..., x_p): the paper's choice in all its examples."""

    name = "linear"

    def __call__(self, X: FloatArray) -> FloatArray:
        """(1, x_1, ..., x_p)."""
        return np.column_stack([np.ones(len(X)), X])

    def column_names(self, n_inputs: int) -> list[str]:
        """``1, x1 .. xp``."""
        return ["1", *(f"x{i + 1}" for i in range(n_inputs))]


class Quadratic(Basis):
    """A full quadratic: 1, x_i, and all products x_i x_j with i <= j; q = (p + 1)(p + 2)/2."""

    name = "quadratic"

    def __call__(self, X: FloatArray) -> FloatArray:
        """(1, x_i, x_i x_j), q = (p + 1)(p + 2)/2."""
        i, j = np.triu_indices(X.shape[1])
        return np.column_stack([np.ones(len(X)), X, X[:, i] * X[:, j]])

    def column_names(self, n_inputs: int) -> list[str]:
        """``1, x1 .. xp``, then squares and products."""
        pairs = zip(*np.triu_indices(n_inputs), strict=True)
        products = [f"x{i + 1}^2" if i == j else f"x{i + 1}*x{j + 1}" for i, j in pairs]
        return [*Linear().column_names(n_inputs), *products]


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


def as_basis(mean: str | Basis | Callable[[FloatArray], Any]) -> Basis:
    """Basis object of a name or of a function, or the object itself."""
    if isinstance(mean, Basis):
        return mean
    by_name: dict[str, type[Basis]] = {
        cls.name: cls for cls in (Zero, Constant, Linear, Quadratic)
    }
    if isinstance(mean, str) and mean in by_name:
        return by_name[mean]()
    if callable(mean):
        return UserBasis(mean)
    raise ValueError(
        f"mean must be one of {sorted(by_name)}, a function of the inputs (n, p) that returns "
        f"(n, q), or an object of a subclass of paims.gp.Basis; got {mean!r}."
    )


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
