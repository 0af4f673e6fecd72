"""Evaluations of the GP posterior per second: compiled loop, NumPy twin, one point at a time.

Run with ``python -m benchmarks.throughput``. All engines compute the same four terms at the same
points, with the reference prior and the linear basis (1, x). The engines take turns and the best
of several turns counts, since other work on the machine can only slow a turn down.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from paims._parallel import n_threads, single_threaded_blas
from paims.gp import SquaredExponential, _compiled, _twin

FloatArray = NDArray[np.float64]
# runs, inputs, points in a batch, points of the batch that the naive code evaluates
CASES = [(18, 2, 8192, 128), (50, 5, 1024, 32), (100, 5, 256, 16), (300, 8, 32, 4)]
DGEMM_SIZE = 1200
KERNEL = SquaredExponential()
START = """
import time; begin = time.perf_counter()
import numpy as np
from paims.gp import Posterior
X = np.random.default_rng(0).random((18, 2))
Posterior(X, np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2)(np.zeros((8, 3)))
print(time.perf_counter() - begin, time.process_time())
"""


def naive_terms(
    X: FloatArray, H: FloatArray, y: FloatArray, phi: FloatArray, delta: float
) -> FloatArray:
    """Compute the four terms of one point as published: inverse of K, Q, each W_i = dK_i Q."""
    n, q = H.shape
    squares = (X[:, None, :] - X[None, :, :]) ** 2 / (2.0 * phi)
    K0 = np.exp(-squares.sum(axis=2))
    factor = cho_factor(K0 + delta * np.eye(n), lower=True)
    K_inv = cho_solve(factor, np.eye(n))
    HKH = H.T @ K_inv @ H
    Q = K_inv - K_inv @ H @ np.linalg.inv(HKH) @ H.T @ K_inv
    W = [K0 * squares[:, :, i] @ Q for i in range(X.shape[1])]
    information = np.empty((len(W) + 1, len(W) + 1))
    information[0, 0] = n - q
    for i, W_i in enumerate(W):
        information[0, i + 1] = information[i + 1, 0] = np.trace(W_i)
        for j, W_j in enumerate(W):
            information[i + 1, j + 1] = (W_i * W_j.T).sum()
    log_det_K = 2.0 * np.log(np.diag(factor[0])).sum()
    determinants = np.linalg.slogdet(HKH)[1], np.linalg.slogdet(information)[1]
    return np.array([log_det_K, determinants[0], y @ Q @ y, determinants[1]])


def problem(n: int, p: int, m: int) -> tuple[FloatArray, ...]:
    """Draw a design of n runs in p inputs and m points: X, H, y, phi, delta."""
    rng = np.random.default_rng(n)
    X = rng.random((n, p))
    y = np.sin(3.0 * X.sum(axis=1)) + X[:, 0] ** 2
    phi = np.exp(rng.uniform(-3.0, 2.0, (m, p)))
    return X, np.column_stack([np.ones(n), X]), y, phi, np.exp(rng.uniform(-12.0, -1.0, m))


def dgemm() -> float:
    """Operations of one product of large matrices on each core, at the same time."""
    threads = n_threads(None)
    A = np.random.default_rng(0).random((DGEMM_SIZE, DGEMM_SIZE))
    out = [np.empty_like(A) for _ in range(threads)]
    with single_threaded_blas(), ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda target: np.matmul(A, A, out=target), out))
    return 2.0 * threads * DGEMM_SIZE**3


def best_rates(engines: dict[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Let the engines take turns; the best rate of each, in what it returns per second."""
    rates = dict.fromkeys(engines, 0.0)
    for _ in range(repeats + 1):  # the first turn warms up
        for name, run in engines.items():
            begin = time.perf_counter()
            work = run()
            rates[name] = max(rates[name], work / (time.perf_counter() - begin))
    return rates


def measure(n: int, p: int, m: int, m_naive: int, repeats: int) -> dict[str, float]:
    """Rates of the engines for one case, after a check that they agree."""
    X, H, y, phi, delta = problem(n, p, m)
    results: dict[str, FloatArray] = {}

    def compiled() -> float:
        results["compiled"] = _compiled.core_terms(X, H, y, KERNEL, phi, delta, 1)
        return m

    def twin() -> float:
        results["twin"] = _twin.core_terms(X, H, y, KERNEL, phi, delta, 1)
        return m

    def naive() -> float:
        points = zip(phi[:m_naive], delta[:m_naive], strict=True)
        results["naive"] = np.array([naive_terms(X, H, y, *point) for point in points])
        return m_naive

    def naive_on_one_thread() -> float:
        with single_threaded_blas():
            return naive()

    engines = {"compiled": compiled, "twin": twin, "naive": naive, "dgemm": dgemm}
    rates = best_rates({**engines, "naive on one thread": naive_on_one_thread}, repeats)
    # Threads inside BLAS help large matrices and hurt small ones: the better of the two counts.
    rates["naive"] = max(rates["naive"], rates["naive on one thread"])
    for name in ("twin", "naive"):
        expected = results[name]
        np.testing.assert_allclose(results["compiled"][: len(expected)], expected, rtol=1e-6)
    return rates


def start_times() -> list[tuple[float, float]]:
    """Wall and processor seconds of a process that evaluates a posterior.

    First with an empty cache of compiled code, then again.
    """
    times = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for _ in range(2):
            process = subprocess.run(
                [sys.executable, "-c", START], env=environment, check=True, stdout=subprocess.PIPE
            )
            wall, processor = process.stdout.split()
            times.append((float(wall), float(processor)))
    return times


def main() -> None:
    """Print a row for each case, then the start-up times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, help="turns that each engine gets")
    repeats = parser.parse_args().repeats
    print(f"{n_threads(None)} threads; share of dgemm counts (2p+1) n^3 per evaluation")
    print("   n   p  evaluations/s      NumPy twin       naive   x twin  x naive  share of dgemm")
    for n, p, m, m_naive in CASES:
        rates = measure(n, p, m, m_naive, repeats)
        rate = rates["compiled"]
        share = rate * (2 * p + 1) * n**3 / rates["dgemm"]
        print(
            f"{n:4d}{p:4d}{rate:15,.0f}{rates['twin']:16,.0f}{rates['naive']:12,.0f}"
            f"{rate / rates['twin']:9.1f}{rate / rates['naive']:9.1f}{share:12.0%}"
            f" of {rates['dgemm'] / 1e9:.0f} GFlop/s",
            flush=True,
        )
    for name, (wall, processor) in zip(("nothing", "code"), start_times(), strict=True):
        print(
            f"first posterior of a process, {name} cached: {wall:.1f} s"
            f" ({processor:.1f} s of processor time)"
        )


if __name__ == "__main__":
    main()
