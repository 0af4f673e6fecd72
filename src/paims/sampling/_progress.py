"""One line on the terminal while a run goes on."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import Any

from paims.sampling._level import LevelInfo


class Progress:
    """Shows level, temperature, effective size, acceptance and speed; silent off a terminal."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr.isatty()
        self._status: Any = None
        self._start = monotonic()

    def __enter__(self) -> Progress:
        if self._wanted:
            from rich.console import Console  # noqa: PLC0415 - only when there is a terminal

            self._status = Console(stderr=True).status("level 0: drawing from the reference")
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def update(self, info: LevelInfo, n_evaluations: int) -> None:
        """Show the level that has just ended."""
        if self._status is None:
            return
        speed = n_evaluations / max(monotonic() - self._start, 1e-9)
        self._status.update(
            f"level {info.level}: beta {info.beta:.3g}, effective size {info.effective_size:.0f}, "
            f"accepted {info.local_acceptance * info.global_acceptance:.0%} globally and "
            f"{info.second_acceptance:.0%} in the second stage, {n_evaluations} evaluations, "
            f"{speed:.0f}/s"
        )
