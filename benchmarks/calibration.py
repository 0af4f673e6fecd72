"""Are the emulator's predictions calibrated? `python -m benchmarks.calibration [functions|...]`.

`functions`: random Latin hypercubes of six standard functions, 500 test points each: RMSE relative
to the output's standard deviation, mean negative log predictive density (of the output divided by
its standard deviation), CRPS likewise, and coverage of 95 % intervals, for the goals, the nugget
priors and the predictive families (one fit gives both, and the best point), beside
scikit-learn's GaussianProcessRegressor.

`self`: simulation-based calibration. Data are simulated from the model itself with a proper prior;
the ranks of the true parameters among the draws must be uniform and the predictive intervals must
cover as they say.

`kernels`: the same for the probabilities of kernels (see `benchmarks.odds`).

The kernel is the squared exponential, but for the last.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import cumulative_trapezoid
from scipy.stats import qmc

import paims
from benchmarks import odds
from paims import simulators
from paims.diagnostics import crps
from paims.gp import EstimatedNugget, LogNormal

Floats = NDArray[np.float64]
FUNCTIONS = {
    "branin": 18,
    "two_d_model": 20,
    "friedman": 50,
    "otl_circuit": 50,
    "piston": 60,
    "borehole": 60,
}
NUGGETS: dict[str, dict[str, Any]] = {
    "uniform": {"nugget_prior": "uniform"},
    "beta": {"nugget_prior": "beta"},
    "spike_slab": {"nugget_prior": "spike_slab"},
    "reference": {"nugget_prior": "reference"},
    "1e-8": {"nugget": 1e-8},
}


def ours(nugget: str, X: Floats, y: Floats, T: Floats, seed: int) -> dict[str, Any]:
    """Predictive distributions with all draws (two families) and with the best point alone."""
    emulator = paims.Emulator(
        "squared_exponential", random_state=seed, n_jobs=1, **NUGGETS[nugget]
    ).fit(X, y)
    mixture = emulator.ensemble_
    top = emulator.map_
    best = emulator.posterior_.from_physical(
        emulator.posterior_.kernel.from_length_scale(
            top.length_scales[None] / emulator.inputs_.range
        ),
        top.nugget,
    )
    predictors = {
        "posterior": mixture,
        "posterior, gaussian": replace(mixture, family="gaussian"),
        "map": replace(mixture, draws=best, weights=np.ones(1)),
    }
    scaled = emulator.inputs_.apply(T)
    return {f"{name}, {nugget}": each.mixture(scaled) for name, each in predictors.items()}


def optimum(nugget: str, X: Floats, y: Floats, T: Floats, seed: int) -> dict[str, Any]:
    """The predictive distribution with the paper's nearly optimal set."""
    emulator = paims.Emulator(
        "squared_exponential", goal="optimum", random_state=seed, n_jobs=1, **NUGGETS[nugget]
    )
    return {f"optimum, {nugget}": emulator.fit(X, y).predict_distribution(T)}


def scikit_learn(X: Floats, y: Floats, T: Floats, seed: int) -> dict[str, Any]:
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
    return {"scikit-learn, 10 restarts": (mean, std)}


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


METHODS: dict[str, Callable[..., dict[str, Any]]] = {
    **{f"posterior, {name}": partial(ours, name) for name in NUGGETS},
    "optimum, spike_slab": partial(optimum, "spike_slab"),
    "scikit-learn, 10 restarts": scikit_learn,
}


def functions(n_designs: int, only: str, out: str) -> None:
    """The table over functions and designs; what the file ``out`` has is not run again."""
    table = Path(out) if out else None
    rows: list[dict[str, Any]] = []
    if table is not None and table.exists():
        rows = json.loads(table.read_text(encoding="utf-8"))
    done = {(row["function"], row["design"], row["method"]) for row in rows}
    for design in range(n_designs):
        for function, n in FUNCTIONS.items():
            simulator = simulators.get(function)
            T = simulator.design(500, random_state=10_000)
            truth = simulator(T)
            scale = float(np.std(truth))
            X = simulator.design(n, random_state=design)
            for method, predict in METHODS.items():
                if only not in f"{function}: {method}" or (function, design, method) in done:
                    continue
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", paims.SamplingWarning)
                    predictions = predict(X, simulator(X), T, design)
                seconds = time.perf_counter() - start
                rows += [
                    {
                        "function": function,
                        "design": design,
                        "method": name,
                        "scores": score(prediction, truth, scale),
                        "seconds": seconds,
                    }
                    for name, prediction in predictions.items()
                ]
        if table is not None:
            table.write_text(json.dumps(rows), encoding="utf-8")
    show(rows)


def show(rows: list[dict[str, Any]]) -> None:
    """Print the means over designs, and over functions the means of these."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    means: dict[str, list[Floats]] = {method: [] for method in methods}
    for function in FUNCTIONS:
        for method in methods:
            found = [
                (*row["scores"], row["seconds"])
                for row in rows
                if (row["function"], row["method"]) == (function, method)
            ]
            if found:
                means[method].append(np.mean(found, axis=0))
                print(
                    f"{function:12} {method:31} {line(means[method][-1])}  ({len(found)} designs)"
                )
    print("\nmean over the functions")
    for method, each in means.items():
        print(f"{method:31} {line(np.mean(each, axis=0))}  ({len(each)} functions)")
    print(f"\n{markdown(rows)}")


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of the documentation: nlpd by function, then means over the functions."""
    headings = [*FUNCTIONS, "nlpd", "RMSE", "CRPS", "95 % covers"]
    lines = ["| | " + " | ".join(headings) + " |", "|---|" + "---:|" * len(headings)]
    for method in dict.fromkeys(row["method"] for row in rows):
        scores = {
            function: [
                row["scores"]
                for row in rows
                if (row["function"], row["method"]) == (function, method)
            ]
            for function in FUNCTIONS
        }
        if not all(scores.values()):
            continue
        means = np.array([np.mean(each, axis=0) for each in scores.values()])
        rmse, nlpd, score, coverage = means.mean(axis=0)
        cells = [f"{value:.2f}" for value in means[:, 1]]
        cells += [f"{nlpd:.3f}", f"{rmse:.4f}", f"{score:.4f}", f"{coverage:.3f}"]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def line(means: Floats) -> str:
    """One line of the table."""
    rmse, nlpd, score, coverage, seconds = means
    return (
        f"RMSE {rmse:.4f}  nlpd {nlpd:7.3f}  CRPS {score:.4f}  coverage {coverage:.3f}  "
        f"{seconds:6.1f} s"
    )


def draw(nugget: EstimatedNugget, rng: np.random.Generator) -> float:
    """A draw of z, the nugget's logit, from its prior, by its distribution function on a grid."""
    z = np.linspace(-60.0, 60.0, 100_001)
    density = np.exp(nugget.log_prior(z[:, None]) + nugget.log_jacobian(z[:, None]))
    below = cumulative_trapezoid(density, x=z, initial=0.0)
    return float(np.interp(rng.random() * below[-1], below, z))


def simulate(
    nugget: EstimatedNugget, rng: np.random.Generator, n: int, n_new: int
) -> tuple[Floats, ...]:
    """Parameters from the prior and data from the model: X, y, T, new y, log phi, z.

    The posterior does not depend on the trend and the variance, so any will do.
    """
    X = qmc.LatinHypercube(2, rng=rng).random(n)
    X = (X - X.min(0)) / (X.max(0) - X.min(0))
    T = rng.random((n_new, 2))
    log_phi = rng.normal(-1.0, 1.0, 2)
    z = draw(nugget, rng)
    delta = nugget.value(np.array([[z]]))[0]
    both = np.vstack([X, T])
    distance = (both[:, None] - both) ** 2
    K = np.exp(-0.5 * np.sum(distance / np.exp(log_phi), axis=2)) + delta * np.eye(len(both))
    y = 3.0 + both @ [1.0, -2.0] + 2.0 * np.linalg.cholesky(K) @ rng.standard_normal(len(both))
    return X, y[:n], T, y[n:], np.append(log_phi, z)


def self_calibration(n_replications: int, prior: str, out: str) -> None:
    """Ranks of the parameters and coverage of predictive intervals, with a prior of the nugget."""
    del out
    prior = prior or paims.Emulator().nugget_prior
    nugget = EstimatedNugget(prior)
    print(f"{n_replications} replications, nugget prior {prior}")
    ranks, inside = [], []
    levels = (0.5, 0.8, 0.95)
    for replication in range(n_replications):
        rng = np.random.default_rng([2016, replication])
        X, y, T, y_new, truth = simulate(nugget, rng, 15, 10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", paims.SamplingWarning)
            emulator = paims.Emulator(
                "squared_exponential",
                prior=LogNormal(-1.0, 1.0),
                nugget=nugget,
                n_samples=1000,
                random_state=replication,
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
    parser.add_argument("experiment", choices=("functions", "self", "kernels"))
    parser.add_argument("--number", type=int, default=0, help="designs, or replications")
    parser.add_argument(
        "--only", default="", help="part of 'function: method', or a prior of the nugget"
    )
    parser.add_argument("--out", default="", help="JSON file of the rows; it is gone on with")
    options = parser.parse_args()
    if options.experiment == "functions":
        functions(options.number or 20, options.only, options.out)
    elif options.experiment == "kernels":
        odds.kernels(options.number or 200)
    else:
        self_calibration(options.number or 200, options.only, options.out)


if __name__ == "__main__":
    main()
