"""Log posterior evaluations per second, with the reference prior and the linear trend."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

from benchmarks.peers import engines
from benchmarks.peers.cells import Cell
from benchmarks.peers.engines import octave
from benchmarks.peers.options import Options
from benchmarks.throughput import CASES, problem

LIMIT = 300.0
OCTAVE = "Octave, published code"
# Processor seconds that an engine works for, and how often; the best counts.
SHORTEST, TURNS = 0.3, 3
SIZES = {f"n = {n}, p = {p}": (n, p, m) for n, p, m, _ in CASES}


def cells(options: Options) -> list[Cell]:
    """Every engine at every size; the setting is the module, or the folder of Octave's code."""
    found = []
    for case in SIZES:
        for name in engines.NAMES:
            module = importlib.import_module(f"benchmarks.peers.engines.{name}")
            found += [Cell("pointwise", engine, case, name, 0) for engine in module.ENGINES]
        if options.octave is not None:
            found.append(Cell("pointwise", OCTAVE, case, str(options.octave), 0))
    return found


def measure(cell: Cell) -> dict[str, Any]:
    """Rate of one engine."""
    X, H, y, phi, delta = problem(*SIZES[cell.case])
    if cell.method == OCTAVE:
        return {"rate": octave.rate(Path(cell.setting), X, y, phi, delta)}
    module = importlib.import_module(f"benchmarks.peers.engines.{cell.setting}")
    work = module.ENGINES[cell.method](X, H, y, phi, delta)
    work()
    best = 0.0
    for _ in range(TURNS):
        start, done = time.process_time(), 0
        while time.process_time() - start < SHORTEST:
            done += work()
        best = max(best, done / (time.process_time() - start))
    return {"rate": best}
