"""Ctrl-C and SIGTERM: noticed at once, taken only where nothing is lost by it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class Terminated(KeyboardInterrupt):
    """SIGTERM, as an interruption."""


class Interruptions:
    """Ctrl-C and SIGTERM of a run, from its beginning to its end.

    One that arrives while the user's density works in this process is raised there. Any other
    waits until the step that it falls into is done: neither a level, nor the writing of a file,
    nor what a pool of workers does inside is ever left half way.

    Signals that the program handles itself, and threads other than the main one, are left alone.
    What the signals did before is restored in the end.

    Attributes
    ----------
    arrived : KeyboardInterrupt or None
        The last one.
    """

    def __init__(self) -> None:
        self.arrived: KeyboardInterrupt | None = None
        self._allowed = False
        self._process = os.getpid()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruptions:
        if threading.current_thread() is threading.main_thread():
            defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
            for number, default in defaults.items():
                if signal.getsignal(number) is default:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            # A worker that was forked from this process has the handler too. Ctrl-C goes to all
            # processes of a terminal, and is for the one that can end the run in order.
            if number == signal.SIGTERM:
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)
            return
        self.arrived = KeyboardInterrupt() if number == signal.SIGINT else Terminated()
        if self._allowed:
            raise self.arrived

    def check(self) -> None:
        """Raise what has arrived."""
        if self.arrived is not None:
            raise self.arrived

    def let_into(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that interruptions may be raised in.

        One that the function has swallowed, as a bare ``except`` does, is raised after all: what
        it returned then is not to be trusted.
        """
        try:
            self._allowed = True
            self.check()
            answer = function(*arguments)
        finally:
            self._allowed = False
        self.check()
        return answer
