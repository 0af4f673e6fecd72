"""Recycling: first-stage candidates as one deterministic-mixture importance sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from paims._arrays import Array, IntArray
from paims.sampling._path import effective_size, log_sum_exp, normalised
from paims.sampling._proposal import N_REPLICATES, MarkerMixture
from paims.sampling._target import Points

RELIABLE_K = 0.7
SETTLED_K = 0.5
HEAVY_K = 0.6  # what is said to be heavy: the estimate itself is uncertain by about 0.1
_USEFUL = 0.1
_ENDED_K = 0.55  # what the k of a tail that ends early counts as at most


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
    replicate : ndarray of int, shape (n,)
        Points of the same proposal have ``N_REPLICATES`` numbers in a row; see
        :func:`replicate_variance`.
    """

    points: Points
    log_weight: Array
    replicate: IntArray

    @cached_property
    def log_evidence(self) -> float:
        """Log of the estimate of the integral of pi."""
        return log_sum_exp(self.log_weight)

    @cached_property
    def weight(self) -> Array:
        """Weights that sum to 1."""
        return np.exp(self.log_weight - self.log_evidence)

    @cached_property
    def pareto_k(self) -> float:
        """Shape of the tail of the weights; see :func:`pareto_k`.

        Where two populations of points have weights of different size, as where a mode was found
        late, the fit takes the larger ones for a tail without end. Where no weight is half as
        large as those that truncated importance sampling would cut (Ionides 2008), 1 / sqrt(n) of
        all, the tail has ended before any counts.
        """
        k = pareto_k(self.log_weight)
        ended = np.max(self.weight, initial=0.0) < 0.5 / np.sqrt(max(len(self.log_weight), 1))
        return min(k, _ENDED_K) if ended else k

    @property
    def reliable(self) -> bool:
        """Whether the tail of the weights lets estimates converge."""
        return self.pareto_k < RELIABLE_K

    def settled(self, wanted: float) -> bool:
        """Whether the sample is large enough, and more of it unlikely to change the evidence.

        A tail that is a little heavy is left as it is once there is twice the sample.
        """
        enough = 2.0 * wanted if self.pareto_k > SETTLED_K else wanted
        return self.pareto_k < HEAVY_K and self.islands_agree and self.effective_size >= enough

    @property
    def effective_size(self) -> float:
        """Effective number of draws."""
        return effective_size(self.log_weight)

    @cached_property
    def gap(self) -> tuple[float, float]:
        """How far the log evidences of two islands are apart, and what is expected; 0 for one."""
        own = [self.points.island == i for i in np.unique(self.points.island)]
        if len(own) != 2:
            return 0.0, 0.0
        total = [float(self.weight[rows].sum()) for rows in own]
        variance = [
            replicate_variance(self.weight[rows], self.replicate[rows]) / max(part, 1e-150) ** 2
            for rows, part in zip(own, total, strict=True)
        ]
        with np.errstate(divide="ignore"):
            apart = np.abs(np.log(total[0]) - np.log(total[1]))
        return float(apart), float(np.sqrt(sum(variance)))

    @property
    def islands_agree(self) -> bool:
        """Whether the evidences of the islands differ by no more than they should."""
        gap, expected = self.gap
        return gap <= 3.0 * expected + 0.01

    @property
    def log_evidence_error(self) -> float:
        """Standard error of the log evidence: by replicates, or half the gap of the islands.

        The gap counts if it is more than twice what the replicates make one expect. Weights with
        a heavy tail have a larger variance than a sample of them shows, and the sum is more often
        too small than too large: the error grows by 1 / (1 - k).
        """
        gap, expected = self.gap
        error = float(np.sqrt(replicate_variance(self.weight, self.replicate)))
        if gap > 2.0 * expected:
            error = max(error, 0.5 * gap)
        return error / (1.0 - min(max(self.pareto_k, 0.0), RELIABLE_K))


def recycle(pool: Sequence[Batch]) -> Recycled:
    """Weigh the points of each island against the mixture of all proposals that made them.

    With n_k points from proposal q_k, the weight of any point x is pi(x) / sum_k n_k q_k(x)
    (the balance heuristic). The proposals of an island were built from the points of the other,
    so no point sees a proposal that was fitted to it; against those of both islands the evidence
    is too low, by 0.02 to 0.06 in ten to twenty dimensions.
    """
    islands = sorted({int(batch.points.island[0]) for batch in pool})
    parts = [
        _weighed([batch for batch in pool if batch.points.island[0] == island])
        for island in islands
    ]
    return Recycled(
        Points.concatenate([part.points for part in parts]),
        np.concatenate([part.log_weight for part in parts]) - float(np.log(len(parts))),
        joined_replicates([part.replicate for part in parts]),
    )


def _weighed(pool: Sequence[Batch]) -> Recycled:
    """Weigh the points of one island."""
    batches = _useful(pool)
    points = Points.concatenate([batch.points for batch in batches])
    log_total = np.full(len(points), -np.inf)
    mixtures = list(dict.fromkeys(batch.mixture for batch in batches))
    for mixture in mixtures:
        number = sum(len(batch.points) for batch in batches if batch.mixture is mixture)
        log_q = np.concatenate([_log_density(mixture, batch) for batch in batches])
        log_total = np.logaddexp(log_total, np.log(number) + log_q)
    replicate = [
        N_REPLICATES * mixtures.index(batch.mixture) + np.arange(len(batch.points)) % N_REPLICATES
        for batch in batches
    ]
    alive = np.isfinite(points.log_pi)
    return Recycled(
        points[alive], points.log_pi[alive] - log_total[alive], np.concatenate(replicate)[alive]
    )


def joined_replicates(parts: Sequence[IntArray]) -> IntArray:
    """Replicates of several sets of points with numbers that do not meet."""
    out, start = [], 0
    for part in parts:
        out.append(part + start)
        start += N_REPLICATES * (int(np.max(part, initial=0)) // N_REPLICATES + 1)
    return np.concatenate(out)


def replicate_variance(values: Array, replicate: IntArray) -> float:
    """Variance of the sum of ``values`` over the points, from the sums over their replicates.

    The proposals are taken as given. Each drew its points as four blocks of one quasi-random
    sequence, whose sums are taken as independent. The whole of a smooth sum is better than that;
    to tell by how much from so few blocks makes the error more noisy than it is worth.
    """
    n_groups = int(np.max(replicate, initial=0)) // N_REPLICATES + 1
    total = np.bincount(replicate, weights=values, minlength=n_groups * N_REPLICATES)
    blocks = total.reshape(n_groups, N_REPLICATES)
    return N_REPLICATES * float(np.sum(np.var(blocks, axis=1, ddof=1)))


def _useful(pool: Sequence[Batch]) -> list[Batch]:
    """Leave out batches of high temperature, which say next to nothing of the target.

    The reference's draws always stay, as they bound the weights, and so do the last two batches:
    a mode may have its only points there.
    """
    last = pool[-2:]
    return [
        batch
        for batch in pool
        if batch.mixture is None or batch in last or batch.efficiency >= _USEFUL
    ]


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
