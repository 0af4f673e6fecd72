"""Keep BLAS to one thread while threads of our own run it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]


@cache
def _controller() -> ThreadpoolController:
    # Looks through all libraries of the process: milliseconds, so once.
    return ThreadpoolController()


class _Limit:
    """A limit that is set by the first who enters and lifted by the last who leaves.

    BLAS knows one number of threads for the whole process. If every caller set and restored it,
    two whose stays overlap would leave the limit on for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._stack = ExitStack()

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._stack.enter_context(_controller().limit(limits=1, user_api="blas"))
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._stack.close()


_LIMIT = _Limit()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread inside the block, for any number of threads at once."""
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
