"""Workers of a Dask cluster, by a ``distributed.Client``."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

from paims._arrays import Array
from paims.sampling._calls import Answer, Call, DensityError
from paims.sampling._inside import hung
from paims.sampling.executors._retries import killed

_ATTEMPTS = 3


class DaskPool:
    """Evaluates pieces on a cluster.

    The density goes to every worker once. The scheduler itself runs a task again elsewhere when
    its worker dies, and gives up one that has taken down as many as its setting
    ``distributed.scheduler.allowed-failures`` allows.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._call: Call | None = None
        self._held: Any = None

    @property
    def n_workers(self) -> int:
        """Threads of all workers, as of now."""
        return sum(self._client.nthreads().values())

    def run(
        self, call: Call, pieces: list[Array], timeout: float | None
    ) -> Generator[tuple[int, Answer], None, None]:
        """Evaluate pieces, and give each with its number when it is there."""
        import distributed  # noqa: PLC0415 - only for those who use it

        as_completed: Any = distributed.as_completed
        attempts = [0] * len(pieces)
        futures = {self._submit(call, piece): i for i, piece in enumerate(pieces)}
        done = as_completed(list(futures), timeout=timeout)
        try:
            for future in done:
                i = futures.pop(future)
                answer = _gathered(future)
                if answer is not None:
                    yield i, answer
                    continue
                attempts[i] += 1
                if future.status == "error" or attempts[i] == _ATTEMPTS:
                    raise _explained(future, pieces[i])
                # The workers that held the density are gone: send it again.
                self._call = None
                again = self._submit(call, pieces[i])
                futures[again] = i
                done.add(again)
        except TimeoutError:
            raise hung(np.concatenate([pieces[i] for i in futures.values()]), timeout) from None
        finally:
            if futures:
                self._client.cancel(list(futures))

    def close(self) -> None:
        """Let the cluster forget the density."""
        self._call, self._held = None, None

    def _submit(self, call: Call, piece: Array) -> Any:
        if self._call is not call:
            self._held = self._client.scatter(call, broadcast=True, hash=False)
            self._call = call
        return self._client.submit(_evaluate, self._held, piece, pure=False)


def _evaluate(call: Call, piece: Array) -> Answer:
    return call(piece)


def _gathered(future: Any) -> Answer | None:
    """What a task gave; None if there is nothing, or if it died with the worker that had it."""
    if future.status != "finished":
        return None
    try:
        answer: Answer = future.result()
    except CancelledError:
        return None
    return answer


def _explained(future: Any, points: Array) -> BaseException:
    if future.status != "error":
        return DensityError.at(
            points,
            f"The cluster lost a batch {_ATTEMPTS} times. See whether its workers and scheduler "
            "are running.",
        )
    error: BaseException = future.exception()
    if type(error).__name__ == "KilledWorker":
        return killed(points, "as many workers as the scheduler allows")
    return error
