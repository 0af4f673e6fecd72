r"""Hamiltonian moves of the chains, where the densities of the path have gradients.

From x, a cluster r of the other island is drawn with the probability :math:`\rho_r(x)` and gives
the metric: with its Cholesky factor C, positions are :math:`x = C q` and momenta v are standard
normal. Leapfrogs of size :math:`\epsilon` follow :math:`H = -\log p(Cq) + v^T v/2`, and the end is
accepted with probability

.. math:: \min\Big(1, \frac{p(x')\, e^{-v'^T v'/2}\, \rho_r(x')}{p(x)\, e^{-v^T v/2}\,
          \rho_r(x)}\Big).

For each r alone the leapfrogs are a reversible map that keeps volumes, and r is chosen with a
probability that depends on the state, hence its ratio; :math:`\epsilon` and the number of leaps do
not depend on the state. So the move leaves p invariant, whatever the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paims._arrays import Array
from paims.sampling._path import log_tempered
from paims.sampling._proposal import by_island
from paims.sampling._target import Points
from paims.sampling._transition import Kernel, Proposed

_WANTED = 0.75  # acceptance that the stride is adapted to, from level to level
_LOST = 1000.0  # fall of log p after which a path has left the density, and stays where it is
N_LEAPS = 6


@dataclass(frozen=True)
class Leaps:
    """How far a Hamiltonian move goes.

    Attributes
    ----------
    stride : float
        Largest step, in units of the clusters' standard deviations.
    number : int
        Steps of a move.
    """

    stride: float
    number: int = N_LEAPS

    @staticmethod
    def first(n_params: int) -> Leaps:
        """Strides before anything is known of the acceptance: they shrink as d^(-1/4)."""
        return Leaps(0.8 * n_params**-0.25)

    def adapted(self, acceptance: float) -> Leaps:
        """Longer strides after too many acceptances, shorter ones after too few."""
        return Leaps(self.stride * float(np.exp(acceptance - _WANTED)), self.number)


def move(
    state: Proposed, kernel: Kernel, leaps: Leaps, rng: np.random.Generator
) -> tuple[Proposed, Array]:
    """Move every chain once.

    Returns
    -------
    Proposed
        The chains afterwards.
    ndarray of bool
        Which were accepted.
    """
    island, x = state.points.island, state.points.theta
    chol = np.empty((*x.shape, x.shape[1]))
    cluster, log_rho = np.empty(len(x), dtype=np.int64), np.empty(len(x))
    for mixture, rows in by_island(kernel.mixtures, island):
        chol[rows], cluster[rows], log_rho[rows] = mixture.markers.clusters.draw(x[rows], rng)
    # A step of its own for each chain: one that resonates with the density does so for few.
    stride = leaps.stride * (0.4 + 0.6 * rng.random(len(x)))[:, None]
    velocity = rng.standard_normal(x.shape)
    energy = 0.5 * np.sum(velocity**2, axis=1)
    points, slopes = kernel.target.evaluate_slopes(x, island)
    push = _push(chol, slopes.tempered(kernel.beta))
    lost = np.zeros(len(x), dtype=bool)
    for _ in range(leaps.number):
        velocity = velocity + 0.5 * stride * push
        x = np.where(lost[:, None], x, x + stride * np.einsum("nij,nj->ni", chol, velocity))
        points, slopes = kernel.target.evaluate_slopes(x, island)
        lost |= ~(log_tempered(points, kernel.beta) > state.log_p - _LOST)
        push = np.where(lost[:, None], 0.0, _push(chol, slopes.tempered(kernel.beta)))
        velocity = velocity + 0.5 * stride * push
    energy -= 0.5 * np.sum(velocity**2, axis=1)
    log_p = np.where(lost, -np.inf, log_tempered(points, kernel.beta))
    log_rho_there = np.empty(len(x))
    for mixture, rows in by_island(kernel.mixtures, island):
        _, there = mixture.markers.clusters.log_responsibilities(x[rows])
        log_rho_there[rows] = there[np.arange(len(rows)), cluster[rows]]
    with np.errstate(invalid="ignore"):
        log_ratio = log_p - state.log_p + energy + log_rho_there - log_rho
    log_uniform = np.log(rng.random(len(x)))
    took = np.asarray(log_uniform < np.where(np.isnan(log_ratio), -np.inf, log_ratio))
    rows = np.flatnonzero(took)
    return state.replaced(rows, unguided(points[rows], kernel.beta)), took


def _push(chol: Array, slope: Array) -> Array:
    """Gradient in the metric of each chain's cluster."""
    return np.asarray(np.einsum("nij,ni->nj", chol, slope))


def unguided(points: Points, beta: float) -> Proposed:
    """Chains that no candidate of a mixture will be compared with: p_hat is left out."""
    return Proposed(points, log_tempered(points, beta), np.zeros(len(points)))
