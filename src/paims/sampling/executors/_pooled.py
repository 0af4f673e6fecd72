"""Batches in pieces for workers, sized by what a point costs."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from math import ceil
from typing import Protocol

import numpy as np

from paims._arrays import Array
from paims.sampling._calls import Answer, Call
from paims.sampling._journal import Entry

_PIECES = 4  # for each worker, so that none waits long for the last
_SECONDS = 0.05  # that a piece should take at least, to be worth its way


class Pool(Protocol):
    """Workers of one kind."""

    @property
    def n_workers(self) -> int:
        """How many pieces can be evaluated at once."""

    def run(
        self, call: Call, pieces: list[Array], timeout: float | None
    ) -> Generator[tuple[int, Answer], None, None]:
        """Evaluate pieces, and give each with its number when it is there."""

    def close(self) -> None:
        """Let go of what was made for the run."""


class Pooled:
    """Evaluates batches by a pool of workers.

    Parameters
    ----------
    pool : Pool
    every : float, optional
        Seconds that a piece may take.
    timeout : float, optional
        Seconds after which a batch is given up.
    """

    def __init__(self, pool: Pool, every: float | None, timeout: float | None) -> None:
        self._pool, self._every, self._timeout = pool, every, timeout
        self._seconds, self._points = 0.0, 0

    def fill(self, call: Call, theta: Array, entry: Entry, tick: Callable[[], None]) -> None:
        """Evaluate what is missing in an entry."""
        rows = entry.missing
        parts = np.array_split(rows, ceil(len(rows) / self._size(len(rows))))
        pieces = [theta[part] for part in parts]
        with closing(self._pool.run(call, pieces, self._timeout)) as done:
            for i, answer in done:
                entry.put(parts[i], answer)
                self._seconds += answer.seconds
                self._points += len(parts[i])
                tick()

    def _size(self, n: int) -> int:
        """Points in a piece."""
        workers = max(1, self._pool.n_workers)
        size = ceil(n / (_PIECES * workers))
        if self._points:
            cost = max(self._seconds / self._points, 1e-9)
            size = min(max(size, ceil(_SECONDS / cost)), ceil(n / workers))
            if self._every is not None:
                size = min(size, max(1, int(self._every / cost)))
        return size
