"""What is found before the work starts: data that cannot be right."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from paims._arrays import BoolArray, FloatArray, refuse_what_is_no_number

# Outputs of equal inputs may differ by this much more than a fixed nugget allows for.
_TOLERATED = 1e4
_LARGEST = 4e307


@contextmanager
def named(output: str) -> Iterator[None]:
    """Put the name of an output before an error about it."""
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise ValueError(f"Output {output}: {error}") from None


def held_out_output(X: FloatArray, y: Any) -> FloatArray:
    """Outputs ``(k,)`` of checked inputs ``X`` (k, n_features)."""
    refuse_what_is_no_number("y", y)
    values = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
    check_consistent_length(X, values)
    return np.asarray(values, dtype=np.float64)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless ``value`` is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}.")


def check_enough_runs(n_runs: int, n_basis: int, mean: object) -> None:
    """Raise unless n > q + 2, which the variance S2/(n - q - 2) needs."""
    if n_runs > n_basis + 2:
        return
    raise ValueError(
        f"Found n_samples={n_runs} run(s), too few: with mean={mean!r}, which has q = {n_basis} "
        f"basis functions, at least q + 3 = {n_basis + 3} are needed, and ten for each input are "
        "a good start. Add runs"
        + (" or take a smaller basis (mean='constant')." if n_basis > 1 else ".")
    )


def check_constant_columns(constant: BoolArray, names: Sequence[str]) -> None:
    """Warn of columns that never vary, raise if none does."""
    if not constant.any():
        return
    listed = ", ".join(name for name, fixed in zip(names, constant, strict=True) if fixed)
    if constant.all():
        raise ValueError(
            f"Every column of X takes one value only ({listed}): there is nothing to learn from. "
            "Give runs at different inputs."
        )
    warnings.warn(
        f"Column(s) {listed} of X take one value only. Nothing can be learnt about them, so they "
        "are left out: predictions hold for that value.",
        UserWarning,
        stacklevel=5,
    )


def check_varying_output(y: FloatArray, *, centred: bool) -> None:
    """Raise if there is nothing to emulate, or predictions could not be represented."""
    largest = float(np.abs(y).max())
    if largest > _LARGEST:
        raise ValueError(
            f"y holds numbers up to {largest:.3g}, so near the largest that a double can hold "
            f"that predictions would pass it. Give y in larger units, below {_LARGEST:g}."
        )
    if (y == y[0]).all() and (centred or y[0] == 0.0):  # their difference might overflow
        raise ValueError(
            f"y takes one value only ({y[0]:g}): there is no variation to emulate. If the "
            "simulator really is constant there, no emulator is needed."
        )


def check_repeats(X: FloatArray, y: FloatArray, nugget: float) -> None:
    """Raise if a fixed nugget cannot explain the outputs of repeated inputs.

    Parameters
    ----------
    X : (n, p) ndarray
    y : (n,) ndarray
        Standardised.
    nugget : float
    """
    _, inverse, count = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    inverse = inverse.ravel()
    if (count == 1).all():
        return
    mean = np.bincount(inverse, weights=y) / count
    scatter = float(np.sum((y - mean[inverse]) ** 2) / (len(y) - len(count)))
    repeated = np.flatnonzero(count[inverse] > 1)[0]
    first, second = np.flatnonzero(inverse == inverse[repeated])[:2]
    if nugget == 0.0:
        raise ValueError(
            f"X has repeated rows, such as {first} and {second}: with nugget=0 the correlation "
            "matrix is singular. Use nugget='estimate' or drop the repetitions."
        )
    if scatter > _TOLERATED * nugget:
        raise ValueError(
            f"Repeated rows of X, such as {first} and {second}, have different outputs (their "
            f"standard deviation is {np.sqrt(scatter):.2g} of that of y), which a nugget fixed at "
            f"{nugget:g} cannot explain. Use nugget='estimate'."
        )
