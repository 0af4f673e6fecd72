"""Runs cells one after the other in a worker process, each with a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from benchmarks.peers.cells import Cell, Record, Store

# Everybody computes with one thread, so that seconds compare.
ONE_THREAD = {
    **dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    ),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    # Else gpmp would change its engine where PyTorch happens to be installed.
    "GPMP_BACKEND": "numpy",
}
# A method that ran out of time this often at a setting is not tried there again.
MOST_TIMEOUTS = 2


class Worker:
    """A worker process; ended and started anew when a cell runs out of time.

    ``environment`` are variables that are set for it.
    """

    def __init__(
        self, command: list[str] | None = None, environment: dict[str, str] | None = None
    ) -> None:
        self._command = command or [sys.executable, "-m", "benchmarks.peers.worker"]
        self._environment = ONE_THREAD if environment is None else environment
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()
        self._pump: threading.Thread | None = None

    def run(self, cell: Cell, limit: float) -> Record:
        """Measure a cell; status "timeout" if there is no result after ``limit`` seconds."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(cell)) + "\n")
        self._process.stdin.flush()
        try:
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            self.close()
            return {"status": "timeout", "error": f"no result after {limit:.0f} s"}
        if not line:
            code = self._process.wait()
            self.close()
            return {"status": "failed", "error": f"the process ended with code {code}"}
        found: Record = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            # The pump ends with the process.
            self._process.wait()
            if self._pump is not None:
                self._pump.join()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            self._process = None

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **self._environment},
        )
        self._lines = queue.Queue()
        self._pump = threading.Thread(target=_pump, args=(self._process, self._lines), daemon=True)
        self._pump.start()


def _pump(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    """Pass on what the process writes; an empty line says that it has ended."""
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")


def run(
    cells: Iterable[Cell],
    store: Store,
    limit: float,
    *,
    retry: bool = False,
    again: bool = False,
    worker: Any = None,
) -> None:
    """Measure the cells that the store does not have, or with ``again`` all, in the given order.

    A new process is started for each method and case, so that no peer inherits the memory, the
    caches or the settings of another.
    """
    done = set() if again else store.done(retry)
    timeouts: dict[tuple[str, ...], int] = {}
    for record in store:
        if record["status"] == "timeout":
            _count(timeouts, record)
    worker = worker or Worker()
    before: tuple[str, ...] | None = None
    for cell in cells:
        if cell in done:
            continue
        place = (cell.experiment, cell.method, cell.case)
        if not (retry or again) and timeouts.get((*place, cell.setting), 0) >= MOST_TIMEOUTS:
            continue
        if place != before:
            worker.close()
            before = place
        found = worker.run(cell, limit)
        load = round(os.getloadavg()[0], 2)
        store.add(cell, **found, load=load)
        if found["status"] == "timeout":
            _count(timeouts, asdict(cell))
        _say(cell, found)
    worker.close()


def _count(timeouts: dict[tuple[str, ...], int], record: Record) -> None:
    key = tuple(str(record[name]) for name in ("experiment", "method", "case", "setting"))
    timeouts[key] = timeouts.get(key, 0) + 1


def _say(cell: Cell, found: Record) -> None:
    shown = {
        name: f"{value:.4g}" if isinstance(value, float) else value
        for name, value in found.items()
        if isinstance(value, (int, float, str))
    }
    print(f"{cell}: {shown}", flush=True)
