"""Run compiled, GIL-free work over fixed chunks of a batch.

The chunks depend on the batch alone and each worker writes to its own slice, so the result is
the same to the bit for any number of threads. A plain thread pool, not Numba's parallel regions:
those abort the process when two Python threads enter one at once.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


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
    work: Callable[[int, int], None], size: int, chunk: int, n_jobs: int | None = None
) -> None:
    """Call ``work(start, stop)`` for every chunk of ``range(size)``.

    Parameters
    ----------
    work : callable
        Compiled code that releases the GIL and writes to ``[start, stop)`` of its output only.
    size : int
        Length of the batch.
    chunk : int
        Length of a chunk (the last may be shorter). Must not depend on the number of threads.
    n_jobs : int, optional
        Number of threads; None or -1 for every available core.
    """
    bounds = deque((start, min(start + chunk, size)) for start in range(0, size, chunk))
    n_extra = min(n_threads(n_jobs), len(bounds)) - 1

    def worker() -> None:
        while bounds:
            try:
                start, stop = bounds.popleft()
            except IndexError:  # another thread took the last one
                return
            work(start, stop)

    if n_extra <= 0:
        worker()
        return
    with ThreadPoolExecutor(n_extra) as pool:
        others = [pool.submit(worker) for _ in range(n_extra)]
        worker()
        for other in others:
            other.result()
