"""One transition of a set of chains: the accept/reject rules, written once.

From x, with a candidate xi of the mixture that was accepted or rejected locally beforehand:

- locally accepted: accept globally with alpha_g = min(1, p(xi) p_hat(x) / (p(x) p_hat(xi)))
  (paper, eq. global_accep); if that rejects, the second stage below with the factors
  (1 - alpha_g) of delayed rejection (eq. twostepaccep);
- locally rejected: the second stage as a plain Metropolis step. The local rejection does not
  depend on x, so this is a mixture of two kernels which both leave p invariant.

Second stage: xi2 ~ N(x, c0^2 Sigma_r), r drawn with the probability rho_r(x) of the cluster at x.
(With the default scheme c0 is random, so that some step fits where a cluster does not.)
Each r alone is a symmetric proposal chosen with a probability that depends on the state, so its
ratio rho_r(xi2) / rho_r(x) enters the acceptance. With one cluster it is the paper's second stage.
A cluster that has a map T_r (:mod:`paims.sampling._bend`) makes its steps in T_r(x), and the ratio
of Jacobians |T_r'(x)| / |T_r'(xi2)| enters too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paims._arrays import Array, IntArray
from paims.sampling._path import log_tempered
from paims.sampling._proposal import MarkerMixture, by_island
from paims.sampling._target import Points, Target

Scale = Callable[[int, np.random.Generator], Array]


@dataclass(frozen=True)
class Proposed:
    """Points with the level's density and p_hat there: the chains' states, or candidates.

    Attributes
    ----------
    points : Points
    log_p : ndarray, shape (n,)
        Log density of the level.
    log_p_hat : ndarray, shape (n,)
        Log of the mixture with the local acceptance inside; that of the point's island.
    """

    points: Points
    log_p: Array
    log_p_hat: Array

    @staticmethod
    def of(points: Points, beta: float, mixtures: Sequence[MarkerMixture]) -> Proposed:
        """Look the points up in the mixtures of their islands."""
        log_p = log_tempered(points, beta)
        log_p_hat = np.empty(len(points))
        for mixture, rows in by_island(mixtures, points.island):
            log_p_hat[rows] = mixture.log_p_hat(points.theta[rows], log_p[rows])
        return Proposed(points, log_p, log_p_hat)

    @staticmethod
    def concatenate(parts: list[Proposed]) -> Proposed:
        """Join several sets."""
        return Proposed(
            Points.concatenate([part.points for part in parts]),
            np.concatenate([part.log_p for part in parts]),
            np.concatenate([part.log_p_hat for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.log_p)

    def __getitem__(self, index: Array) -> Proposed:
        return Proposed(self.points[index], self.log_p[index], self.log_p_hat[index])

    def replaced(self, where: Array, by: Proposed) -> Proposed:
        """Copy with the rows ``where`` taken from ``by`` (which has just those rows)."""
        source = np.arange(len(self))
        source[where] = len(self) + np.arange(len(by))
        return Proposed.concatenate([self, by])[source]


@dataclass(frozen=True)
class Kernel:
    """What all transitions of a level have in common.

    Attributes
    ----------
    target : Target
    beta : float
    mixtures : sequence of MarkerMixture
        The mixture that the candidates of each island come from.
    scale : callable or None
        ``scale(n, rng)`` gives c0 of n second-stage steps; None for no second stage.
    """

    target: Target
    beta: float
    mixtures: Sequence[MarkerMixture]
    scale: Scale | None

    def evaluate(self, theta: Array, island: IntArray) -> Proposed:
        """Evaluate points, and look them up in the mixtures of their islands."""
        return Proposed.of(self.target.evaluate(theta, island), self.beta, self.mixtures)


@dataclass(frozen=True)
class Outcome:
    """What became of each chain in one transition (boolean arrays)."""

    locally_accepted: Array
    globally_accepted: Array
    second_accepted: Array


@dataclass(frozen=True)
class SecondStage:
    """Second-stage proposals on their way to being evaluated, one for each chain."""

    theta: Array
    cluster: Array
    log_rho_here: Array


def log_alpha_global(candidate: Proposed, state: Proposed) -> Array:
    """Log of the probability alpha_g(xi | x) of the global step (eq. global_accep)."""
    with np.errstate(invalid="ignore"):
        log_ratio = candidate.log_p + state.log_p_hat - state.log_p - candidate.log_p_hat
    return np.where(np.isnan(log_ratio), -np.inf, np.minimum(0.0, log_ratio))


def first_stage(
    state: Proposed, candidate: Proposed, locally_accepted: Array, log_uniform: Array
) -> Array:
    """Which chains move to their candidate."""
    return locally_accepted & (log_uniform < log_alpha_global(candidate, state))


def propose_second(
    state: Proposed, mixtures: Sequence[MarkerMixture], scale: Scale, rng: np.random.Generator
) -> SecondStage:
    """Draw the second-stage candidate of each chain.

    Each step has a scale of its own that does not depend on the state, which keeps it symmetric.
    """
    proposed, cluster = np.empty_like(state.points.theta), np.empty(len(state), dtype=np.int64)
    log_rho_here = np.empty(len(state))
    for mixture, rows in by_island(mixtures, state.points.island):
        clusters, theta = mixture.markers.clusters, state.points.theta[rows]
        chol, r, log_rho = clusters.draw(theta, rng)
        step = np.einsum("nab,nb->na", chol, rng.standard_normal(theta.shape))
        here, log_jacobian = clusters.straightened_by(theta, r)
        proposed[rows] = clusters.bent(here + scale(len(rows), rng)[:, None] * step, r)
        cluster[rows], log_rho_here[rows] = r, log_rho - log_jacobian
    return SecondStage(proposed, cluster, log_rho_here)


def second_stage(
    state: Proposed,
    first: Proposed,
    second: Proposed,
    proposal: SecondStage,
    locally_accepted: Array,
    mixtures: Sequence[MarkerMixture],
    log_uniform: Array,
) -> Array:
    """Which chains move to their second candidate; ``first`` are those that were rejected."""
    log_rho_there = np.empty(len(second))
    for mixture, rows in by_island(mixtures, second.points.island):
        clusters, theta = mixture.markers.clusters, second.points.theta[rows]
        _, log_rho = clusters.log_responsibilities(theta)
        _, log_jacobian = clusters.straightened_by(theta, proposal.cluster[rows])
        log_rho_there[rows] = log_rho[np.arange(len(rows)), proposal.cluster[rows]] - log_jacobian
    log_ratio = second.log_p - state.log_p + log_rho_there - proposal.log_rho_here
    with np.errstate(invalid="ignore"):  # rows that were rejected locally do not use it
        stay_there = log1mexp(log_alpha_global(first, second))
        delayed = stay_there - log1mexp(log_alpha_global(first, state))
    log_ratio = log_ratio + np.where(locally_accepted, delayed, 0.0)
    return np.asarray(log_uniform < np.where(np.isnan(log_ratio), -np.inf, log_ratio))


def log1mexp(x: Array) -> Array:
    """log(1 - exp(x)) for x <= 0, accurate at both ends; -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.where(
            x > -np.log(2.0), np.log(-np.expm1(np.minimum(x, 0.0))), np.log1p(-np.exp(x))
        )


def step(
    state: Proposed,
    candidate: Proposed,
    locally_accepted: Array,
    kernel: Kernel,
    rng: np.random.Generator,
) -> tuple[Proposed, Outcome]:
    """One transition of all chains; their second stages are one batch.

    Parameters
    ----------
    state, candidate : Proposed
        One row for each chain.
    locally_accepted : ndarray of bool
        Which candidates were.
    kernel : Kernel
    rng : Generator
    """
    moved = first_stage(state, candidate, locally_accepted, np.log(rng.random(len(state))))
    after = state.replaced(moved, candidate[moved])
    second_accepted = np.zeros(len(state), dtype=bool)
    if kernel.scale is None:
        return after, Outcome(locally_accepted, moved, second_accepted)
    stayed = np.flatnonzero(~moved)
    here = state[stayed]
    proposal = propose_second(here, kernel.mixtures, kernel.scale, rng)
    second = kernel.evaluate(proposal.theta, here.points.island)
    took = second_stage(
        here,
        candidate[stayed],
        second,
        proposal,
        locally_accepted[stayed],
        kernel.mixtures,
        np.log(rng.random(len(stayed))),
    )
    second_accepted[stayed[took]] = True
    after = after.replaced(stayed[took], second[took])
    return after, Outcome(locally_accepted, moved, second_accepted)
