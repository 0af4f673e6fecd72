"""Emulators on the same runs: errors, densities, coverage, time and failures."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.peers import emulation
from benchmarks.peers.cells import Cell
from benchmarks.peers.clock import Clock
from benchmarks.peers.designs import CASES, NILSON_KUUSK, Runs, runs
from benchmarks.peers.options import Options
from benchmarks.peers.scoring import score

LIMIT = 300.0


def adapter(name: str) -> Any:
    """Module of an emulator; needs its package to be installed."""
    return importlib.import_module(f"benchmarks.peers.emulation.{name}")


def names(options: Options) -> tuple[str, ...]:
    """Adapters that take part."""
    return emulation.NAMES + (emulation.OPTIONAL if options.with_botorch else ())


def cells(options: Options) -> list[Cell]:
    """Every emulator on every design; the setting is the adapter.

    Nilson-Kuusk has one design, on which ours and others that draw are run with a few seeds.
    """
    return [
        Cell("emulators", method, case, name, design)
        for case in CASES
        for name in names(options)
        for method in adapter(name).METHODS
        for design in range(min(options.designs, 3) if case == NILSON_KUUSK else options.designs)
    ]


def fit_and_score(module: Any, options: dict[str, Any], data: Runs, seed: int) -> dict[str, Any]:
    """Times of a fit and of predictions, and the scores of the predictions."""
    with Clock() as fitting:
        predict = module.fit(data.X, data.y, seed, **options)
    with Clock() as predicting:
        prediction = predict(data.X_test)
    return {
        **score(prediction, data.y_test, data.unit),
        "seconds": fitting.seconds,
        "cpu_seconds": fitting.cpu_seconds,
        "predict_seconds": predicting.cpu_seconds,
    }


def measure(cell: Cell) -> dict[str, Any]:
    """Fit one emulator to one design."""
    module = adapter(cell.setting)
    options = module.METHODS[cell.method]
    warm_up(cell.setting, options)
    return fit_and_score(module, options, runs(cell.case, cell.seed), cell.seed)


_warm: set[str] = set()


def warm_up(name: str, options: dict[str, Any]) -> None:
    """Fit ours once before it is measured: its compiled loops are loaded at the first use."""
    if name == "paims" and repr(options) not in _warm:
        _warm.add(repr(options))
        data = runs("branin", 0)
        adapter(name).fit(data.X, data.y, 0, **options)(data.X_test)
