"""Several outputs: `python -m benchmarks.outputs simulated | real | times`.

`simulated` draws runs from the model itself, with outputs of a given correlation, and counts how
many held-out outputs, and sums of all outputs, lie in their 95 % intervals; the control treats the
outputs as independent, and has to fail for sums. `real` does the same with the data sets of
:mod:`benchmarks.wheel`, 80 % of the runs for training, outputs scaled by their standard deviation
in the training runs: RMSE, CRPS and coverage. `times` measures one output and all of them.

Nothing here was tuned on: the split of `--split 0` is for looking, the others are for showing.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import paims
from benchmarks import wheel
from paims.sampling import default_scheme

Floats = NDArray[np.float64]
WAYS = ("separate", "shared", "components")
_QUICK = replace(default_scheme(), max_rounds=0)


def simulated(ways: list[str], repetitions: int, samples: int) -> Iterator[str]:
    """Coverage on runs that are drawn from the model."""
    yield "| way | outputs | correlation | single | sum | sum, control | effective outputs |"
    yield "|---|---|---|---|---|---|---|"
    for way in ways:
        for m, correlation in ((4, 0.0), (4, 0.8), (12, 0.9)):
            rows, effective = [], []
            for seed in range(repetitions):
                X, Y = _drawn(m, correlation, seed, alike=way != "separate")
                emulator = paims.Emulator(
                    kernel="squared_exponential", outputs=way, random_state=seed,
                    n_samples=samples, prior="jointly_robust", scheme=_QUICK,
                ).fit(X[:25], Y[:25])  # fmt: skip
                rows.append(_coverage(emulator, X[25:], Y[25:], np.ones(m)))
                if way == "shared":
                    effective.append(emulator._several.shared.posterior.effective)
            mean = np.mean(rows, axis=0)
            error = np.std(rows, axis=0) / np.sqrt(repetitions)
            told = " | ".join(f"{a:.3f} ± {b:.3f}" for a, b in zip(mean, error, strict=True))
            count = f"{np.mean(effective):.1f}" if effective else ""
            yield f"| {way} | {m} | {correlation} | {told} | {count} |"


def _drawn(m: int, correlation: float, seed: int, *, alike: bool) -> tuple[Floats, Floats]:
    """Runs ``(45, 2)`` and correlated outputs ``(45, m)`` with linear trends."""
    rng = np.random.default_rng(seed)
    X = rng.random((45, 2))
    lengths = rng.uniform(0.3, 1.5, (1 if alike else m, 2))
    mixing = np.linalg.cholesky((1.0 - correlation) * np.eye(m) + correlation)
    G = rng.standard_normal((45, m)) @ mixing.T
    Y = np.empty((45, m))
    for j in range(m):
        D = (((X[:, None] - X) / lengths[j % len(lengths)]) ** 2).sum(axis=-1)
        Y[:, j] = np.linalg.cholesky(np.exp(-D / 2.0) + 1e-3 * np.eye(45)) @ G[:, j]
    return X, Y + X @ rng.standard_normal((2, m))


def _coverage(emulator: Any, X: Floats, Y: Floats, weights: Floats) -> list[float]:
    """Shares of 95 % intervals that hold: of outputs, of a sum, of the sum's control."""
    joint = emulator.predict_distribution(X)
    lower, upper = joint.interval()
    combined, truth = joint.combine(weights), Y @ weights
    low, high = combined.interval()
    narrow = 1.96 * np.sqrt((joint.std**2) @ weights**2)
    return [
        float(np.mean((lower <= Y) & (upper >= Y))),
        float(np.mean((low <= truth) & (truth <= high))),
        float(np.mean(np.abs(truth - combined.mean) <= narrow)),
    ]


def _split(name: str, split: int) -> tuple[Floats, Floats, Floats, Floats]:
    data = wheel.load(name)
    order = np.random.default_rng(split).permutation(len(data.X))
    train, test = np.split(order, [round(0.8 * len(order))])
    scale = data.Y[train].std(axis=0)
    Y = data.Y / np.where(scale > 0.0, scale, 1.0)
    return data.X[train], Y[train], data.X[test], Y[test]


def _crps(joint: Any, Y: Floats) -> float:
    """Mean CRPS, from the quantiles 1/40, 3/40, ..., 39/40 (twice the mean pinball loss)."""
    levels = np.arange(0.0125, 1.0, 0.025)
    loss = 0.0
    for q, at in zip(levels, joint.quantile(levels), strict=True):
        loss += float(np.mean(np.maximum(q * (Y - at), (q - 1.0) * (Y - at))))
    return 2.0 * loss / len(levels)


def real(
    names: list[str], ways: list[str], split: int, samples: int | None, runs: int | None
) -> Iterator[str]:
    """Scores on the data sets."""
    yield "| set | way | runs | outputs | s | RMSE | CRPS | single | sum | sum, control |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name in names:
        X, Y, X_test, Y_test = _split(name, split)
        X, Y = X[:runs], Y[:runs]
        for way in ways:
            start = perf_counter()
            emulator = _emulator(way, samples).fit(X, Y)
            seconds = perf_counter() - start
            joint = emulator.predict_distribution(X_test)
            rmse = float(np.sqrt(np.mean((joint.mean - Y_test) ** 2)))
            told = f"{rmse:.4f} | {_crps(joint, Y_test):.4f} | "
            told += " | ".join(
                f"{v:.3f}" for v in _coverage(emulator, X_test, Y_test, np.ones(Y.shape[1]))
            )
            which = way if way != "auto" else f"auto ({emulator.way_})"
            yield f"| {name} | {which} | {len(X)} | {Y.shape[1]} | {seconds:.1f} | {told} |"


def times(name: str, ways: list[str], samples: int | None, runs: int | None) -> Iterator[str]:
    """Seconds of one output and of all."""
    X, Y, *_ = _split(name, 0)
    X, Y = X[:runs], Y[:runs]
    _emulator("auto", 100).fit(X[:, :2], Y[:, 0])  # what is compiled once
    start = perf_counter()
    _emulator("auto", samples).fit(X, Y[:, 0])
    one = perf_counter() - start
    yield f"{name}, {len(X)} runs, one output: {one:.1f} s"
    for way in ways:
        start = perf_counter()
        _emulator(way, samples).fit(X, Y)
        every = perf_counter() - start
        yield f"{way}, {Y.shape[1]} outputs: {every:.1f} s, {every / one:.1f} times one"


def _emulator(way: str, samples: int | None) -> Any:
    return paims.Emulator(
        outputs=way, random_state=0, n_samples=samples, prior="jointly_robust",
        kernel="squared_exponential",
    )  # fmt: skip


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outputs", description=__doc__)
    parser.add_argument("what", choices=["simulated", "real", "times"])
    parser.add_argument("--set", nargs="+", default=["cardiac6"], choices=list(wheel.SHAPES))
    parser.add_argument("--way", nargs="+", default=list(WAYS), choices=["auto", *WAYS])
    parser.add_argument("--split", type=int, default=1)
    parser.add_argument("--samples", type=int, help="points of the sampler at each level")
    parser.add_argument("--runs", type=int, help="only so many training runs")
    parser.add_argument("--repetitions", type=int, default=40)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "simulated":
        lines = simulated(given.way, given.repetitions, given.samples or 200)
    elif given.what == "real":
        lines = real(given.set, given.way, given.split, given.samples, given.runs)
    else:
        lines = (
            line
            for name in given.set
            for line in times(name, given.way, given.samples, given.runs)
        )
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
