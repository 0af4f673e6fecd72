r"""The trend :math:`h(x)^T\beta` and the variance :math:`\sigma^2`, in the user's units."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri

from paims._arrays import FloatArray, IntArray
from paims.emulator._mixture import MixturePrediction
from paims.emulator._scaling import InputScaling, OutputScaling
from paims.gp import Basis, Coefficients, Posterior
from paims.gp._means import as_basis, is_polynomial

_FIELDS = ["mean", "std", "lower", "median", "upper"]
_LEVELS = np.array([0.025, 0.5, 0.975])


class BasisInUnits(Basis):
    """A user's basis, which is a function of inputs in the user's units, on scaled inputs."""

    def __init__(self, basis: Basis, inputs: InputScaling) -> None:
        self.basis = basis
        self.inputs = inputs

    def __call__(self, X: FloatArray) -> FloatArray:
        """Regressors ``(n, q)`` of scaled inputs."""
        return self.basis(self.inputs.undo(X))

    def column_names(self, n_inputs: int) -> list[str]:
        """Names of the user's basis."""
        return self.basis.column_names(len(self.inputs.lower))

    def __repr__(self) -> str:
        return repr(self.basis)


def basis_in_units(mean: str | Basis | Callable[[FloatArray], Any], inputs: InputScaling) -> Basis:
    """Basis on scaled inputs of what the user asked for."""
    basis = as_basis(mean)
    # A polynomial is one in all units.
    return basis if is_polynomial(basis) else BasisInUnits(basis, inputs)


def constant_coefficients(H: FloatArray) -> FloatArray | None:
    """Coefficients ``(q,)`` that write the constant 1 by the columns of H; None if none do."""
    if H.shape[1] == 0:
        return None
    ones = np.ones(len(H))
    found = np.asarray(np.linalg.lstsq(H, ones, rcond=None)[0], dtype=np.float64)
    return found if np.abs(H @ found - ones).max() < 1e-9 else None


def trend_summary(
    posterior: Posterior,
    coefficients: Coefficients,
    weights: FloatArray,
    inputs: InputScaling,
    output: OutputScaling,
    names: Sequence[str],
) -> npt.NDArray[np.void]:
    r"""Posterior of :math:`\beta`, a mixture of Student-t distributions over the draws.

    Returns
    -------
    structured ndarray, shape (q,)
        Fields ``name``, ``mean``, ``std``, ``lower``, ``median``, ``upper``: the last three are
        the quantiles 2.5 %, 50 %, 97.5 %.
    """
    A, exponent = _to_units(posterior.mean, inputs)
    location = coefficients.mean @ A
    constant = constant_coefficients(posterior.H)
    if constant is not None:
        location = location + (output.shift / output.scale) * (constant @ A)
    scale2 = np.einsum("ij,cik,kj->cj", A, coefficients.scale2, A)
    reduced = OutputScaling(0, 0.0, output.scale)
    mixture = MixturePrediction(
        location, np.sqrt(scale2), weights, float(coefficients.dof), reduced
    )
    columns = [mixture.mean, mixture.std, *mixture.quantile(_LEVELS)]
    dtype = [("name", object), *((field, float) for field in _FIELDS)]
    table = np.empty(posterior.n_basis, dtype=dtype)
    table["name"] = _column_names(posterior, names)
    with np.errstate(over="ignore", under="ignore"):
        for field, column in zip(_FIELDS, columns, strict=True):
            table[field] = np.ldexp(column, output.exponent - exponent)
    return table


def _column_names(posterior: Posterior, names: Sequence[str]) -> list[str]:
    formulas = posterior.mean.column_names(posterior.n_inputs)
    if not is_polynomial(posterior.mean):
        return formulas
    return [re.sub(r"x(\d+)", lambda m: names[int(m[1]) - 1], formula) for formula in formulas]


def _to_units(basis: Basis, inputs: InputScaling) -> tuple[FloatArray, IntArray]:
    r"""A with :math:`h(\text{scaled}) = A\, h(\text{reduced})`, so :math:`\beta = A^T\beta_s`.

    Reduced inputs are the user's up to a power of two each; the second result has the power of
    two ``(q,)`` of each regressor.
    """
    if not is_polynomial(basis):
        q = basis(np.zeros((1, int(inputs.active.sum())))).shape[1]
        return np.eye(q), np.zeros(q, dtype=np.int64)
    e, width = inputs.exponent[inputs.active], inputs.width[inputs.active]
    A = basis.affine(-inputs.lower[inputs.active] / width, 1.0 / width)
    return A, basis.exponents(len(e)) @ e


def variance_summary(
    coefficients: Coefficients, weights: FloatArray, output: OutputScaling
) -> npt.NDArray[np.void]:
    r"""Posterior of :math:`\sigma^2`, a mixture of inverse gammas over the draws.

    Given a draw, :math:`S^2/\sigma^2` is chi-square with n - q degrees of freedom, so the mean is
    :math:`S^2/(n-q-2)`.

    Returns
    -------
    structured ndarray, shape ()
        Fields ``mean``, ``std`` (inf for n - q <= 4), ``lower``, ``median``, ``upper``.
    """
    dof, S2 = coefficients.dof, coefficients.S2
    mean = S2 / (dof - 2.0)
    centre = weights @ mean
    within = 2.0 / (dof - 4.0) * (weights @ mean**2) if dof > 4 else np.inf
    std = np.sqrt(within + weights @ (mean - centre) ** 2)
    quantiles = [_variance_quantile(level, S2, weights, dof) for level in _LEVELS.tolist()]
    values = output.square(np.array([centre, std, *quantiles]))
    return np.array(tuple(values), dtype=[(field, float) for field in _FIELDS])


def _variance_quantile(q: float, S2: FloatArray, weights: FloatArray, dof: int) -> float:
    """Quantile of the mixture; it lies between those of the components."""
    each = np.log(S2 / chdtri(dof, q))
    low, high = float(each.min()), float(each.max())
    if high - low < 1e-12:
        return float(np.exp(low))

    def excess(log_variance: float) -> float:
        return float(weights @ chdtrc(dof, S2 * np.exp(-log_variance))) - q

    return float(np.exp(brentq(excess, low - 1e-9, high + 1e-9, xtol=1e-12)))
