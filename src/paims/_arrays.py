"""The array types of the library, whose shapes are in the docstrings; what is no number."""

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

# From here on two integers can be one double.
_EXACT = 2**53
_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def refuse_what_is_no_number(name: str, values: Any) -> None:
    """Raise where NumPy would make numbers of what are none, or other ones, without a word.

    Text, dates, masked values, integers that doubles cannot tell apart, records.

    Parameters
    ----------
    name : str
        Of the argument, for the error.
    values : array_like or data frame
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        n_masked = int(np.ma.getmaskarray(values).sum())
        raise ValueError(
            f"{name} is a masked array with {n_masked} masked value(s), and every value would be "
            "used, those under the mask too. Drop those runs."
        )
    frames = [values[column] for column in values.columns] if _is_frame(values) else [values]
    for part in frames:
        try:
            array = np.asarray(part)
        except ValueError:
            return  # Ragged: the next check says so.
        _refuse(name, array)


def _is_frame(values: Any) -> bool:
    columns = getattr(values, "columns", None)
    return columns is not None and getattr(columns, "is_unique", False)


def _refuse(name: str, array: Array) -> None:
    kind = array.dtype.kind
    items = [item for item in array.flat if item is not None] if kind == "O" else []
    if kind in "US" or any(isinstance(item, str | bytes) for item in items):
        raise ValueError(
            f"{name} holds text where numbers are needed. Read numbers as numbers, and encode "
            "categories as numbers."
        )
    if kind in "Mm" or any(isinstance(item, _TIMES) for item in items):
        raise ValueError(
            f"{name} holds dates or times where numbers are needed. Say in which unit: subtract "
            "the first and divide by np.timedelta64(1, 'D') for days."
        )
    if kind == "V":
        raise ValueError(f"{name} holds records; give a table of numbers, one column for each.")
    whole = [item for item in items if isinstance(item, int | np.integer)]
    if kind in "iu" and array.size and (array.max() > _EXACT or array.min() < -_EXACT):
        whole = array[(array > _EXACT) | (array < -_EXACT)].tolist()
    for item in whole:
        # abs of the least int64 would be itself.
        if not -_EXACT <= item <= _EXACT and _as_double(item) != item:
            raise ValueError(
                f"{name} holds the integer {item}, which no double precision number equals: it "
                "would be rounded. Subtract an offset, or leave it out if it is a label."
            )


def _as_double(item: Any) -> Any:
    try:
        return int(float(item))
    except OverflowError:
        return None
