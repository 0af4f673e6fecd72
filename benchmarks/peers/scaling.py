"""How time grows: emulators with the runs and the inputs, our sampler with N and dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests import targets

from benchmarks.peers import designs, emulators, samplers
from benchmarks.peers.cells import Cell
from benchmarks.peers.clock import Clock
from benchmarks.peers.options import Options
from benchmarks.peers.problems import with_truth

LIMIT = 300.0
# What is varied, and the sizes; the other is fixed.
RUNS = (30, 60, 120, 240, 480)
INPUTS = (2, 4, 8, 16)
FIXED_RUNS, FIXED_INPUTS = 60, 8
DIMENSIONS = (2, 5, 10, 20)
EMULATION = {"runs (p = 8)": RUNS, "inputs (n = 60)": INPUTS}
DIMENSION = "dimension, two Gaussians"
SAMPLERS = ("paims", "emcee", "dynesty", "nautilus")


def cells(options: Options) -> list[Cell]:
    """Sizes grow within each method: where it runs out of time, it stops being usable.

    Of each package the first method only, unless it says which: the others grow alike.
    """
    found = [
        Cell("scaling", method, f"{case}: {name}", str(size), 0)
        for case, sizes in EMULATION.items()
        for name in emulators.names(options)
        for method in _growing(name)
        for size in sizes
    ]
    return found + [
        Cell("scaling", name, DIMENSION, str(d), 0) for name in SAMPLERS for d in DIMENSIONS
    ]


def _growing(name: str) -> tuple[str, ...]:
    adapter = emulators.adapter(name)
    return getattr(adapter, "GROWING", tuple(adapter.METHODS)[:1])


def ridge(n: int, p: int) -> designs.Runs:
    """Runs of a smooth function of p inputs, of which each matters less than the one before."""
    rng = np.random.default_rng([n, p])
    X, X_test = rng.random((n, p)), rng.random((designs.N_TEST, p))
    weight = 0.5 ** np.arange(p)

    def f(x: designs.Floats) -> designs.Floats:
        return np.sin(3.0 * x @ weight) + np.sum(weight * x**2, axis=1)

    return designs.scaled(X, f(X), X_test, f(X_test))


def measure(cell: Cell) -> dict[str, Any]:
    """Time of one fit, or of one run of a sampler, with its rms error."""
    if cell.case == DIMENSION:
        return _sample(cell)
    what, name = cell.case.split(": ")
    size = int(cell.setting)
    data = ridge(size, FIXED_INPUTS) if EMULATION[what] is RUNS else ridge(FIXED_RUNS, size)
    module = emulators.adapter(name)
    options = module.METHODS[cell.method]
    emulators.warm_up(name, options)
    found = emulators.fit_and_score(module, options, data, cell.seed)
    return {**found, "rms": found["rmse"]}


def _sample(cell: Cell) -> dict[str, Any]:
    """Cheapest setting of a sampler; ours with its default number of points."""
    module, target = (
        samplers.adapter(cell.method),
        with_truth(targets.two_gaussians(int(cell.setting))),
    )
    target.density_fn(target.reference.sample(64, np.random.default_rng(0)))
    setting = next(iter(module.SETTINGS))
    if cell.method == "paims":
        setting = "N = 2000" if target.d < 20 else "N = 8000"
    with Clock() as clock:
        found = module.run(target, setting, cell.seed)
    errors = target.errors(found)
    return {
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "n_evaluations": target.n_evaluations,
        "rms": float(np.sqrt(np.mean(errors**2))),
    }
