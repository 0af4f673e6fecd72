"""Recycling: first-stage candidates as one deterministic-mixture importance sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paims._arrays import Array
from paims.sampling._numeric import log_sum_exp
from paims.sampling._path import effective_size
from paims.sampling._proposal import MarkerMixture
from paims.sampling._target import Points

_USEFUL = 0.1


@dataclass(frozen=True)
class Batch:
    """Points and the mixture that they were drawn from; None is the reference.

    Attributes
    ----------
    mixture : MarkerMixture or None
    points : Points
    log_q : ndarray, shape (n,)
        Log density of that mixture at its points.
    island : int
        The island whose chains the points were candidates of.
    even : bool
        Whether the points are a quasi-random set of the reference.
    """

    mixture: MarkerMixture | None
    points: Points
    log_q: Array
    island: int
    even: bool = False

    @property
    def log_weight(self) -> Array:
        """Log importance weights of the batch alone, -inf where the target is zero."""
        out = np.full(len(self.points), -np.inf)
        alive = np.isfinite(self.points.log_pi)
        out[alive] = self.points.log_pi[alive] - self.log_q[alive]
        return out

    @property
    def efficiency(self) -> float:
        """Effective size per point of the batch alone as an importance sample of the target."""
        return effective_size(self.log_weight) / max(len(self.points), 1)


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
    island : ndarray of int, shape (n,)
        The island of each point.
    n_drawn : int
        Number of points drawn, those of zero density included.
    """

    points: Points
    log_weight: Array
    island: Array
    n_drawn: int

    @property
    def log_evidence(self) -> float:
        """Log of the estimate of the integral of pi."""
        return log_sum_exp(self.log_weight)

    @property
    def effective_size(self) -> float:
        """Effective number of draws."""
        return effective_size(self.log_weight)


class Recycler:
    """Weighs the points of a growing pool against the mixture of all proposals that made it.

    With n_k points from proposal q_k, the weight of any point x is pi(x) / sum_k n_k q_k(x)
    (the balance heuristic). Batches of high temperature, which say next to nothing of the target,
    are left out; the reference's draws always stay, as they bound the weights.

    A candidate that has become a marker of a later mixture would see that mixture inflated by its
    own kernel, which biases the evidence down; there the mixture is taken without it. A Sobol'
    set of the reference keeps the whole sum: it has no second point near a point, and the own
    kernel stands for that.
    """

    def __init__(self) -> None:
        self._mixtures: list[MarkerMixture | None] = []
        self._numbers: list[int] = []
        self._batches: list[Batch] = []
        self._log_q: list[list[Array]] = []  # [mixture][batch]
        self._n_seen = 0
        self._last: tuple[Batch, ...] = ()

    def update(self, pool: tuple[Batch, ...]) -> None:
        """Take in the batches that have been added to the pool since the last call."""
        for batch in pool[self._n_seen :]:
            if batch.mixture is None or batch.efficiency >= _USEFUL:
                self._add(batch)
        self._n_seen = len(pool)
        self._last = pool[-2:]

    def recycled(self) -> Recycled:
        """Return the importance sample of the batches so far."""
        if all(mixture is None for mixture in self._mixtures):
            for batch in self._last:
                if batch.mixture is not None:
                    self._add(batch)
        points = Points.concatenate([batch.points for batch in self._batches])
        island = np.concatenate([np.full(len(b.points), b.island) for b in self._batches])
        alive = np.isfinite(points.log_pi)
        log_total = np.full(len(points), -np.inf)
        for number, log_q in zip(self._numbers, self._log_q, strict=True):
            log_total = np.logaddexp(log_total, np.log(number) + np.concatenate(log_q))
        log_weight = points.log_pi[alive] - log_total[alive]
        return Recycled(points[alive], log_weight, island[alive], len(points))

    def _add(self, batch: Batch) -> None:
        known = [i for i, mixture in enumerate(self._mixtures) if mixture is batch.mixture]
        if not known:
            self._mixtures.append(batch.mixture)
            self._numbers.append(0)
            self._log_q.append([_log_density(batch.mixture, other) for other in self._batches])
            known = [len(self._mixtures) - 1]
        self._numbers[known[0]] += len(batch.points)
        self._batches.append(batch)
        for i, mixture in enumerate(self._mixtures):
            own = i == known[0]
            self._log_q[i].append(batch.log_q if own else _log_density(mixture, batch))


def _log_density(mixture: MarkerMixture | None, batch: Batch) -> Array:
    """Log density of a proposal at points that it did not draw."""
    points = batch.points
    if mixture is None:
        return points.log_m
    log_q = np.full(len(points), -np.inf)
    alive = np.flatnonzero(np.isfinite(points.log_pi))
    log_q[alive] = mixture.log_density(points.theta[alive])
    if not batch.even:
        marker = mixture.find_markers(points.theta)
        own = np.flatnonzero(marker >= 0)
        log_q[own] = mixture.without(marker[own], log_q[own])
    return log_q
