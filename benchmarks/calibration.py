"""Are the emulator's predictions calibrated? `python -m benchmarks.calibration [functions|self]`.

`functions`: random Latin hypercubes of six standard functions, 500 test points each: RMSE relative
to the output's standard deviation, mean negative log predictive density (of the output divided by
its standard deviation), CRPS likewise, and coverage of 95 % intervals, for the goals, the nugget
priors and the predictive families, beside scikit-learn's GaussianProcessRegressor.

`self`: simulation-based calibration. Data are simulated from the model itself with a proper prior;
the ranks of the true parameters among the draws must be uniform and the predictive intervals must
cover as they say.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.stats import qmc

import paims
from paims import simulators
from paims.diagnostics import crps
from paims.gp import LogNormal

Floats = NDArray[np.float64]
FUNCTIONS = {
    "branin": 18,
    "two_d_model": 20,
    "friedman": 50,
    "otl_circuit": 50,
    "piston": 60,
    "borehole": 60,
}
OURS: dict[str, dict[str, Any]] = {
    "posterior": {},
    "posterior, gaussian": {"predictive": "gaussian"},
    "posterior, beta nugget": {"nugget_prior": "beta"},
    "posterior, reference nugget": {"nugget_prior": "reference"},
    "posterior, nugget 1e-8": {"nugget": 1e-8},
    "optimum": {"goal": "optimum"},
    "map": {"goal": "map"},
}


def ours(options: dict[str, Any], X: Floats, y: Floats, T: Floats, seed: int) -> Any:
    """The predictive distribution of our emulator."""
    emulator = paims.Emulator(random_state=seed, **options).fit(X, y)
    return emulator.predict_distribution(T)


def scikit_learn(X: Floats, y: Floats, T: Floats, seed: int) -> tuple[Floats, Floats]:
    """Mean and standard deviation of scikit-learn's regressor with ten restarts."""
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.gaussian_process import GaussianProcessRegressor  # noqa: PLC0415
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel  # noqa: PLC0415

    low, high = X.min(0), X.max(0)
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1]), (1e-2, 1e3)) + WhiteKernel(
        1e-6, (1e-12, 1.0)
    )
    model = GaussianProcessRegressor(
        kernel, n_restarts_optimizer=10, normalize_y=True, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit((X - low) / (high - low), y)
    mean, std = model.predict((T - low) / (high - low), return_std=True)
    return mean, std


def score(prediction: Any, truth: Floats, scale: float) -> tuple[float, float, float, float]:
    """RMSE, nlpd, CRPS (all for outputs divided by ``scale``) and coverage."""
    if isinstance(prediction, tuple):
        mean, std = prediction
        law = stats.norm(mean, std)
        z = (truth - mean) / std
        each = std * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - np.pi**-0.5)
        log_p, (lower, upper) = law.logpdf(truth), law.interval(0.95)
    else:
        mean, log_p = prediction.mean, prediction.logpdf(truth)
        each = crps(truth, prediction)
        lower, upper = prediction.interval(0.95)
    return (
        float(np.sqrt(np.mean((mean - truth) ** 2)) / scale),
        float(-np.mean(log_p) - np.log(scale)),
        float(np.mean(each) / scale),
        float(np.mean((truth >= lower) & (truth <= upper))),
    )


def functions(n_designs: int, only: str, out: str) -> None:
    """The table over functions and designs."""
    methods: dict[str, Callable[..., Any]] = {
        name: partial(ours, options) for name, options in OURS.items()
    }
    methods["scikit-learn, 10 restarts"] = scikit_learn
    rows: dict[str, dict[str, list[tuple[float, ...]]]] = {m: {} for m in methods}
    for function, n in FUNCTIONS.items():
        if only not in function:
            continue
        simulator = simulators.get(function)
        T = simulator.design(500, random_state=10_000)
        truth = simulator(T)
        scale = float(np.std(truth))
        for method, predict in methods.items():
            found = []
            for design in range(n_designs):
                X = simulator.design(n, random_state=design)
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", paims.SamplingWarning)
                    prediction = predict(X, simulator(X), T, design)
                seconds = time.perf_counter() - start
                found.append((*score(prediction, truth, scale), seconds))
            rows[method][function] = found
            a = np.mean(found, axis=0)
            print(
                f"{function:12} {method:28} RMSE {a[0]:.4f}  nlpd {a[1]:7.3f}  CRPS {a[2]:.4f}  "
                f"coverage {a[3]:.3f}  {a[4]:6.1f} s",
                flush=True,
            )
    print("\nmean over the functions")
    for method, by_function in rows.items():
        a = np.mean([np.mean(found, axis=0) for found in by_function.values()], axis=0)
        print(f"{method:28} RMSE {a[0]:.4f}  nlpd {a[1]:7.3f}  CRPS {a[2]:.4f}  cover {a[3]:.3f}")
    if out:
        Path(out).write_text(json.dumps(rows, indent=1), encoding="utf-8")


def simulate(rng: np.random.Generator, n: int, n_new: int) -> tuple[Floats, ...]:
    """Parameters from the prior and data from the model: X, y, T, new y, log phi, z.

    The posterior does not depend on the trend and the variance, so any will do.
    """
    X = qmc.LatinHypercube(2, rng=rng).random(n)
    X = (X - X.min(0)) / (X.max(0) - X.min(0))
    T = rng.random((n_new, 2))
    log_phi = rng.normal(-1.0, 1.0, 2)
    delta = rng.uniform(1e-12, 1.0)
    both = np.vstack([X, T])
    distance = (both[:, None] - both) ** 2
    K = np.exp(-0.5 * np.sum(distance / np.exp(log_phi), axis=2)) + delta * np.eye(len(both))
    y = 3.0 + both @ [1.0, -2.0] + 2.0 * np.linalg.cholesky(K) @ rng.standard_normal(len(both))
    z = np.log(delta) - np.log1p(-delta)
    return X, y[:n], T, y[n:], np.append(log_phi, z)


def self_calibration(n_replications: int, only: str, out: str) -> None:
    """Ranks of the parameters and coverage of predictive intervals."""
    del only, out
    ranks, inside = [], []
    levels = (0.5, 0.8, 0.95)
    for replication in range(n_replications):
        rng = np.random.default_rng([2016, replication])
        X, y, T, y_new, truth = simulate(rng, 15, 10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", paims.SamplingWarning)
            emulator = paims.Emulator(
                prior=LogNormal(-1.0, 1.0), n_samples=1000, random_state=replication
            ).fit(X, y)
        result = emulator.result_
        ranks.append([result.weights[result.draws[:, i] < truth[i]].sum() for i in range(3)])
        prediction = emulator.predict_distribution(T)
        inside.append(
            [
                np.mean((y_new > low) & (y_new < high))
                for low, high in (prediction.interval(level) for level in levels)
            ]
        )
    names = ("log phi_1", "log phi_2", "z (nugget)")
    for i, name in enumerate(names):
        counts = np.histogram(np.array(ranks)[:, i], bins=10, range=(0, 1))[0]
        p = stats.chisquare(counts).pvalue
        print(f"ranks of {name:11}: {counts.tolist()}, chi-square p = {p:.3f}")
    for i, level in enumerate(levels):
        each = np.array(inside)[:, i]
        error = np.std(each, ddof=1) / np.sqrt(len(each))
        print(f"{level:.0%} predictive intervals cover {np.mean(each):.3f} +- {error:.3f}")


def main() -> None:
    """Run one experiment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiment", choices=("functions", "self"))
    parser.add_argument("--number", type=int, default=0, help="designs, or replications")
    parser.add_argument("--only", default="", help="part of a function's name")
    parser.add_argument("--out", default="", help="JSON file for the table")
    options = parser.parse_args()
    if options.experiment == "functions":
        functions(options.number or 20, options.only, options.out)
    else:
        self_calibration(options.number or 200, options.only, options.out)


if __name__ == "__main__":
    main()
