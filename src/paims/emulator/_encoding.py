"""Constructor arguments as JSON and back, without executing anything that a file says.

Numbers, names and the library's own objects can be stored; what a user has programmed cannot.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np

from paims import gp
from paims.sampling import Scheme

_NAMED: list[type] = [
    *gp.KERNELS.values(),
    *gp.MEANS.values(),
    *gp.PRIORS.values(),
    *gp.NUGGET_PRIORS.values(),
]
_OTHERS: list[type] = [gp.SciPyPrior, gp.EstimatedNugget, gp.FixedNugget, Scheme]

#: The only classes that a file can name.
_CLASSES = {cls.__name__: cls for cls in _NAMED + _OTHERS}


def encode(name: str, value: Any) -> Any:
    """JSON value of a constructor argument.

    Parameters
    ----------
    name : str
        Of the argument, for the error.
    value : object
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return encode(name, value.item())
    if isinstance(value, np.ndarray):
        return encode(name, value.tolist())
    if isinstance(value, list | tuple):
        return [encode(name, item) for item in value]
    if _CLASSES.get(type(value).__name__) is type(value):
        arguments = {key: encode(name, getattr(value, key)) for key in _arguments(type(value))}
        return {"class": type(value).__name__, "arguments": arguments}
    if hasattr(value, "dist") and hasattr(value, "kwds"):
        return _encode_distribution(name, value)
    raise TypeError(
        f"The emulator cannot be saved: its {name} is {value!r}, a program of yours, and files "
        "hold data only. Use one of the library's own, or keep the script that fits the emulator."
    )


def decode(value: Any) -> Any:
    """Argument of a JSON value.

    Raises
    ------
    ValueError
        If the value names what cannot be made.
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "distribution" in value:
        return _decode_distribution(value)
    if value.get("class") not in _CLASSES:
        raise ValueError(f"it names an unknown class {value.get('class')!r}")
    arguments = {key: decode(item) for key, item in value["arguments"].items()}
    if value["class"] == Scheme.__name__:
        return Scheme.from_stored(arguments)
    return _CLASSES[value["class"]](**arguments)


def _arguments(cls: type) -> list[str]:
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return []
    return [key for key in inspect.signature(cls.__init__).parameters if key != "self"]  # type: ignore[misc]


def _encode_distribution(name: str, value: Any) -> Any:
    from scipy import stats  # noqa: PLC0415 - slow to import, seldom needed

    known: Any = getattr(stats, value.dist.name, None)
    if type(known) is not type(value.dist):
        raise TypeError(
            f"The emulator cannot be saved: its {name} has the distribution {value.dist!r}, "
            "which is not one of scipy.stats."
        )
    return {
        "distribution": value.dist.name,
        "arguments": encode(name, list(value.args)),
        "keywords": {key: encode(name, item) for key, item in value.kwds.items()},
    }


def _decode_distribution(value: dict[str, Any]) -> Any:
    from scipy import stats  # noqa: PLC0415 - slow to import, seldom needed

    distribution = getattr(stats, str(value["distribution"]), None)
    if not isinstance(distribution, stats.rv_continuous):
        raise ValueError(f"it names an unknown distribution {value['distribution']!r}")
    return distribution(*value["arguments"], **value["keywords"])
