"""What a stored emulator may say: values are checked when its file is read.

A checksum tells that a file is whole, not that it is honest. No value of it is used before it is
of the kind, the shape and the range that a fit could have left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paims._arrays import FloatArray
from paims.emulator._description import Provenance
from paims.emulator._fit import Fit
from paims.emulator._modes import EmulatorMode
from paims.emulator._scaling import InputScaling, OutputScaling
from paims.sampling import Mode, SampleResult

__all__ = [
    "are_texts",
    "check_about",
    "check_features",
    "check_fit",
    "check_mass",
    "check_output",
    "check_provenance",
    "check_result",
    "check_scaling",
    "check_weighted",
    "demand",
    "demand_numbers",
    "is_number",
]

#: By so much what is 1 may be more.
ROUNDING = 1e-9

# Of the largest and of the least double.
_MAX_EXPONENT = 1100
# Fields of the levels that the report draws.
_OF_LEVELS = {"level", "temperature", "effective_size"}


def check_about(about: dict[str, Any]) -> None:
    """Raise if names are none, or numbers are none."""
    check_features(about)
    demand(are_texts(about["input_names"]), "a name of its inputs is no text")
    for name in ("kernel_evidence", "kernel_evidence_error"):
        demand_numbers(name, about.get(name, {}))
    demand_numbers("compression", about["compression"])


def check_features(about: dict[str, Any]) -> None:
    """Raise if the inputs that a user gives are not counted, or not named."""
    n_features, names = about["n_features"], about["feature_names"]
    demand(type(n_features) is int and n_features > 0, f"it has {n_features!r} inputs")
    if names is not None:
        demand(are_texts(names), "a name of its inputs is no text")
        demand(len(names) == n_features, f"it has {len(names)} names for {n_features} inputs")


def check_provenance(found: Provenance) -> None:
    """Raise if what is to be shown cannot be shown."""
    for name in ("output", "source"):
        demand(isinstance(getattr(found, name), str), f"the name of its {name} is no text")
    demand(found.seconds is None or is_number(found.seconds), "its time is no number")
    versions = found.versions
    demand(
        isinstance(versions, dict) and are_texts(list(versions.values())),
        "a version that it names is no text",
    )
    demand(are_texts(found.warnings), "a warning of its fit is no text")


def is_number(value: Any) -> bool:
    """Whether a value is one number, which may be infinite or NaN."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def are_texts(values: Any) -> bool:
    """Whether values are a list of texts."""
    return isinstance(values, list | tuple) and all(isinstance(item, str) for item in values)


def check_scaling(n_features: int, inputs: InputScaling, output: OutputScaling) -> None:
    """Raise if no runs could have been scaled like this; no prediction would notice."""
    for name, values in (("lower", inputs.lower), ("width", inputs.width)):
        demand(
            values.shape == (n_features,) and values.dtype.kind == "f",
            f"the {name} of its inputs is not one row of numbers",
        )
        demand(bool(np.isfinite(values).all()), f"the {name} of its inputs is not finite")
    demand(bool((inputs.width >= 0.0).all()), "an input has a negative width")
    exponents = np.asarray(inputs.exponent)
    demand(
        exponents.shape == (n_features,) and exponents.dtype.kind in "iu",
        "the exponent of its inputs is no row of integers",
    )
    for value in exponents.tolist():
        _demand_exponent(value)
    check_output(output)


def check_output(output: OutputScaling) -> None:
    """Raise if no output could have been scaled like this."""
    _demand_exponent(output.exponent)
    demand(is_number(output.scale), "the scale of its output is no number")
    demand(0.0 < output.scale < np.inf, f"the scale of its output is {output.scale}")
    demand(is_number(output.shift), "the shift of its output is no number")
    demand(bool(np.isfinite(output.shift)), f"the shift of its output is {output.shift}")


def _demand_exponent(value: Any) -> None:
    demand(type(value) is int and abs(value) <= _MAX_EXPONENT, f"a unit in it is 2^{value!r}")


def check_fit(fit: Fit) -> None:
    """Raise if a number is none that a fit could have left."""
    n_params = fit.posterior.n_params
    check_weighted("mixture", fit.ensemble.draws, fit.ensemble.weights, n_params)
    for one in fit.kernels:
        check_result(one.result, n_params)
    n_inputs = int(fit.inputs.active.sum())
    demand(len(fit.names) == n_inputs, f"it has {len(fit.names)} names for {n_inputs} inputs")
    for mode in (fit.best, *fit.modes):
        demand(mode.input_names == fit.names, f"a mode is of the inputs {mode.input_names}")
        for name in ("length_scales", "effects", "curvatures"):
            values = getattr(mode, name)
            demand(
                values.shape == (n_inputs,) and values.dtype.kind == "f",
                f"the {name} of a mode are not {n_inputs} numbers",
            )
        check_mass(mode)
        for name in ("nugget", "noise"):
            demand(is_number(getattr(mode, name)), f"the {name} of a mode is no number")
        demand(bool((mode.length_scales > 0.0).all()), "a length scale is not positive")
        finite = np.isfinite(mode.length_scales) | ~np.isfinite(fit.inputs.range)
        demand(bool(finite.all()), "a length scale is not finite")
        demand(0.0 <= mode.nugget <= 1.0, f"a mode has the nugget {mode.nugget}")


def check_mass(mode: Mode | EmulatorMode) -> None:
    """Raise if a mode has no mass, or no height."""
    for name in ("mass", "mass_error", "log_density"):
        demand(is_number(getattr(mode, name)), f"the {name} of a mode is no number")
    demand(0.0 <= mode.mass <= 1.0 + ROUNDING, f"a mode has the mass {mode.mass}")


def check_result(result: SampleResult, n_params: int) -> None:
    """Raise if a sample has lost something, or says what none could."""
    check_weighted("sample", result.draws, result.weights, n_params)
    fields = set(result.levels.dtype.names or ())
    demand(fields >= _OF_LEVELS, "the levels of its sample have lost what they say")
    for name in ("log_evidence", "log_evidence_error", "effective_size", "pareto_k"):
        demand(is_number(getattr(result, name)), f"the {name} of its sample is no number")
    demand(are_texts(result.warnings), "a warning of its sample is no text")
    demand(result.log_density.shape == result.weights.shape, "its sample has lost densities")
    demand(result.log_density.dtype.kind == "f", "a log density of its sample is no number")
    demand(not np.isnan(result.log_density).any(), "a log density of its sample is NaN")
    if result.posterior is not None:
        check_result(result.posterior, n_params)


def check_weighted(what: str, draws: FloatArray, weights: FloatArray, n_params: int) -> None:
    """Raise if draws with weights are none."""
    demand(len(weights) > 0, f"its {what} is empty")
    demand(
        weights.ndim == 1 and draws.shape == (len(weights), n_params),
        f"its {what} has draws of shape {draws.shape} and weights of shape {weights.shape}",
    )
    for values in (draws, weights):
        demand(values.dtype.kind == "f", f"its {what} is not made of real numbers")
    demand(bool(np.isfinite(draws).all()), f"a draw of its {what} is not finite")
    demand(bool((weights >= 0.0).all()), f"a weight of its {what} is negative or NaN")
    total = float(weights.sum())
    demand(abs(total - 1.0) < 1e-6, f"the weights of its {what} sum to {total:.6g}")


def demand_numbers(what: str, values: Any) -> None:
    """Raise unless values by name are numbers."""
    fine = isinstance(values, dict) and all(is_number(value) for value in values.values())
    demand(fine, f"its {what} is not made of numbers")


def demand(condition: bool, otherwise: str) -> None:
    """Raise with what is wrong unless a condition holds."""
    if not condition:
        raise ValueError(otherwise)
