"""Samplers on the same densities: evaluations, seconds and errors against the truth."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np

from benchmarks.peers import sampling
from benchmarks.peers.cells import Cell
from benchmarks.peers.clock import Clock
from benchmarks.peers.options import Options
from benchmarks.peers.problems import PROBLEMS, problem

LIMIT = 300.0


@cache
def warm_up(method: str, case: str, setting: str) -> None:
    """Do what is done once in a process and not measured: compilation."""
    module = adapter(method)
    if hasattr(module, "warm_up"):
        module.warm_up(problem(case), setting)


def adapter(name: str) -> Any:
    """Module of a sampler; needs the sampler to be installed."""
    return importlib.import_module(f"benchmarks.peers.sampling.{name}")


def cells(options: Options) -> list[Cell]:
    """Every sampler on every problem, from cheap settings to dear ones."""
    return [
        Cell("samplers", name, case, setting, seed)
        for case in PROBLEMS
        for name in sampling.NAMES
        for setting in adapter(name).SETTINGS
        for seed in range(options.seeds)
    ]


def measure(cell: Cell) -> dict[str, Any]:
    """Run one sampler once."""
    module, target = adapter(cell.method), problem(cell.case)
    warm_up(cell.method, cell.case, cell.setting)
    target.reset()
    with Clock() as clock:
        found = module.run(target, cell.setting, cell.seed)
    errors = target.errors(found)
    return {
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "density_seconds": target.density_seconds,
        "n_evaluations": target.n_evaluations,
        "rms": float(np.sqrt(np.mean(errors**2))),
        "errors": errors.round(6).tolist(),
        "log_evidence_error": _or_none(found.log_evidence - target.log_evidence),
        "effective_size": float(1.0 / np.sum(found.weights**2)),
    }


def _or_none(value: float) -> float | None:
    """NaN is not JSON."""
    return float(value) if np.isfinite(value) else None
