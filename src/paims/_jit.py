"""Numba's ``njit``, for machines on which it would fail without saying what to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba

# Numba's own types do not cover what is used of it here.
_njit: Any = numba.njit
_config: Any = numba.config


def njit(*signature: str, **options: Any) -> Callable[[Any], Any]:
    """Compile a function as Numba does, and take the same arguments.

    Where no folder can be written that compiled code could be kept in, as in a container that is
    read-only or on a disk that is full, ``cache=True`` means that every process compiles anew, in
    place of an error.

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
            return _kept_if_possible(_njit(*signature, **options)(function))
        except (RuntimeError, OSError):  # no folder for the cache; a disk that is full
            if not options.get("cache"):
                raise
            return _njit(*signature, **options | {"cache": False})(function)

    return compiled


def _kept_if_possible(dispatcher: Any) -> Any:
    """Let a function that is compiled at its first call go on if the disk is full by then."""
    cache: Any = getattr(dispatcher, "_cache", None)
    save = getattr(cache, "save_overload", None)
    if save is not None:

        def save_if_possible(*args: Any) -> None:
            with suppress(OSError):
                save(*args)

        cache.save_overload = save_if_possible
    return dispatcher
