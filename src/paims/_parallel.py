"""Threads: compiled, GIL-free work over fixed chunks of a batch, and BLAS kept to one meanwhile.

The chunks depend on the batch alone and each worker writes to its own slice, so the result is
the same to the bit for any number of threads. A plain thread pool, not Numba's parallel regions:
those abort the process when two Python threads enter one at once.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

from threadpoolctl import (  # type: ignore[import-untyped, unused-ignore]
    LibController,
    ThreadpoolController,
)

__all__ = ["for_chunks", "n_threads", "single_threaded_blas"]


def n_threads(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` asks for: None or -1 means every core this process may use."""
    if n_jobs is None or n_jobs == -1:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if not isinstance(n_jobs, int) or n_jobs < 1:
        raise ValueError(f"n_jobs must be a positive integer, -1 or None; got {n_jobs!r}.")
    return n_jobs


def for_chunks(
    work: Callable[[int, int], Iterable[None] | None],
    size: int,
    chunk: int,
    n_jobs: int | None = None,
) -> None:
    """Call ``work(start, stop)`` for every chunk of ``range(size)``.

    An error or an interruption, such as Ctrl-C, ends it after the step that each thread is in:
    a chunk, or what a generator does before it yields.

    Parameters
    ----------
    work : callable
        Compiled code that releases the GIL and writes to ``[start, stop)`` of its output only.
        It may be a generator, which yields where a long chunk can be left.
    size : int
        Length of the batch.
    chunk : int
        Length of a chunk (the last may be shorter). Must not depend on the number of threads.
    n_jobs : int, optional
        Number of threads; None or -1 for every available core.
    """
    bounds = deque((start, min(start + chunk, size)) for start in range(0, size, chunk))
    n_extra = min(n_threads(n_jobs), len(bounds)) - 1
    ended = threading.Event()

    def worker() -> None:
        while not ended.is_set():
            try:
                start, stop = bounds.popleft()
            except IndexError:
                return
            try:
                for _ in work(start, stop) or ():
                    if ended.is_set():
                        return
            except BaseException:
                ended.set()
                raise

    if n_extra <= 0:
        worker()
        return
    with ThreadPoolExecutor(n_extra) as pool:
        try:
            others = [pool.submit(worker) for _ in range(n_extra)]
            worker()
            for other in others:
                other.result()
        except BaseException:  # an interruption comes to the main thread, wherever that is
            ended.set()
            raise


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
        self._inside: set[object] = set()
        self._before: list[int] = []

    def enter(self, who: object) -> None:
        with self._lock:
            if not self._before:
                self._before = [library.num_threads for library in _blas_libraries()]
                self._set([1] * len(self._before))
            self._inside.add(who)

    def leave(self, who: object) -> None:
        """Leave, even if an interruption has kept one from entering."""
        with self._lock:
            self._inside.discard(who)
            if not self._inside and self._before:
                self._set(self._before)
                self._before = []

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
    who = object()
    try:
        _LIMIT.enter(who)
        yield
    finally:
        _LIMIT.leave(who)
