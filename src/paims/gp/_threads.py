"""Keep BLAS to one thread while threads of our own run it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import (  # type: ignore[import-untyped, unused-ignore]
    LibController,
    ThreadpoolController,
)


@cache
def _blas_libraries() -> list[LibController]:
    # Looks through all libraries of the process: milliseconds, so once.
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _Limit:
    """A limit that is set by the first who enters and lifted by the last who leaves.

    BLAS knows one number of threads for the whole process. If every caller set and restored it,
    two whose stays overlap would leave the limit on for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: list[int] = []

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = [library.num_threads for library in _blas_libraries()]
                self._set([1] * len(self._before))
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._set(self._before)

    def _set(self, numbers: list[int]) -> None:
        def work() -> None:
            for library, number in zip(_blas_libraries(), numbers, strict=True):
                library.set_num_threads(number)

        if any(number > 1 for number in self._before):
            # threadpoolctl lets only the thread that set a limit change it, as long as that
            # thread lives; ours may be set and lifted by two. If a user's thread has set one,
            # this does nothing, and rightly so.
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()


_LIMIT = _Limit()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread inside the block, for any number of threads at once."""
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
