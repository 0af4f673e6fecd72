"""Evaluate the density in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from paims._arrays import Array
from paims.sampling._calls import Answer, Call, DensityError, listed
from paims.sampling._journal import Entry

_FIRST = 32  # points by which the cost of a point is measured


class InThisProcess:
    """Calls the density here, in pieces that take no longer than it takes to want them saved.

    Parameters
    ----------
    every : float, optional
        Seconds that a piece may take; None for one call for each batch.
    timeout : float, optional
        Seconds after which a batch is given up.
    """

    def __init__(self, every: float | None = None, timeout: float | None = None) -> None:
        self._every, self._timeout = every, timeout
        self._seconds, self._points = 0.0, 0

    def fill(self, call: Call, theta: Array, entry: Entry, tick: Callable[[], None]) -> None:
        """Evaluate what is missing in an entry."""
        end = None if self._timeout is None else monotonic() + self._timeout
        while (missing := entry.missing).size:
            rows = missing[: self._size(len(missing))]
            answer = call(theta[rows]) if end is None else self._timed(call, theta[rows], end)
            entry.put(rows, answer)
            self._seconds += answer.seconds
            self._points += len(rows)
            tick()

    def _size(self, n_missing: int) -> int:
        if self._every is None:
            return n_missing
        if self._points < _FIRST:
            return min(_FIRST, n_missing)
        cost = max(self._seconds / self._points, 1e-12)
        return max(1, int(min(self._every / cost, n_missing)))

    def _timed(self, call: Call, theta: Array, end: float) -> Answer:
        """Call in a thread of its own, which is left behind if it does not return."""
        outcome: list[Answer | BaseException] = []

        def work() -> None:
            try:
                outcome.append(call(theta))
            except BaseException as error:
                outcome.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(max(0.0, end - monotonic()))
        if not outcome:
            raise hung(theta, self._timeout)
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]


def hung(points: Array, timeout: float | None) -> DensityError:
    """Build the error of a batch that did not come back in time."""
    return DensityError.at(
        points,
        f"log_density did not return within batch_timeout={timeout:g} seconds for "
        f"{len(points)} point(s): {listed(points)}. Call it there by hand to see why; return "
        "-inf where it cannot be evaluated, or raise batch_timeout.",
    )
