r"""Hamiltonian moves of the chains, where the densities of the path have gradients.

From x, a cluster r of the other island is drawn with the probability :math:`\rho_r(x)` and gives
the metric (the clusters as they are, without the wider copies and the maps that proposals have):
with its Cholesky factor C, positions are :math:`x = C q` and momenta v are standard
normal. Leapfrogs of size :math:`\epsilon` follow :math:`H = -\log p(Cq) + v^T v/2`, and the end is
accepted with probability

.. math:: \min\Big(1, \frac{p(x')\, e^{-v'^T v'/2}\, \rho_r(x')}{p(x)\, e^{-v^T v/2}\,
          \rho_r(x)}\Big).

For each r alone the leapfrogs are a reversible map that keeps volumes, and r is chosen with a
probability that depends on the state, hence its ratio; :math:`\epsilon` and the number of leaps do
not depend on the state. So the move leaves p invariant, whatever the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paims._arrays import Array
from paims.sampling._clusters import Clusters
from paims.sampling._path import log_tempered
from paims.sampling._proposal import by_island
from paims.sampling._target import Points, Slopes, Target
from paims.sampling._transition import Proposed

_WANTED = 0.75  # acceptance that the stride is adapted to, from level to level
_LOST = 1000.0  # fall of log p after which a path has left the density, and stays where it is
_ADDED = 1.0  # points of the cluster itself that sharpened metrics are estimated with
# A quarter of a turn in a Gaussian density forgets where it began; longer ones come back.
_FAR = 1.7
_NUMBERS = (3, 8)
_SHORTEST = 0.4  # share of the stride that a chain steps by at least
_MEAN = (1.0 + _SHORTEST) / 2.0


@dataclass(frozen=True)
class Leaps:
    """How far a Hamiltonian move goes.

    Attributes
    ----------
    stride : float
        Largest step, in units of the clusters' standard deviations.
    number : int
        Steps of a move; by default as many as make it a quarter of a turn.
    """

    stride: float
    number: int = 0

    def __post_init__(self) -> None:
        if not self.number:
            asked = _FAR / (_MEAN * self.stride)
            object.__setattr__(self, "number", int(np.clip(round(asked), *_NUMBERS)))

    @staticmethod
    def first(n_params: int) -> Leaps:
        """Strides before anything is known of the acceptance: they shrink as d^(-1/4)."""
        return Leaps(0.8 * n_params**-0.25)

    def adapted(self, acceptance: float) -> Leaps:
        """Longer strides after too many acceptances, shorter ones after too few."""
        return Leaps(self.stride * float(np.exp(acceptance - _WANTED)))


@dataclass(frozen=True)
class Flow:
    """The density of a level, and the metrics in which it is followed.

    Attributes
    ----------
    target : Target
    beta : float
    metrics : sequence of Clusters
        One for each island: the clusters of the island that it may see.
    """

    target: Target
    beta: float
    metrics: Sequence[Clusters]

    def sharpened(self, points: Points, slopes: Slopes) -> Flow:
        """Metrics that the slopes agree with, from the points of the islands that they are of."""
        slope = slopes.tempered(self.beta)
        of_others = [points.island == i for i in range(len(self.metrics))][::-1]
        metrics = [
            _sharpened(clusters, points.theta[rows], slope[rows])
            for clusters, rows in zip(self.metrics, of_others, strict=True)
        ]
        return replace(self, metrics=metrics)


def move(
    state: Proposed, slopes: Slopes, flow: Flow, leaps: Leaps, rng: np.random.Generator
) -> tuple[Proposed, Slopes, Array]:
    """Move every chain once.

    Parameters
    ----------
    state : Proposed
    slopes : Slopes
        There.
    flow : Flow
    leaps : Leaps
    rng : numpy.random.Generator

    Returns
    -------
    Proposed
        The chains afterwards.
    Slopes
        There: the next move needs no evaluation where it begins.
    ndarray of bool
        Which were accepted.
    """
    island, x = state.points.island, state.points.theta
    chol = np.empty((*x.shape, x.shape[1]))
    cluster, log_rho = np.empty(len(x), dtype=np.int64), np.empty(len(x))
    for clusters, rows in by_island(flow.metrics, island):
        chol[rows], cluster[rows], log_rho[rows] = clusters.draw(x[rows], rng)
    # A step of its own for each chain: one that resonates with the density does so for few.
    stride = leaps.stride * (_SHORTEST + (1.0 - _SHORTEST) * rng.random(len(x)))[:, None]
    velocity = rng.standard_normal(x.shape)
    energy = 0.5 * np.sum(velocity**2, axis=1)
    push = _push(chol, slopes.tempered(flow.beta))
    lost = np.zeros(len(x), dtype=bool)
    for _ in range(leaps.number):
        velocity = velocity + 0.5 * stride * push
        x = np.where(lost[:, None], x, x + stride * np.einsum("nij,nj->ni", chol, velocity))
        points, there = flow.target.evaluate_slopes(x, island)
        lost |= ~(log_tempered(points, flow.beta) > state.log_p - _LOST)
        push = np.where(lost[:, None], 0.0, _push(chol, there.tempered(flow.beta)))
        velocity = velocity + 0.5 * stride * push
    energy -= 0.5 * np.sum(velocity**2, axis=1)
    log_p = np.where(lost, -np.inf, log_tempered(points, flow.beta))
    log_rho_there = np.empty(len(x))
    for clusters, rows in by_island(flow.metrics, island):
        _, log_shares = clusters.log_responsibilities(x[rows])
        log_rho_there[rows] = log_shares[np.arange(len(rows)), cluster[rows]]
    with np.errstate(invalid="ignore"):
        log_ratio = log_p - state.log_p + energy + log_rho_there - log_rho
    log_uniform = np.log(rng.random(len(x)))
    took = np.asarray(log_uniform < np.where(np.isnan(log_ratio), -np.inf, log_ratio))
    rows = np.flatnonzero(took)
    moved = state.replaced(rows, unguided(points[rows], flow.beta))
    return moved, slopes.replaced(took, there), took


def _sharpened(clusters: Clusters, x: Array, slope: Array) -> Clusters:
    r"""Covariances between those of a cluster's points and the inverse ones of their slopes.

    With C of the points and A of the slopes it is the one S for which :math:`S A S = C`, the
    geometric mean of C and the inverse of A: of all Gaussians the one whose slopes differ least
    from those of the density. Slopes of a Gaussian density are linear in the points: S is then its
    covariance without any error as soon as there are more points than parameters, where that of C
    is of the order of :math:`\sqrt{d/n}`. Both are taken in units of the cluster, with a point of
    it added.
    """
    nearest = np.argmax(clusters.log_responsibilities(x)[1], axis=1)
    n_params = x.shape[1]
    cov = clusters.chol @ clusters.chol.transpose(0, 2, 1)
    for r, chol in enumerate(clusters.chol):
        own = np.flatnonzero(nearest == r)
        own = own[np.all(np.isfinite(slope[own]), axis=1)]
        if len(np.unique(x[own], axis=0)) <= n_params:
            continue
        white = np.linalg.solve(chol, (x[own] - x[own].mean(axis=0)).T)
        pushes = chol.T @ (slope[own] - slope[own].mean(axis=0)).T
        few = _ADDED * np.eye(n_params)
        root = _power((white @ white.T + few) / (len(own) + _ADDED), 0.5)
        of_slopes = (pushes @ pushes.T + few) / (len(own) + _ADDED)
        inner = _power(root @ of_slopes @ root, -0.5)
        cov[r] = chol @ root @ inner @ root @ chol.T
    return Clusters.of(clusters.share, clusters.mean, cov, np.zeros(n_params))


def _power(matrix: Array, exponent: float) -> Array:
    """Power of a symmetric positive definite matrix."""
    value, vector = np.linalg.eigh(matrix)
    return np.asarray((vector * np.maximum(value, np.finfo(float).tiny) ** exponent) @ vector.T)


def _push(chol: Array, slope: Array) -> Array:
    """Gradient in the metric of each chain's cluster."""
    return np.asarray(np.einsum("nij,ni->nj", chol, slope))


def unguided(points: Points, beta: float) -> Proposed:
    """Chains that no candidate of a mixture will be compared with: p_hat is left out."""
    return Proposed(points, log_tempered(points, beta), np.zeros(len(points)))
