"""Speed-up by two workers, and what a worker that dies changes: nothing.

    python -m benchmarks.workers [--milliseconds 5] [--samples 400] [--busy]

A density that takes 5 ms for each point is sampled in this process, by two processes of a
ProcessPoolExecutor and by a Dask LocalCluster with two worker processes. The workers are started
before the clock is. Then each run is done again, and one of its workers is killed in the middle of
a level. Draws have to be the same to the bit, always. A point waits, as for a program on another
machine; with --busy it computes, which needs two idle cores.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

import paims


@dataclass(frozen=True)
class Slow:
    """Two modes, with a price for each point."""

    seconds: float
    busy: bool

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Log densities ``(m,)``."""
        if self.busy:
            for _ in x:
                end = time.thread_time() + self.seconds
                while time.thread_time() < end:
                    pass
        else:
            time.sleep(self.seconds * len(x))
        left = -0.5 * np.sum((x + 0.5) ** 2, axis=1) / 0.02
        right = -0.5 * np.sum((x - 0.5) ** 2, axis=1) / 0.01
        return np.logaddexp(left + np.log(0.3), right + np.log(0.7))


def timed(density: Slow, n_samples: int, executor: Any) -> tuple[float, bytes, int]:
    """Seconds, draws and number of evaluations of a run."""
    box = paims.Uniform([-2.0, -2.0], [2.0, 2.0])
    start = time.monotonic()
    result = paims.sample(
        density, box, n_samples, random_state=0, progress=False, executor=executor
    )
    seconds = time.monotonic() - start
    return seconds, result.draws.tobytes() + result.weights.tobytes(), result.n_evaluations


def killing(workers: Callable[[], list[int]], after: float) -> threading.Timer:
    """Kill one of the workers after a while."""
    timer = threading.Timer(after, lambda: os.kill(workers()[0], signal.SIGKILL))
    timer.start()
    return timer


def main() -> None:
    """Print the table."""
    import distributed  # noqa: PLC0415 - an extra

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--milliseconds", type=float, default=5.0)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--busy", action="store_true")
    arguments = parser.parse_args()
    density = Slow(arguments.milliseconds / 1e3, arguments.busy)
    run = partial(timed, density, arguments.samples)
    timed(Slow(0.0, False), arguments.samples, None)  # compile
    alone, draws, n_evaluations = run(None)
    print(f"{n_evaluations} evaluations of {arguments.milliseconds:g} ms"
          f"{' of computing' if arguments.busy else ''}; one process: {alone:.2f} s")  # fmt: skip
    wrong = 0

    def row(name: str, seconds: float, found: bytes) -> None:
        nonlocal wrong
        wrong += found != draws
        same = "same draws" if found == draws else "OTHER DRAWS"
        print(f"{name:42} {seconds:7.2f} s   speed-up {alone / seconds:.2f}   {same}")

    pools: list[ProcessPoolExecutor] = []

    def make() -> ProcessPoolExecutor:
        pools.append(ProcessPoolExecutor(2, mp_context=get_context("spawn")))
        return pools[-1]

    with make() as pool:
        list(pool.map(time.sleep, [0.5, 0.5]))
        timed(Slow(0.0, False), arguments.samples, pool)
        row("ProcessPoolExecutor(2)", *run(pool)[:2])
    timer = killing(lambda: list(pools[-1]._processes), 0.6 * alone)
    row("ProcessPoolExecutor(2), a worker killed", *run(make)[:2])
    timer.join()

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        timed(Slow(0.0, False), arguments.samples, client)
        row("Dask LocalCluster, 2 processes", *run(client)[:2])
        timer = killing(lambda: list(client.run(os.getpid).values()), 0.3 * alone)
        row("Dask LocalCluster, a worker killed", *run(client)[:2])
        timer.join()
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
