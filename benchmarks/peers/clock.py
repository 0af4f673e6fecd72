"""Time of a piece of work: what the clock says, and what the processor did."""

from __future__ import annotations

import time
from types import TracebackType


class Clock:
    """Context that measures ``seconds`` (wall) and ``cpu_seconds`` (of this process).

    On a machine that others use too, processor seconds are what compares.
    """

    seconds = float("nan")
    cpu_seconds = float("nan")

    def __enter__(self) -> Clock:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.seconds = time.perf_counter() - self._start[0]
        self.cpu_seconds = time.process_time() - self._start[1]
