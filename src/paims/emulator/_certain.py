"""An output that the trend explains to the last digit, such as a constant: nothing to learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_array

from paims._arrays import FloatArray, refuse_what_is_no_number
from paims.emulator._mixture import MixturePrediction
from paims.emulator._scaling import InputScaling, OutputScaling
from paims.emulator._trend import basis_in_units

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

_EXPLAINED = 1e-13


@dataclass(frozen=True, eq=False)
class CertainOutput:
    r"""An output :math:`h(x)^T\beta` of which the runs leave no doubt.

    Attributes
    ----------
    name : str
    beta : (q,) ndarray
        On scaled inputs and outputs.
    constant : bool
        Whether it takes one value only.
    inputs_, output_ : InputScaling, OutputScaling
    """

    name: str
    beta: FloatArray
    constant: bool
    mean: Any
    inputs_: InputScaling
    output_: OutputScaling

    @property
    def says(self) -> str:
        """What there is to say of it."""
        if self.constant:
            value = float(self.output_.value(np.array(0.0)))
            return f"{self.name} takes one value only ({value:g})"
        return f"{self.name} is reproduced exactly by the trend"

    def mixture(self, X: FloatArray) -> MixturePrediction:
        """The output at inputs ``X`` (k, n_features), without uncertainty."""
        if self.constant:
            value = np.zeros(len(X))
        else:
            value = basis_in_units(self.mean, self.inputs_)(self.inputs_.apply(X)) @ self.beta
        location = np.asarray(value, dtype=np.float64)[None]
        zero = np.zeros_like(location)
        k = len(X)

        def joint(index: Any) -> tuple[FloatArray, FloatArray]:
            return location[index], np.zeros((len(index), k, k))

        return MixturePrediction(location, zero, np.ones(1), np.inf, self.output_, joint)

    def predict_distribution(self, X: Any, include_nugget: bool = True) -> MixturePrediction:
        """The same as for an emulator of one output."""
        refuse_what_is_no_number("X", X)
        values = check_array(X, dtype=np.float64, input_name="X")
        n_inputs = len(self.inputs_.exponent)
        if values.shape[1] != n_inputs:
            raise ValueError(f"X must have {n_inputs} columns; got shape {values.shape}.")
        return self.mixture(values)

    def predict(
        self, X: Any, return_std: bool = False, include_nugget: bool = True
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """The same as for an emulator of one output; the standard deviation is 0."""
        mixture = self.predict_distribution(X)
        return (mixture.mean, mixture.std) if return_std else mixture.mean


def certain_output(
    name: str, X: FloatArray, y: FloatArray, asked: Emulator
) -> CertainOutput | None:
    """The output as one without doubt, if the runs ``X`` (n, n_features), ``y`` leave none."""
    inputs = InputScaling.of(X)
    if (y == y[0]).all():
        exponent = int(np.frexp(y[0])[1])
        scaling = OutputScaling(exponent, float(np.ldexp(y[0], -exponent)), 1.0)
        return CertainOutput(name, np.empty(0), True, asked.mean, inputs, scaling)
    if not inputs.active.any():
        return None
    scaling = OutputScaling.of(y, centre=False)
    target = scaling.apply(y)
    H = basis_in_units(asked.mean, inputs)(inputs.apply(X))
    if H.shape[1] == 0 or len(H) <= H.shape[1]:
        return None
    beta = np.asarray(np.linalg.lstsq(H, target, rcond=None)[0], dtype=np.float64)
    if np.abs(target - H @ beta).max() > _EXPLAINED * np.abs(target).max() * 10.0:
        return None
    return CertainOutput(name, beta, False, asked.mean, inputs, scaling)
