"""SIGTERM as an interruption, so that a run that is told to end leaves what it has."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """Raised in the main thread where SIGTERM arrived."""


@contextmanager
def terminable() -> Iterator[None]:
    """Turn SIGTERM into :class:`Terminated`, in the main thread and unless the program handles it.

    What the signal did before is restored.
    """

    def handler(number: int, frame: FrameType | None) -> None:
        raise Terminated

    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
