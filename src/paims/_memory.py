"""Memory is said before it is spent: what there is, and an error where more would be needed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["available", "demand", "in_words"]

# What takes less than this is not worth asking the system for.
_LITTLE = 1e8
_UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6))
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def available() -> float:
    """Bytes that this process can still take; inf where the system does not say.

    A container's limit counts as well as the machine's.
    """
    return min(_of_machine(), _of_container())


def demand(n_bytes: float, what: str, advice: str) -> None:
    """Raise unless there is memory for what comes.

    Parameters
    ----------
    n_bytes : float
        About what it takes at its peak.
    what, advice : str
        Begin and end of the error's text.

    Raises
    ------
    MemoryError
    """
    if n_bytes < _LITTLE:
        return
    free = available()
    if n_bytes > free:
        raise MemoryError(
            f"{what} takes about {in_words(n_bytes)} of memory, and {in_words(free)} are free. "
            f"{advice}"
        )


def in_words(n_bytes: float) -> str:
    """A number of bytes, as 1.2 GB or 300 MB."""
    unit, size = next(((unit, size) for unit, size in _UNITS if n_bytes >= size), _UNITS[-1])
    value = n_bytes / size
    return f"{value:.0f} {unit}" if value >= 10.0 else f"{value:.2g} {unit}"


def _of_machine() -> float:
    with suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    with suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    return float("inf")


def _of_container() -> float:
    with suppress(OSError, ValueError):
        limit = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        used = (_CGROUP / "memory.current").read_text(encoding="ascii")
        if limit != "max":
            return max(float(limit) - float(used), 0.0)
    return float("inf")
