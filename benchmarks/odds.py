"""Are the odds of kernels odds? The experiment `kernels` of `benchmarks.calibration`.

Data are simulated under each kernel with parameters from the prior of comparisons; the posterior
probabilities of the kernels, from runs of the sampler under the reference prior, have to be
frequencies: of the kernels with probability P the share P made the data. The control leaves out
the total of the prior's density, which is another in phi = length^2 than in phi = length, and must
fail. The evidence under the reference prior itself, whose totals are unknown, is shown too.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import qmc

import paims
from paims.emulator._averaging import AUTO, sizes
from paims.emulator._evidence import comparable_evidence, comparison_prior, log_evidence
from paims.emulator._fit import scaled_posteriors
from paims.gp._kernels import as_kernel
from paims.inference import sample_posterior

Floats = NDArray[np.float64]
N_RUNS, N_INPUTS = 20, 2
NUGGET = 1e-6  # with more noise the kernels could not be told apart
EDGES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 1.0)
# Deviations beyond this many standard errors are no chance.
LIMIT = 3.0


@dataclass(frozen=True)
class Reliability:
    """Probabilities ``(m, 3)`` of the kernels, and which of them made the data ``(m, 3)``."""

    probability: Floats
    made: Floats

    def deviations(self) -> Floats:
        """For each kernel, how often it made the data beyond what was said, in standard errors."""
        p = self.probability
        return np.asarray(
            np.sum(self.made - p, axis=0) / np.sqrt(np.sum(p * (1.0 - p), axis=0) + 1e-300)
        )

    @property
    def passed(self) -> bool:
        """Whether no kernel's deviation is beyond the limit."""
        return bool((np.abs(self.deviations()) < LIMIT).all())

    def table(self) -> str:
        """Frequencies by probability."""
        lines = ["probability   pairs   said   found"]
        p, made = self.probability.ravel(), self.made.ravel()
        for low, high in pairwise(EDGES):
            own = (p >= low) & ((p < high) | (high == 1.0))
            if own.any():
                error = np.sqrt(np.sum(p[own] * (1.0 - p[own]))) / own.sum()
                lines.append(
                    f"{low:4.2f} to {high:4.2f} {own.sum():6}  {p[own].mean():.3f}   "
                    f"{made[own].mean():.3f} +- {error:.3f}"
                )
        each = ", ".join(
            f"{name} {value:+.1f}" for name, value in zip(AUTO, self.deviations(), strict=True)
        )
        return "\n".join([*lines, f"deviations in standard errors: {each}"])


def simulate(truth: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Runs of a process under one of the kernels, its parameters from the prior."""
    kernel = as_kernel(AUTO[truth])
    X = qmc.LatinHypercube(N_INPUTS, rng=rng).random(N_RUNS)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    prior = comparison_prior(kernel)
    phi = np.exp(rng.normal(prior.mean, prior.sd, N_INPUTS))[None]
    K = kernel.correlation(X, X, phi)[0] + NUGGET * np.eye(N_RUNS)
    value, vector = np.linalg.eigh(K)
    y = vector @ (np.sqrt(np.maximum(value, 0.0)) * rng.standard_normal(N_RUNS))
    return X, 3.0 + X @ np.arange(1.0, N_INPUTS + 1.0) + 2.0 * y


WAYS = ("comparable evidence", "control: a total left out", "reference prior as it is")


def log_evidences(X: Floats, y: Floats, n_samples: int | None) -> tuple[Floats, Floats, Floats]:
    """Of the kernels, in the three ways."""
    names = [f"x{i + 1}" for i in range(X.shape[1])]
    _, output, posteriors = scaled_posteriors(X, y, names, paims.Emulator(nugget=NUGGET, n_jobs=1))
    comparable, own = [], []
    for posterior in posteriors:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", paims.SamplingWarning)
            result = sample_posterior(posterior, n_samples, random_state=0, n_jobs=1)
        comparable.append(comparable_evidence(posterior, output, result).log_evidence)
        own.append(log_evidence(posterior, output, result))
    totals = [X.shape[1] * np.log(posterior.kernel.phi_power) for posterior in posteriors]
    return np.array(comparable), np.array(comparable) + totals, np.array(own)


def measure(n_sets: int, n_samples: int | None = None) -> list[Reliability]:
    """Simulate and fit; the kernels' probabilities in the three ways.

    By default with as many points under each kernel as a fit of all has.
    """
    if n_samples is None:
        n_samples = sizes(len(AUTO), None, N_INPUTS)[0]
    found: list[list[Floats]] = [[] for _ in WAYS]
    made = np.zeros((n_sets, len(AUTO)))
    for i in range(n_sets):
        made[i, i % len(AUTO)] = 1.0
        X, y = simulate(i % len(AUTO), np.random.default_rng([2026, i]))
        for log_z, kept in zip(log_evidences(X, y, n_samples), found, strict=True):
            kept.append(np.exp(log_z - logsumexp(log_z)))
    return [Reliability(np.array(kept), made) for kept in found]


def kernels(n_sets: int) -> None:
    """Print the reliability, and that of the control."""
    found = measure(n_sets)
    print(f"{n_sets} data sets of {N_RUNS} runs and {N_INPUTS} inputs")
    for title, one in zip(WAYS, found, strict=True):
        print(f"\n{title}: {'passes' if one.passed else 'fails'}\n{one.table()}")
