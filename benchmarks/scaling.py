"""Time and memory of a fit against runs n, inputs p and points N of the sampler.

    python -m benchmarks.scaling [--n 50 100 ...] [--p 2 5 ...] [--samples 500 2000 ...]
                                 [--seconds 20]

Seconds are of processor time, which other programs disturb least: with c idle cores a long fit
takes about a c-th of them. Each pair of n and p is measured in a process of its own: seconds for
an evaluation of the posterior, and the peak of memory. A fit is run whole where it is expected to
take less than --seconds; elsewhere its time is estimated as Emulator.fit does, marked with ~. The
exponents are least-squares slopes of the logarithms: of an evaluation in n (from 200 on) and p, of
the whole fits in N, of memory in n.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

import paims
from paims.emulator._fit import scaled_posteriors
from paims.emulator._forecast import expected_seconds, seconds_per_evaluation
from paims.inference import density, reference


def smooth(X: np.ndarray) -> np.ndarray:
    """A function of all inputs, the first ones more active."""
    weight = 2.0 / (1.0 + np.arange(X.shape[1]))
    return np.sin(3.0 * X @ weight) + X @ weight**2


def measure(n: int, p: int, sizes: list[int], limit: float) -> dict[str, Any]:
    """Measure one pair in this process."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(n + p)
    X = rng.random((n, p))
    y = smooth(X) + 0.01 * rng.standard_normal(n)
    names = [f"x{i}" for i in range(p)]
    asked = paims.Emulator(nugget_prior="uniform", n_jobs=1)
    # Compile with a small problem first.
    seconds_per_evaluation(scaled_posteriors(X[: p + 10], y[: p + 10], names, asked)[2][0])
    before = _megabytes()
    posterior = scaled_posteriors(X, y, names, asked)[2][0]
    u = reference(posterior).sample(max(1, int(2e7 / n**2 / p)), rng)
    start = time.process_time()
    density(posterior)(u)
    each = (time.process_time() - start) / len(u)
    cells = []
    for size in sizes:
        if size < 20 * (p + 2):
            continue
        estimate, _, expected = expected_seconds(posterior, [size], "default")
        cell = {"N": size, "estimate": estimate, "expected": expected}
        cell |= {"whole": None, "evaluations": None}
        if cell["estimate"] < limit:
            start = time.process_time()
            asked = paims.Emulator("squared_exponential", n_samples=size, n_jobs=1)
            emulator = asked.set_params(random_state=0).fit(X, y)
            cell["whole"] = time.process_time() - start
            cell["evaluations"] = emulator.result_.n_evaluations
        cells.append(cell)
    return {"n": n, "p": p, "each": each, "base": before, "peak": _megabytes(), "cells": cells}


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def _slope(x: list[float], y: list[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0]) if len(set(x)) > 1 else float("nan")


def report(rows: list[dict[str, Any]]) -> None:
    """Print the table and the exponents."""
    print("\n    n   p  ms/evaluation     MB   N: seconds of a fit (~ estimated)")
    for row in rows:
        cells = "   ".join(
            f"{c['N']}: {c['whole']:.1f}" if c["whole"] else f"{c['N']}: ~{c['estimate']:.0f}"
            for c in row["cells"]
        )
        start = f"{row['n']:5d} {row['p']:3d} {row['each'] * 1e3:14.3f} {row['peak']:6.0f}"
        print(f"{start}   {cells}")
    large = [row for row in rows if row["n"] >= 200]
    by_n = [
        _slope([r["n"] for r in group], [r["each"] for r in group])
        for group in ([r for r in large if r["p"] == p] for p in {r["p"] for r in large})
    ]
    by_p = [
        _slope([r["p"] for r in group], [r["each"] for r in group])
        for group in ([r for r in large if r["n"] == n] for n in {r["n"] for r in large})
    ]
    whole = [[c for c in r["cells"] if c["whole"]] for r in rows]
    by_size = [_slope([c["N"] for c in w], [c["whole"] for c in w]) for w in whole if len(w) > 1]
    memory = [r for r in large if r["peak"] > r["base"] + 5.0]
    by_memory = _slope([r["n"] for r in memory], [r["peak"] - r["base"] for r in memory])
    print(f"\nseconds of an evaluation ~ n^{np.mean(by_n):.2f} (n >= 200), "
          f"p^{np.mean(by_p):.2f} (n >= 200)")  # fmt: skip
    print(f"seconds of a fit ~ N^{np.mean(by_size):.2f}")
    print(f"memory above the base ~ n^{by_memory:.2f}")
    if not any(whole):
        return
    ratio = [c["whole"] / c["estimate"] for w in whole for c in w]
    counts = [c["evaluations"] / c["expected"] for w in whole for c in w]
    print(f"whole fits: measured / estimated seconds {min(ratio):.2f} to {max(ratio):.2f}, median "
          f"{np.median(ratio):.2f}; evaluations / expected {min(counts):.2f} to "
          f"{max(counts):.2f}, median {np.median(counts):.2f}")  # fmt: skip


def main() -> None:
    """Measure every pair in a process of its own and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, nargs="+", default=[50, 200, 500, 1000, 2000])
    parser.add_argument("--p", type=int, nargs="+", default=[2, 5, 20])
    parser.add_argument("--samples", type=int, nargs="+", default=[500, 2000, 20000])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--cell", type=int, nargs=2)
    arguments = parser.parse_args()
    if arguments.cell:
        found = measure(*arguments.cell, arguments.samples, arguments.seconds)
        print(json.dumps(found))
        return
    rows = []
    for n in arguments.n:
        for p in arguments.p:
            command = [sys.executable, "-m", "benchmarks.scaling", "--cell", str(n), str(p),
                       "--seconds", str(arguments.seconds), "--samples",
                       *map(str, arguments.samples)]  # fmt: skip
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            rows.append(json.loads(done.stdout))
            print(f"measured: {done.stdout.strip()}", file=sys.stderr, flush=True)
    report(rows)


if __name__ == "__main__":
    main()
