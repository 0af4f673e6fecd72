"""Checked arrays: what comes from a user is validated here, once, with errors that help."""

from __future__ import annotations

from typing import Any

import numpy as np

from paims._arrays import FloatArray, refuse_what_is_no_number


def as_float_array(name: str, values: Any, ndim: int) -> FloatArray:
    """Contiguous float64 copy of ``values`` with ``ndim`` axes; errors name the argument."""
    if np.iscomplexobj(values):
        raise ValueError(f"{name} must hold real numbers; got complex ones.")
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or _is_masked(values):
        refuse_what_is_no_number(name, values)
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold real numbers; it could not be read as float64 ({error}). "
            "Encode categories and dates as numbers first."
        ) from error
    if array.ndim != ndim:
        shape = {1: "(n,)", 2: "(n, p)"}[ndim]
        raise ValueError(
            f"{name} must have shape {shape}; got an array of shape {array.shape}."
            + (" Use reshape(-1, 1) for a single column." if ndim == 2 and array.ndim == 1 else "")
        )
    return array


def _is_masked(values: Any) -> bool:
    return isinstance(values, np.ma.MaskedArray)


def check_finite(name: str, array: FloatArray) -> None:
    """Raise if ``array`` has NaN or infinity, with the place of the first."""
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        place = ", ".join(str(int(i)) for i in bad[0])
        raise ValueError(
            f"{name} must be finite; {name}[{place}] is {array[tuple(bad[0])]} "
            f"({len(bad)} such value(s)). Drop or repair those runs."
        )


def check_runs(X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    """Check and copy the training inputs ``X`` (n, p) and outputs ``y`` (n,).

    A column of ``X`` that never varies is refused: the data say nothing of its correlation
    parameter, so every non-informative prior leaves the posterior improper in it.
    """
    X = as_float_array("X", X, 2)
    y = as_float_array("y", y, 1)
    if len(X) != len(y):
        raise ValueError(f"X and y must have as many rows; got {len(X)} and {len(y)}.")
    if X.shape[1] == 0:
        raise ValueError("X must have at least one column; got none.")
    check_finite("X", X)
    check_finite("y", y)
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0.0) if len(X) else np.empty(0, int)
    if constant.size:
        raise ValueError(
            f"Column(s) {constant.tolist()} of X take one value only: nothing can be learnt "
            "about them. Drop them."
        )
    return X, y


def check_points(name: str, u: Any, n_columns: int) -> FloatArray:
    """Batch of points ``(m, n_columns)``; NaN and infinity are let through on purpose."""
    shape = np.shape(u)
    if len(shape) != 2 or shape[1] != n_columns:
        raise ValueError(
            f"{name} must be a batch of shape (m, {n_columns}); got shape {shape}."
            + (" Use reshape(1, -1) for a single point." if len(shape) == 1 else "")
        )
    return as_float_array(name, u, 2)
