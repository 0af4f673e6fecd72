r"""The trend :math:`h(x)^T\beta` and the variance, in the user's units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from paims.emulator.scaling import InputScaling
from paims.gp import Basis, Constant, Linear, Quadratic, Zero
from paims.gp.means import as_basis

FloatArray = npt.NDArray[np.float64]

# The spaces that these span are the same in all units.
_UNIT_FREE = (Zero, Constant, Linear, Quadratic)


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
    return basis if type(basis) in _UNIT_FREE else BasisInUnits(basis, inputs)


def spans_constant(H: FloatArray) -> bool:
    """Whether a constant can be written by the columns of the design matrix."""
    if H.shape[1] == 0:
        return False
    ones = np.ones(len(H))
    return bool(np.abs(ones - H @ np.linalg.lstsq(H, ones, rcond=None)[0]).max() < 1e-9)
