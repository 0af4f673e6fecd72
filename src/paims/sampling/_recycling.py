"""Recycling: first-stage candidates as one deterministic-mixture importance sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from paims._arrays import Array
from paims.sampling._path import effective_size, log_sum_exp, normalised
from paims.sampling._proposal import MarkerMixture
from paims.sampling._target import Points

RELIABLE_K = 0.7
_USEFUL = 0.1


@dataclass(frozen=True, eq=False)
class Batch:
    """Points of one island and the mixture that they were drawn from; None is the reference.

    Attributes
    ----------
    mixture : MarkerMixture or None
    points : Points
    log_q : ndarray, shape (n,)
        Log density of that mixture at its points.
    quasi_random : bool
        Whether the points are a Sobol' set of the reference.
    other_log_q : dict
        Log densities of other mixtures at the points, kept since they cost much. They follow from
        the rest, so this may be emptied at any time.
    """

    mixture: MarkerMixture | None
    points: Points
    log_q: Array
    quasi_random: bool = False
    other_log_q: dict[MarkerMixture, Array] = field(default_factory=dict, repr=False)

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
    n_drawn : int
        Number of points drawn, those of zero density included.
    """

    points: Points
    log_weight: Array
    n_drawn: int

    @property
    def log_evidence(self) -> float:
        """Log of the estimate of the integral of pi."""
        return log_sum_exp(self.log_weight)

    @property
    def effective_size(self) -> float:
        """Effective number of draws."""
        return effective_size(self.log_weight)


def recycle(pool: Sequence[Batch]) -> Recycled:
    """Weigh the points of a pool against the mixture of all proposals that made it.

    With n_k points from proposal q_k, the weight of any point x is pi(x) / sum_k n_k q_k(x)
    (the balance heuristic).
    """
    batches = _useful(pool)
    points = Points.concatenate([batch.points for batch in batches])
    log_total = np.full(len(points), -np.inf)
    for mixture in dict.fromkeys(batch.mixture for batch in batches):
        number = sum(len(batch.points) for batch in batches if batch.mixture is mixture)
        log_q = np.concatenate([_log_density(mixture, batch) for batch in batches])
        log_total = np.logaddexp(log_total, np.log(number) + log_q)
    alive = np.isfinite(points.log_pi)
    return Recycled(points[alive], points.log_pi[alive] - log_total[alive], len(points))


def _useful(pool: Sequence[Batch]) -> list[Batch]:
    """Leave out batches of high temperature, which say next to nothing of the target.

    The reference's draws always stay, as they bound the weights. If nothing else is left, the
    last batch of each island stays too.
    """
    useful = [batch for batch in pool if batch.mixture is None or batch.efficiency >= _USEFUL]
    if any(batch.mixture is not None for batch in useful):
        return useful
    return useful + [batch for batch in pool[-2:] if batch.mixture is not None]


def _log_density(mixture: MarkerMixture | None, batch: Batch) -> Array:
    """Log density of a proposal at the points of a batch.

    A candidate that has become a marker of a later mixture would see that mixture inflated by its
    own kernel, which biases the evidence down; there the mixture is taken without it. A Sobol'
    set of the reference keeps the whole sum: it has no second point near a point, and the own
    kernel stands for that.
    """
    points = batch.points
    if mixture is batch.mixture:
        return batch.log_q
    if mixture is None:
        return points.log_m
    if mixture not in batch.other_log_q:
        log_q = np.full(len(points), -np.inf)
        alive = np.flatnonzero(np.isfinite(points.log_pi))
        log_q[alive] = mixture.log_density(points.theta[alive])
        if not batch.quasi_random:
            marker = mixture.find_markers(points.theta)
            own = np.flatnonzero(marker >= 0)
            log_q[own] = mixture.log_density_without(marker[own], log_q[own])
        batch.other_log_q[mixture] = log_q
    return batch.other_log_q[mixture]


def pareto_k(log_weight: Array) -> float:
    """Estimate the shape k-hat of the generalised Pareto tail of the weights.

    Zhang & Stephens (2009), "A new and efficient estimation method for the generalized Pareto
    distribution", with the prior of Vehtari et al. (2024), "Pareto smoothed importance sampling".
    ArviZ has it too, as an extra that takes a second to import; the tests compare the two.

    Below 0.5 the weights have a finite variance; above 0.7 estimates from them are not reliable.

    Parameters
    ----------
    log_weight : ndarray, shape (n,)

    Returns
    -------
    float
        k-hat; inf when there are too few points to tell.
    """
    n = len(log_weight)
    n_tail = int(np.ceil(min(0.2 * n, 3 * np.sqrt(n))))
    if n_tail < 5:
        return float("inf")
    ordered = np.sort(log_weight - np.max(log_weight))
    cutoff = max(float(ordered[-n_tail - 1]), float(np.log(np.finfo(float).tiny)))
    tail = ordered[ordered > cutoff]
    if ordered[-1] - ordered[0] < 1e-10:
        return 0.0  # equal weights have no tail
    if len(tail) <= 4:
        return float("inf")
    return _fit_shape(np.exp(tail) - np.exp(cutoff))


def _fit_shape(x: Array) -> float:
    """Shape of a generalised Pareto distribution with location 0, from ascending exceedances."""
    n = len(x)
    n_grid = 30 + int(np.sqrt(n))
    quartile = max(x[int(n / 4 + 0.5) - 1], np.finfo(float).tiny)
    grid = 1 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))
    grid = grid / (3 * quartile) + 1 / x[-1]
    shape = np.mean(np.log1p(-grid[:, None] * x), axis=1)
    log_likelihood = n * (np.log(-(grid / shape)) - shape - 1)
    weight = normalised(log_likelihood)
    k = float(np.mean(np.log1p(-np.sum(grid * weight) * x)))
    # A weak prior towards 0.5 steadies the estimate from short tails.
    return k * n / (n + 10) + 0.5 * 10 / (n + 10)
