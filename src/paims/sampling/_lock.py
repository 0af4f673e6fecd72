"""One run for one checkpoint: two at once would replace each other's state without a word."""

from __future__ import annotations

import errno
import os
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from paims.sampling._checkpoint import CheckpointError
from paims.sampling._result import SamplingWarning

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: runs of one process are still kept apart
    fcntl = None

_HELD_BY_ANOTHER = (errno.EACCES, errno.EAGAIN)

# Files that runs of this process hold, with its number: a forked child has the table, and not the
# locks. The system does not keep two runs of one process apart.
_held: dict[str, int] = {}
_guard = threading.Lock()


@contextmanager
def only_run(path: Path) -> Iterator[None]:
    """Keep a checkpoint to one run, until the block ends or the process does.

    The lock is the system's, on a file beside the checkpoint; a killed process leaves the file,
    and no lock. It is not inherited by workers.

    Raises
    ------
    CheckpointError
        If another run has it.
    """
    name = os.path.realpath(path)
    with _guard:
        if _held.get(name) == os.getpid():
            raise _in_use(path, "another run of this process")
        _held[name] = os.getpid()
    try:
        beside = path.with_name(f".{path.name}.lock")
        handle = _locked(path, beside)
        try:
            yield
        finally:
            if handle is not None:
                with suppress(OSError):
                    beside.unlink()
                os.close(handle)  # and with it the lock
    finally:
        with _guard:
            _held.pop(name, None)


def _locked(path: Path, beside: Path) -> int | None:
    """Handle of the locked file; None if nothing can be locked there."""
    while fcntl is not None:
        try:
            handle = os.open(beside, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            if beside.exists():  # another user's
                _warn(path, error)
            return None  # Where no file can be made no checkpoint can be replaced either.
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(handle, 200).decode(errors="replace").strip()
            os.close(handle)
            if error.errno in _HELD_BY_ANOTHER:
                raise _in_use(path, owner or "another process") from None
            _warn(path, error)
            return None
        # Whoever held it before may have removed it in the meantime.
        if beside.exists() and os.path.samestat(os.fstat(handle), os.stat(beside)):
            os.ftruncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
            return handle
        os.close(handle)
    return None


def _in_use(path: Path, owner: str) -> CheckpointError:
    return CheckpointError(
        f"The checkpoint {str(path)!r} is in use by {owner}: two runs on one file would replace "
        "each other's state. Wait for that run, end it, or give another file."
    )


def _warn(path: Path, error: OSError) -> None:
    warnings.warn(
        f"The checkpoint {str(path)!r} cannot be locked ({error.strerror or error}). Make sure "
        "that no other run writes to it at the same time.",
        SamplingWarning,
        stacklevel=5,
    )
