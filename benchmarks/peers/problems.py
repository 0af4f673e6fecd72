"""Densities with known truth, as every sampler is given them, and the error of a sample.

The density is the same compiled or NumPy function for all. Samplers that work on likelihood and
prior get log density minus log reference, and the reference as a map of the unit cube.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests import gp_truth, targets

from benchmarks.sampler import gp_reference, reference_of

Floats = NDArray[np.float64]
# Mass of each of the events whose probability is known, from draws and weights.
Masses = Callable[[Floats, Floats], Floats]


@dataclass(frozen=True)
class Draws:
    """What a sampler found; weights sum to 1, ``log_evidence`` is NaN if it gives none."""

    draws: Floats
    weights: Floats
    log_evidence: float = float("nan")


@dataclass(eq=False)
class Problem:
    """A density, its reference and its truth; counts the evaluations and their processor seconds.

    ``reference`` is one of ours, with ``quantile``, ``sample`` and ``log_density``.
    """

    name: str
    density_fn: Callable[[Floats], Floats]
    reference: Any
    log_evidence: float
    mean: Floats
    sd: Floats
    masses: Floats
    masses_of: Masses
    n_evaluations: int = 0
    density_seconds: float = 0.0

    @property
    def d(self) -> int:
        """Number of parameters."""
        return len(self.mean)

    def log_density(self, x: Floats) -> Floats:
        """Log density (m,) at points (m, d)."""
        start = time.process_time()
        value = self.density_fn(x)
        self.density_seconds += time.process_time() - start
        self.n_evaluations += len(x)
        return value

    def reset(self) -> None:
        """Forget the counts."""
        self.n_evaluations, self.density_seconds = 0, 0.0

    def log_likelihood(self, x: Floats) -> Floats:
        """Log density minus log reference (m,)."""
        value = self.log_density(x) - self.reference.log_density(x)
        return np.where(np.isnan(value), -np.inf, value)

    def log_likelihood_in_cube(self, u: Floats) -> Floats:
        """The same at points (m, d) of the unit cube."""
        return self.log_likelihood(self.reference.quantile(u))

    def errors(self, found: Draws) -> Floats:
        """Errors of means (in sds), of sds (relative) and of masses, in one vector."""
        mean = found.weights @ found.draws
        sd = np.sqrt(found.weights @ (found.draws - mean) ** 2)
        masses = self.masses_of(found.draws, found.weights)
        return np.concatenate(
            [(mean - self.mean) / self.sd, sd / self.sd - 1.0, masses - self.masses]
        )


def gp_posterior(design: str) -> Problem:
    """Posterior of one of the paper's designs, uniform nugget prior, truth by quadrature."""
    truth, _ = gp_truth.stored(design, "uniform")
    events = gp_truth.EVENTS[design]

    def masses_of(draws: Floats, weights: Floats) -> Floats:
        return np.array([weights[draws[:, axis] > above].sum() for axis, above in events])

    return Problem(
        name=f"GP {design}",
        density_fn=gp_truth.posterior(design, "uniform"),
        reference=gp_reference(2),
        log_evidence=truth.log_evidence,
        mean=np.array(truth.mean),
        sd=np.array(truth.sd),
        masses=np.array(truth.masses),
        masses_of=masses_of,
    )


def with_truth(target: targets.Target) -> Problem:
    """One of the closed-form targets of the tests; masses are those of its modes."""

    def masses_of(draws: Floats, weights: Floats) -> Floats:
        mode = target.assign_modes(draws)
        return np.bincount(mode, weights, minlength=len(target.mode_masses))

    return Problem(
        name=target.name,
        density_fn=target.log_density,
        reference=reference_of(target),
        log_evidence=target.log_evidence,
        mean=target.mean,
        sd=target.sd,
        masses=target.mode_masses,
        masses_of=masses_of,
    )


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "GP branin": lambda: gp_posterior("branin"),
    "GP two_d_model": lambda: gp_posterior("two_d_model"),
    "two_gaussians_2d": lambda: with_truth(targets.two_gaussians(2)),
    "gaussian_shells_2d": lambda: with_truth(targets.gaussian_shells(2)),
    "eggbox": lambda: with_truth(targets.eggbox()),
    "himmelblau": lambda: with_truth(targets.himmelblau()),
    "two_gaussians_10d": lambda: with_truth(targets.two_gaussians(10)),
}


@cache
def problem(name: str) -> Problem:
    """The problem of that name, made once, with its compiled parts compiled."""
    made = PROBLEMS[name]()
    made.density_fn(made.reference.sample(64, np.random.default_rng(0)))
    return made
