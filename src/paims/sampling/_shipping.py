"""Worker processes: how the density gets there, and what a worker does from its first task on."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from time import sleep
from typing import Any, TypeVar

from paims._arrays import Array

_MAX_KEPT = 4  # densities that a worker process keeps
_LOOK = 1.0  # seconds between two looks at whether the parent is still there

_CAN_HOLD = hasattr(signal, "pthread_sigmask")  # not on Windows

T = TypeVar("T")

_received: dict[str, Callable[[Array], Any]] = {}  # in a worker process: it has to outlive a task


class Shipment:
    """A density, or another function, ready to be sent to other processes: once, not each time.

    A worker keeps the function that it was sent under the name of its content. A task carries the
    name only; a worker that does not know it says so and is sent the rest.

    Parameters
    ----------
    function : callable

    Attributes
    ----------
    name : str
    content : bytes
    """

    def __init__(self, function: Callable[[Array], Any]) -> None:
        self.function = function
        try:
            self.content = pickled(function)
        except Exception as error:  # what cannot be pickled raises this and that
            raise TypeError(
                "log_density, or what a fit of an emulator was given, cannot be sent to other "
                f"processes ({error}). Define it at the top of a module, without open files, "
                "locks or generators in it; or use threads."
            ) from error
        self.name = hashlib.sha256(self.content).hexdigest()


def pickled(thing: object) -> bytes:
    """Pickle for another process; functions that have no name in a module go by value."""
    try:
        return pickle.dumps(thing)
    except Exception:  # what cannot be pickled raises this and that
        import cloudpickle  # noqa: PLC0415 - seldom needed

        content: bytes = cloudpickle.dumps(thing)
        return content


def evaluate_shipped(name: str, content: bytes | None, piece: Array) -> Any:
    """Call the function in a worker; None if it has to be sent first."""
    function = _received.get(name)
    if function is None:
        if content is None:
            return None
        while len(_received) >= _MAX_KEPT:
            _received.pop(next(iter(_received)))
        function = _received[name] = pickle.loads(content)
    with _deaf_to_the_keyboard():
        return function(piece)


@contextmanager
def _deaf_to_the_keyboard() -> Iterator[None]:
    """Ignore Ctrl-C while a piece is evaluated, if this is a process made for such work.

    A terminal sends it to all processes; the one that started the run ends it in order.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or multiprocessing.parent_process() is None:
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def tied_to_this_process(executor: Executor) -> Executor:
    """Make the workers of a new process pool leave Ctrl-C to this process and end with it.

    Other executors are left as they are.
    """
    if isinstance(executor, ProcessPoolExecutor) and hasattr(executor, "_initializer"):
        # Python has no other place for it: the pool is the user's to make.
        then = executor._initializer
        executor._initializer = partial(begin_worker, then)
    return executor


@contextmanager
def keyboard_held() -> Iterator[None]:
    """Hold Ctrl-C back while processes are started, which inherit that.

    None comes between the start of a worker and its being deaf to it.
    """
    if not _CAN_HOLD:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker(then: Callable[..., Any] | None, *arguments: Any) -> None:
    """Begin the life of a worker; ``then`` is what its pool was told to begin with."""
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if _CAN_HOLD:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_the_parent, args=(os.getppid(),), daemon=True).start()
    if then is not None:
        then(*arguments)


def _end_with_the_parent(started_by: int) -> None:
    """End this process when the one that started it was killed: nobody else would."""
    parent = multiprocessing.parent_process()
    while os.getppid() == started_by and (parent is None or parent.is_alive()):
        sleep(_LOOK)
    os._exit(1)
