"""Numba's ``njit``, for machines on which it would fail without saying what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

# Numba's own types do not cover what is used of it here.
_njit: Any = numba.njit
_config: Any = numba.config


def njit(*signature: str, **options: Any) -> Callable[[Any], Any]:
    """Compile a function as Numba does, and take the same arguments.

    Where no folder can be written that compiled code could be kept in, as in a container that is
    read-only, ``cache=True`` means that every process compiles anew, in place of an error.

    Raises
    ------
    ImportError
        If Numba's compiler is switched off. What is compiled here cannot run without: its vector
        types have no meaning in Python, and its loops would take hours.
    """
    if _config.DISABLE_JIT:
        raise ImportError(
            "paims needs Numba's compiler, which is switched off: unset the environment variable "
            "NUMBA_DISABLE_JIT (or numba.config.DISABLE_JIT) and start again."
        )

    def compiled(function: Any) -> Any:
        try:
            return _njit(*signature, **options)(function)
        except RuntimeError:
            if not options.get("cache"):
                raise
            return _njit(*signature, **options | {"cache": False})(function)

    return compiled
