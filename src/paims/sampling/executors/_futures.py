"""Workers of any ``concurrent.futures.Executor``: threads, processes, MPI."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from time import monotonic
from typing import Any

import numpy as np

from paims._arrays import Array
from paims._parallel import n_threads
from paims.sampling._calls import Answer, Call, DensityError
from paims.sampling._inside import hung
from paims.sampling.executors._retries import with_retries
from paims.sampling.executors._shipping import Shipment, evaluate


class FuturesPool:
    """Evaluates pieces by an executor.

    Parameters
    ----------
    executor : Executor, optional
        The user's, who also shuts it down. It cannot be replaced when a worker dies.
    factory : callable, optional
        Makes an executor, again whenever a worker has died.
    """

    def __init__(
        self, executor: Executor | None, factory: Callable[[], Executor] | None = None
    ) -> None:
        self._factory = factory
        self._executor = executor if executor is not None else self._made()
        self._shipment: Shipment | None = None

    @property
    def n_workers(self) -> int:
        """Workers of the executor, or cores of this machine if it does not say."""
        return int(getattr(self._executor, "_max_workers", None) or n_threads(None))

    def run(
        self, call: Call, pieces: list[Array], timeout: float | None
    ) -> Generator[tuple[int, Answer], None, None]:
        """Evaluate pieces, and give each with its number when it is there."""
        end = None if timeout is None else monotonic() + timeout
        return with_retries(
            pieces, lambda group: self._once(call, pieces, group, timeout, end), self._renew
        )

    def close(self) -> None:
        """Shut down an executor that was made here."""
        if self._factory is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _once(
        self,
        call: Call,
        pieces: list[Array],
        group: list[int],
        timeout: float | None,
        end: float | None,
    ) -> Iterator[tuple[int, Answer]]:
        futures = {self._submit(call, pieces[i], False): i for i in group}
        try:
            while futures:
                left = None if end is None else max(0.0, end - monotonic())
                done, _ = wait(futures, timeout=left, return_when=FIRST_COMPLETED)
                if not done:
                    self._abandon()
                    raise hung(np.concatenate([pieces[i] for i in futures.values()]), timeout)
                # What is there first, then what was lost.
                for future in sorted(done, key=lambda one: one.exception() is not None):
                    answer = future.result()
                    i = futures.pop(future)
                    if answer is None:
                        futures[self._submit(call, pieces[i], True)] = i
                    else:
                        yield i, answer
        finally:
            for future in futures:
                future.cancel()

    def _submit(self, call: Call, piece: Array, whole: bool) -> Future[Any]:
        if isinstance(self._executor, ThreadPoolExecutor):
            return self._executor.submit(call, piece)
        if self._shipment is None or self._shipment.call is not call:
            self._shipment = Shipment(call)
        content = self._shipment.content if whole else None
        return self._executor.submit(evaluate, self._shipment.name, content, piece)

    def _made(self) -> Executor:
        assert self._factory is not None
        made = self._factory()
        if not isinstance(made, Executor):
            raise TypeError(
                "executor is a function: it must return a concurrent.futures.Executor; "
                f"it returned {made!r}."
            )
        return made

    def _renew(self) -> None:
        """Replace an executor that a dead worker has broken."""
        if self._factory is None:
            raise DensityError.at(
                np.empty((0, 0)),
                "A worker process died, and the executor that you passed cannot be used again. "
                "Pass a function that makes one, such as executor=lambda: ProcessPoolExecutor(4): "
                "its workers are replaced when they die.",
            ) from None
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = self._made()

    def _abandon(self) -> None:
        """End the processes of an executor that was made here, one of which hangs.

        Python waits for them when it ends, so nothing else would let it.
        """
        if self._factory is not None:
            for process in list((getattr(self._executor, "_processes", None) or {}).values()):
                process.kill()
