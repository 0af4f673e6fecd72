"""Transitions of all chains of a level, over and over until they have moved enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paims._arrays import Array
from paims.sampling._path import log_tempered
from paims.sampling._proposal import by_island
from paims.sampling._recycling import Batch
from paims.sampling._scheme import Scheme
from paims.sampling._target import Points
from paims.sampling._transition import Kernel, Outcome, Proposed, step

# Sweeps with the same mixtures.
_WITH_ONE = 2


@dataclass(frozen=True)
class Candidates:
    """First-stage candidates, which of them are accepted locally, and the same as batches."""

    proposed: Proposed
    local: Array
    batches: list[Batch]


@dataclass(frozen=True)
class Sweep:
    """The chains after one sweep of them all, and what came up on the way."""

    chains: Proposed
    candidates: Candidates | None
    outcomes: list[Outcome]
    correlation: float


def sweep_until_moved(
    chains: Proposed,
    lengths: Array,
    candidates: Candidates,
    kernel: Kernel,
    renewed: Callable[[Points], Kernel],
    scheme: Scheme,
    rng: np.random.Generator,
) -> list[Sweep]:
    """Sweep until the chains have moved enough; ``candidates`` are those of the first sweep.

    Where that takes more than a few sweeps, the mixtures may be to blame: one that has a cluster
    across two modes hardly moves a chain however often. They are made anew from the chains'
    states.
    """
    n_params = chains.points.theta.shape[1]
    sweeps: list[Sweep] = []
    now = chains
    while True:
        now, outcomes = _sweep(now, lengths, candidates, kernel, rng)
        correlation = correlation_of(chains, now) if scheme.equal_chains else np.nan
        sweeps.append(Sweep(now, candidates, outcomes, correlation))
        if len(sweeps) == scheme.max_sweeps or scheme.enough(correlation, n_params):
            return sweeps
        lengths = np.ones(len(now), dtype=np.int64)  # every state that was recorded goes on
        if len(sweeps) % _WITH_ONE == 0:
            kernel = renewed(now.points)
            now = Proposed.of(now.points, kernel.beta, kernel.mixtures)
        candidates = draw_candidates(now.points.island, kernel, rng)


def _sweep(
    chains: Proposed,
    lengths: Array,
    candidates: Candidates,
    kernel: Kernel,
    rng: np.random.Generator,
) -> tuple[Proposed, list[Outcome]]:
    """Run every chain for its length; return every state after a transition."""
    recorded: list[Proposed] = []
    outcomes: list[Outcome] = []
    start = 0
    for t in range(int(lengths.max())):
        rows = np.flatnonzero(lengths > t)
        own = np.arange(start, start + len(rows))
        moved, outcome = step(
            chains[rows], candidates.proposed[own], candidates.local[own], kernel, rng
        )
        chains = chains.replaced(rows, moved)
        recorded.append(moved)
        outcomes.append(outcome)
        start += len(rows)
    every = Proposed.concatenate(recorded)
    return every[np.argsort(every.points.island, kind="stable")], outcomes


def islands_in_turn(island: Array, lengths: Array) -> Array:
    """Islands of the chains that take each step of a sweep, one step after the other."""
    active = [np.flatnonzero(lengths > t) for t in range(int(lengths.max()))]
    return np.asarray(island[np.concatenate(active)])


def draw_candidates(island: Array, kernel: Kernel, rng: np.random.Generator) -> Candidates:
    """Draw first-stage candidates for chains of these islands.

    They do not depend on the chains, so those of all steps of a sweep are one batch.
    """
    theta = np.empty((len(island), kernel.mixtures[0].markers.theta.shape[1]))
    log_p_marker, log_q, log_p_hat = np.empty((3, len(island)))
    for mixture, rows in by_island(kernel.mixtures, island):
        theta[rows], marker = mixture.sample(len(rows), rng)
        log_p_marker[rows] = mixture.markers.log_p[marker]
    points = kernel.target.evaluate(theta, island)
    log_p = log_tempered(points, kernel.beta)
    batches = []
    for mixture, rows in by_island(kernel.mixtures, island):
        log_q[rows], log_p_hat[rows] = mixture.log_densities(theta[rows], log_p[rows])
        batches.append(Batch(mixture, points[rows], log_q[rows]))
    local = np.log(rng.random(len(points))) < log_p - log_p_marker
    return Candidates(Proposed(points, log_p, log_p_hat), local, batches)


def correlation_of(starts: Proposed, ends: Proposed) -> float:
    """Largest correlation of a coordinate or of log p between the chains' starts and ends."""
    a = np.column_stack([starts.points.theta, starts.log_p])
    b = np.column_stack([ends.points.theta, ends.log_p])
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    scale = np.sqrt(np.sum(a**2, axis=0) * np.sum(b**2, axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.sum(a * b, axis=0) / scale
    return float(np.max(np.where(scale > 0, value, 0.0)))
