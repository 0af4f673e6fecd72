"""A Dask cluster: how many workers it has, and how long a run waits when it has none."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

import numpy as np

from paims.sampling._density import DensityError

_PATIENCE = 60.0  # seconds without any worker after which a run ends
_ASK = 2.0  # seconds between two questions
_ANSWER = 5.0  # seconds that a scheduler may take to answer one
_TELL = 10.0  # seconds between two lines on the screen


class Cluster:
    """Workers behind the client of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._asked = monotonic()

    def executor(self) -> Executor:
        """Return the client in the form of an executor."""
        made: Executor = self._client.get_executor(pure=False)
        return made

    def n_workers(self) -> int:
        """Threads of all workers; 0 if the scheduler does not answer."""
        answer: list[int] = []

        def ask() -> None:
            with suppress(Exception):
                answer.append(sum(self._client.nthreads().values()))

        if self._client.status == "running":
            thread = threading.Thread(target=ask, daemon=True)
            thread.start()
            thread.join(_ANSWER)
        return answer[0] if answer else 0

    def look(self, check: Callable[[], None]) -> None:
        """See now and then whether there are workers, and wait for some if there are none."""
        if monotonic() - self._asked >= _ASK:
            self.wait_for_workers(check)

    def wait_for_workers(self, check: Callable[[], None]) -> None:
        """Wait until there are workers, with a line on the screen.

        Parameters
        ----------
        check : callable
            Raises if there is a reason not to wait.

        Raises
        ------
        DensityError
            If there are none for a minute.
        """
        since, told = monotonic(), -np.inf
        while not self.n_workers():
            check()
            gone = monotonic() - since
            if gone >= _PATIENCE:
                raise DensityError.at(
                    np.empty((0, 0)),
                    f"The Dask cluster has had no workers, or no scheduler that answers, for "
                    f"{_PATIENCE:g} seconds (the client is {self._client.status!r}). Start "
                    "workers, or a new cluster and a client of it.",
                ) from None
            if gone - told >= _TELL:
                told = gone
                print(
                    "paims: the Dask cluster has no workers, or does not answer; waiting "
                    f"{_PATIENCE - gone:.0f} s more for some before the run ends.",
                    file=sys.stderr,
                    flush=True,
                )
            sleep(min(0.5, _PATIENCE))
        self._asked = monotonic()
