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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from paims._arrays import Array
from paims.sampling._clusters import Clusters
from paims.sampling._path import log_tempered
from paims.sampling._proposal import MarkerMixture
from paims.sampling._target import Points, Target

Scale = Callable[[int, np.random.Generator], Array]


@dataclass(frozen=True)
class Proposed:
    """Points with the level's density and p_hat there: a chain's states, or candidates.

    Attributes
    ----------
    points : Points
    log_p : ndarray, shape (n,)
        Log density of the level.
    log_p_hat : ndarray, shape (n,)
        Log of the mixture with the local acceptance inside.
    """

    points: Points
    log_p: Array
    log_p_hat: Array

    @staticmethod
    def of(points: Points, beta: float, mixture: MarkerMixture) -> Proposed:
        """Look the points up in the mixture."""
        log_p = log_tempered(points, beta)
        return Proposed(points, log_p, mixture.log_p_hat(points.theta, log_p))

    def __len__(self) -> int:
        return len(self.log_p)

    def __getitem__(self, index: Array) -> Proposed:
        return Proposed(self.points[index], self.log_p[index], self.log_p_hat[index])

    def replaced(self, where: Array, by: Proposed) -> Proposed:
        """Copy with the rows ``where`` taken from ``by`` (which has just those rows)."""
        theta, log_pi, log_m = (
            self.points.theta.copy(),
            self.points.log_pi.copy(),
            self.points.log_m.copy(),
        )
        log_p, log_p_hat = self.log_p.copy(), self.log_p_hat.copy()
        theta[where] = by.points.theta
        log_pi[where], log_m[where] = by.points.log_pi, by.points.log_m
        log_p[where], log_p_hat[where] = by.log_p, by.log_p_hat
        return Proposed(Points(theta, log_pi, log_m), log_p, log_p_hat)


@dataclass(frozen=True)
class Outcome:
    """What became of each chain in one transition (boolean arrays)."""

    locally_accepted: Array
    globally_accepted: Array
    second_accepted: Array


@dataclass(frozen=True)
class SecondStage:
    """A second-stage proposal on its way to being evaluated."""

    chains: Array  # which chains take part
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
    state: Proposed, chains: Array, clusters: Clusters, scale: Scale, rng: np.random.Generator
) -> SecondStage:
    """Draw the second-stage candidates of the given chains.

    Each step has a scale of its own that does not depend on the state, which keeps it symmetric.
    """
    theta = state.points.theta[chains]
    _, log_rho = clusters.log_responsibilities(np.ascontiguousarray(theta))
    edges = np.cumsum(np.exp(log_rho), axis=1)
    draw = rng.random(len(theta))[:, None] * edges[:, -1:]
    cluster = np.minimum(np.sum(draw >= edges, axis=1), len(clusters) - 1)
    step = np.einsum("nab,nb->na", clusters.chol[cluster], rng.standard_normal(theta.shape))
    here = log_rho[np.arange(len(theta)), cluster]
    return SecondStage(chains, theta + scale(len(theta), rng)[:, None] * step, cluster, here)


def second_stage(
    state: Proposed,
    first: Proposed,
    second: Proposed,
    proposal: SecondStage,
    locally_accepted: Array,
    clusters: Clusters,
    log_uniform: Array,
) -> Array:
    """Which of the chains of the second stage move to their second candidate.

    ``state``, ``first`` (the candidates that were rejected) and ``locally_accepted`` have one row
    for each chain of ``proposal.chains``.
    """
    _, log_rho = clusters.log_responsibilities(np.ascontiguousarray(second.points.theta))
    there = log_rho[np.arange(len(second)), proposal.cluster]
    log_ratio = second.log_p - state.log_p + there - proposal.log_rho_here
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
    states: list[Proposed],
    candidates: list[Proposed],
    local: list[Array],
    mixtures: list[MarkerMixture],
    target: Target,
    beta: float,
    scale: Scale,
    rng: np.random.Generator,
) -> tuple[list[Proposed], list[Outcome]]:
    """One transition of the chains of every island; their second stages are one batch.

    Parameters
    ----------
    states, candidates : list of Proposed
        One for each island, one row for each chain.
    local : list of ndarray of bool
        Which candidates were accepted locally.
    mixtures : list of MarkerMixture
        The mixture that the candidates of each island came from.
    target : Target
    beta : float
    scale : callable
        ``scale(n, rng)`` gives c0 of n second-stage steps.
    rng : Generator
    """
    moved = [
        first_stage(state, candidate, accepted, np.log(rng.random(len(state))))
        for state, candidate, accepted in zip(states, candidates, local, strict=True)
    ]
    proposals = [
        propose_second(state, np.flatnonzero(~accepted), mixture.markers.clusters, scale, rng)
        for state, accepted, mixture in zip(states, moved, mixtures, strict=True)
    ]
    evaluated = evaluate_together(target, [proposal.theta for proposal in proposals])
    new_states, outcomes = [], []
    for i, (state, candidate, mixture) in enumerate(
        zip(states, candidates, mixtures, strict=True)
    ):
        chains = proposals[i].chains
        second = Proposed.of(evaluated[i], beta, mixture)
        took = second_stage(
            state[chains],
            candidate[chains],
            second,
            proposals[i],
            local[i][chains],
            mixture.markers.clusters,
            np.log(rng.random(len(chains))),
        )
        after = state.replaced(moved[i], candidate[moved[i]]).replaced(chains[took], second[took])
        new_states.append(after)
        second_accepted = np.zeros(len(state), dtype=bool)
        second_accepted[chains[took]] = True
        outcomes.append(Outcome(local[i], moved[i], second_accepted))
    return new_states, outcomes


def evaluate_together(target: Target, thetas: list[Array]) -> list[Points]:
    """Evaluate several sets of points as one batch."""
    joint = target.evaluate(np.concatenate(thetas))
    edges = np.cumsum([0] + [len(theta) for theta in thetas])
    return [joint[a:b] for a, b in pairwise(edges)]
