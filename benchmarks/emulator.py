"""How long does an emulator take? `python -m benchmarks.emulator [--repeats 3]`.

Time of `Emulator().fit` on the authors' Branin runs (n = 18, p = 2) and the Nilson-Kuusk runs
(n = 100, p = 5), split into the posterior density (evaluations), the sampler's own work and the
rest (modes, compression, summaries), and of predicting 1,000 points. Fits with the shortest time
of several count. Needs the authors' data (see `paims.datasets`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

import paims
from paims import datasets, inference
from paims.emulator import _execution as execution

DATA: dict[str, Callable[[], Any]] = {
    "Branin": datasets.load_branin,
    "Nilson-Kuusk": datasets.load_nilson_kuusk,
}


class Watch:
    """Adds up the time of the calls of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.seconds = 0.0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call it."""
        start = time.perf_counter()
        try:
            return self.function(*arguments, **options)
        finally:
            self.seconds += time.perf_counter() - start


def fit(X: Any, y: Any, seed: int) -> tuple[dict[str, float], paims.Emulator]:
    """Seconds of one fit by part, and the emulator."""
    density = Watch(inference.HyperparameterDensity.__call__)
    sampling = Watch(execution.sample_posterior)
    whole = Watch(paims.Emulator(random_state=seed).fit)
    with (
        # A function becomes a method; an object of Watch would not.
        patch.object(inference.HyperparameterDensity, "__call__", lambda *a: density(*a)),  # noqa: PLW0108
        patch.object(execution, "sample_posterior", sampling),
    ):
        emulator = whole(X, y)
        inside = density.seconds
    # The search for the best point evaluates the density too, after the sampler.
    return {
        "fit": whole.seconds,
        "posterior": inside,
        "sampling": sampling.seconds,
    }, emulator


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    print("runs           n  p   evaluations     fit  posterior  sampler     rest  predict 1,000")
    for name, load in DATA.items():
        data = load()
        X, y = np.asarray(data.X, dtype=float), np.asarray(data.y, dtype=float)
        fit(X, y, 0)  # compiles
        timed = [fit(X, y, 0) for _ in range(repeats)]
        seconds, emulator = min(timed, key=lambda pair: pair[0]["fit"])
        T = np.random.default_rng(0).uniform(X.min(0), X.max(0), (1000, X.shape[1]))
        predicting = []
        for _ in range(max(repeats, 5)):
            watch = Watch(emulator.predict)
            watch(T, return_std=True)
            predicting.append(watch.seconds)
        total = seconds["fit"]
        sampler = max(seconds["sampling"] - seconds["posterior"], 0.0)
        rest = total - sampler - seconds["posterior"]
        print(
            f"{name:13} {len(X):3} {X.shape[1]:2} {emulator.result_.n_evaluations:13} "
            f"{total:6.2f}s {seconds['posterior'] / total:10.0%} {sampler / total:8.0%} "
            f"{rest / total:8.0%} {min(predicting):13.3f}s",
            flush=True,
        )


if __name__ == "__main__":
    main()
