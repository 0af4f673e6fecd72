"""Recycling: first-stage candidates as one deterministic-mixture importance sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from paims.sampling._arrays import Array
from paims.sampling.path import effective_size
from paims.sampling.proposal import MarkerMixture
from paims.sampling.target import Points

_USEFUL = 0.02


@dataclass(frozen=True)
class Batch:
    """Points and the mixture that they were drawn from; None is the reference.

    Attributes
    ----------
    mixture : MarkerMixture or None
    points : Points
    log_q : ndarray, shape (n,)
        Log density of that mixture at its points.
    """

    mixture: MarkerMixture | None
    points: Points
    log_q: Array

    @property
    def efficiency(self) -> float:
        """Effective size per point of the batch alone as an importance sample of the target."""
        return effective_size(self.points.log_pi - self.log_q) / max(len(self.points), 1)


@dataclass(frozen=True)
class Recycled:
    """The importance sample of the target.

    Attributes
    ----------
    points : Points
        Those with non-zero density.
    log_weight : ndarray, shape (n,)
        log of pi / (sum over proposals of their number of draws times their density): their sum
        estimates the evidence.
    n_drawn : int
        Number of points drawn, those of zero density included.
    """

    points: Points
    log_weight: Array
    n_drawn: int

    @property
    def log_evidence(self) -> float:
        """Log of the estimate of the integral of pi."""
        return float(logsumexp(self.log_weight))


def recycle(pool: tuple[Batch, ...]) -> Recycled:
    """Weigh the points of the pool against the mixture of all proposals that made it.

    With n_k points from proposal q_k, the weight of any point x is pi(x) / sum_k n_k q_k(x)
    (the balance heuristic). Batches of high temperature, which say next to nothing of the target,
    are left out before anything is weighed; the reference's draws always stay, as they bound the
    weights.
    """
    used = [b for b in pool if b.mixture is None or b.efficiency >= _USEFUL]
    if all(batch.mixture is None for batch in used):
        used = [used[0], *pool[-2:]]
    points = Points.concatenate([batch.points for batch in used])
    n_drawn = len(points)
    alive = np.isfinite(points.log_pi)
    log_total = np.full(n_drawn, -np.inf)
    for mixture, number, own in _proposals(used):
        log_q = np.full(n_drawn, -np.inf)
        if mixture is None:
            log_q[alive] = points.log_m[alive]
        else:
            foreign = alive & np.isnan(own)
            log_q[foreign] = mixture.log_density(points.theta[foreign])
            known = ~np.isnan(own)
            log_q[known] = own[known]
        log_total = np.logaddexp(log_total, np.log(number) + log_q)
    return Recycled(points[alive], points.log_pi[alive] - log_total[alive], n_drawn)


def _proposals(used: list[Batch]) -> list[tuple[MarkerMixture | None, int, Array]]:
    """Distinct proposals, their numbers of draws, and their densities where already known."""
    sizes = [len(batch.points) for batch in used]
    edges = np.cumsum([0, *sizes])
    found: dict[int, tuple[MarkerMixture | None, int, Array]] = {}
    for i, batch in enumerate(used):
        key = id(batch.mixture)
        _, number, known = found.get(key, (None, 0, np.full(edges[-1], np.nan)))
        known[edges[i] : edges[i + 1]] = batch.log_q
        found[key] = (batch.mixture, number + sizes[i], known)
    return list(found.values())
