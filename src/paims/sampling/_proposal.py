"""The global proposal: a mixture of kernels around markers (paper, eq. approx_comp).

Kernel of marker theta_j, which belongs to cluster r with mean mu_r and covariance Sigma_r::

    q(x | theta_j) = N(x | a theta_j + (1 - a) mu_r, c^2 Sigma_r)

With a = 1 it is the paper's random walk from the marker. With a = sqrt(1 - c^2) the mixture keeps
the covariance of each cluster whatever the spread c: from a kernel density estimate (small c) to
a Gaussian mixture (c = 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from paims._arrays import Array, IntArray
from paims._parallel import for_chunks
from paims.sampling import _compiled
from paims.sampling._clusters import Clusters
from paims.sampling._path import log_mean_exp, log_sum_exp_rows

_Thing = TypeVar("_Thing")

_CHUNK = 128
_NONE = np.empty(0)
N_REPLICATES = 4
SPREADS = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)


@dataclass(frozen=True)
class Markers:
    """Weighted points in order of their clusters.

    Attributes
    ----------
    theta : ndarray, shape (n, n_params)
    weight : ndarray, shape (n,)
        Sums to 1.
    log_p : ndarray, shape (n,)
        Log density of the level there.
    offset : ndarray of int, shape (n_clusters + 1,)
        The markers of cluster r are ``offset[r]:offset[r + 1]``.
    clusters : Clusters
    """

    theta: Array
    weight: Array
    log_p: Array
    offset: Array
    clusters: Clusters

    @staticmethod
    def of(theta: Array, weight: Array, log_p: Array, clusters: Clusters, label: Array) -> Markers:
        """Sort by cluster, and inside a cluster along its first axis.

        The order matters only to the quasi-random choice of markers, which stratifies along it.
        """
        y, _ = clusters.straightened_by(theta, label)
        first = np.einsum("ni,ni->n", clusters.inv_chol[label][:, 0], y - clusters.mean[label])
        order = np.lexsort((first, label))
        offset = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=len(clusters)))])
        return Markers(
            np.ascontiguousarray(theta[order]),
            weight[order] / weight.sum(),
            log_p[order],
            offset.astype(np.int64),
            clusters,
        )

    @cached_property
    def label(self) -> Array:
        """The cluster of each marker."""
        return np.repeat(np.arange(len(self.clusters)), np.diff(self.offset))

    @cached_property
    def straightened(self) -> tuple[Array, Array]:
        """Markers under the maps of their clusters, and the log Jacobians."""
        return self.clusters.straightened_by(self.theta, self.label)

    @cached_property
    def white(self) -> Array:
        """Markers in the coordinates of their clusters, L_r^-1 (theta_j - mu_r); (n_params, n)."""
        centred = self.straightened[0] - self.clusters.mean[self.label]
        return np.ascontiguousarray(
            np.einsum("nab,nb->an", self.clusters.inv_chol[self.label], centred)
        )


@dataclass(frozen=True, eq=False)
class MarkerMixture:
    """The mixture of kernels around markers, with one spread. Two are equal if they are one.

    Attributes
    ----------
    markers : Markers
    spread : float
        c of the kernels.
    retained : float
        a of the kernels: the share of a marker's distance from the mean of its cluster that the
        centre of its kernel keeps.
    n_jobs : int, optional
    """

    markers: Markers
    spread: float
    retained: float
    n_jobs: int | None = None

    @staticmethod
    def shrinking(markers: Markers, spread: float, n_jobs: int | None = None) -> MarkerMixture:
        """Kernels that keep the covariance of each cluster: a = sqrt(1 - c^2)."""
        return MarkerMixture(markers, spread, float(np.sqrt(1 - spread**2)), n_jobs)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw candidates ``(n, n_params)`` and the index of the marker that each came from.

        The draws are quasi-random (:func:`sobol`): each is exactly distributed as the mixture,
        together they cover it more evenly than independent draws would.
        """
        n_params = self.markers.theta.shape[1]
        u = sobol(n, n_params + 1, rng)
        edges = np.cumsum(self.markers.weight)
        j = np.minimum(np.searchsorted(edges, u[:, 0] * edges[-1], side="right"), len(edges) - 1)
        r = self.markers.label[j]
        clusters = self.markers.clusters
        marker = self.markers.straightened[0][j]
        centre = clusters.mean[r] + self.retained * (marker - clusters.mean[r])
        step = np.einsum("nab,nb->na", clusters.chol[r], ndtri(u[:, 1:]))
        return clusters.bent(centre + self.spread * step, r), j

    def log_density(self, x: Array) -> Array:
        """Log density of the mixture, without the local acceptance."""
        if self.retained == 0.0:
            return log_sum_exp_rows(self._log_clusters(x))
        out = np.empty(len(x))
        self._sums(x, np.zeros(len(x)), out, _NONE)
        return out

    def log_densities(self, x: Array, log_p: Array) -> tuple[Array, Array]:
        """Log density of the mixture, and log p_hat, which has the local acceptance inside.

        p_hat(x) = sum_j w_j q(x | theta_j) min(1, p(x) / p(theta_j)), eq. approx_comp.
        """
        if self.retained == 0.0:
            return self.log_density(x), self.log_p_hat(x, log_p)
        plain, local = np.empty(len(x)), np.empty(len(x))
        self._sums(x, log_p, plain, local)
        return plain, local

    def log_p_hat(self, x: Array, log_p: Array) -> Array:
        """Log p_hat alone."""
        if self.retained == 0.0:
            joint = self._log_clusters(x) + self._log_local_acceptance(log_p)
            return log_sum_exp_rows(joint)
        local = np.empty(len(x))
        self._sums(x, log_p, _NONE, local)
        return local

    def find_markers(self, x: Array) -> Array:
        """Index of the marker that each point is, -1 for those that are none."""
        theta = self.markers.theta
        order = np.argsort(theta[:, 0], kind="stable")
        first = theta[order, 0]
        place = np.searchsorted(first, x[:, 0])
        found = np.full(len(x), -1)
        for tie in range(int(np.unique(first, return_counts=True)[1].max())):
            candidate = order[np.minimum(place + tie, len(order) - 1)]
            found = np.where(np.all(theta[candidate] == x, axis=1), candidate, found)
        return found

    def log_density_without(self, marker: Array, log_density: Array) -> Array:
        """Log density at markers, given that of the whole mixture there, without their kernels."""
        weight = self.markers.weight[marker]
        white = self.markers.white[:, marker]
        r = self.markers.label[marker]
        log_det = np.sum(
            np.log(np.diagonal(self.markers.clusters.inv_chol, axis1=1, axis2=2)), axis=1
        )
        n_params = len(white)
        log_own = (
            np.log(weight)
            + log_det[r]
            + self.markers.straightened[1][marker]
            - n_params * (np.log(self.spread) + 0.5 * np.log(2 * np.pi))
            - 0.5 * ((1 - self.retained) / self.spread) ** 2 * np.sum(white**2, axis=0)
        )
        share = np.minimum(np.exp(log_own - log_density), 1 - 1e-9)
        rest = np.maximum(1.0 - weight, 1e-9)  # of a single marker nothing is left
        return np.asarray(log_density + np.log1p(-share) - np.log(rest))

    def _log_clusters(self, x: Array) -> Array:
        """Log of share times density of each cluster: at c = 1 its markers all have its kernel."""
        clusters, offset = self.markers.clusters, self.markers.offset
        share = np.add.reduceat(self.markers.weight, offset[:-1])
        log_density = np.empty((len(x), len(clusters)))
        for members, y, log_jacobian in clusters.straightened(x):
            for r in members:
                white = (y - clusters.mean[r]) @ clusters.inv_chol[r].T
                log_det = np.sum(np.log(np.diag(clusters.inv_chol[r])))
                log_density[:, r] = np.log(share[r]) + log_det - 0.5 * np.sum(white**2, axis=1)
                if log_jacobian is not None:
                    log_density[:, r] += log_jacobian
        return np.asarray(log_density - 0.5 * x.shape[1] * np.log(2 * np.pi))

    def _log_local_acceptance(self, log_p: Array) -> Array:
        """Log of the mean of min(1, p / p_j) over the markers of each cluster, at c = 1."""
        out = np.empty((len(log_p), len(self.markers.clusters)))
        for r in range(len(self.markers.clusters)):
            members = slice(self.markers.offset[r], self.markers.offset[r + 1])
            order = np.argsort(self.markers.log_p[members])
            level = self.markers.log_p[members][order]
            weight = self.markers.weight[members][order]
            weight = weight / weight.sum()
            below = np.concatenate([[0.0], np.cumsum(weight)])
            log_above = np.logaddexp.accumulate((np.log(weight) - level)[::-1])[::-1]
            log_above = np.append(log_above, -np.inf)
            k = np.searchsorted(level, log_p, side="right")
            with np.errstate(divide="ignore", invalid="ignore"):
                beyond = np.where(np.isneginf(log_above[k]), -np.inf, log_p + log_above[k])
                out[:, r] = np.logaddexp(np.log(below[k]), beyond)
        return out

    @cached_property
    def _tables(self) -> tuple[Array, Array]:
        """What the exponent of each kernel is made of: its slope in L_r^-1 (x - mu_r), and base.

        They belong to the markers alone.
        """
        markers, clusters = self.markers, self.markers.clusters
        n_params = markers.theta.shape[1]
        log_norm = (
            np.sum(np.log(np.diagonal(clusters.inv_chol, axis1=1, axis2=2)), axis=1)
            - n_params * np.log(self.spread)
            - 0.5 * n_params * np.log(2 * np.pi)
        )
        precision = 1.0 / self.spread**2
        base = (
            np.log(markers.weight)
            + log_norm[markers.label]
            - 0.5 * precision * self.retained**2 * np.sum(markers.white**2, axis=0)
        )
        return np.ascontiguousarray(self.retained * precision * markers.white), base

    def _sums(self, x: Array, log_p: Array, plain: Array, local: Array) -> None:
        """Fill the log sums over all markers, map by map; those of an empty array are left out."""
        clusters = self.markers.clusters
        if not any(clusters.bends):
            self._add_sums(np.arange(len(clusters)), x, log_p, plain, local)
            return
        plain[:], local[:] = -np.inf, -np.inf
        for members, y, log_jacobian in clusters.straightened(x):
            for some in [members] if log_jacobian is None else members[:, None]:
                parts = np.empty_like(plain), np.empty_like(local)
                self._add_sums(some, y, log_p, *parts)
                for total, part in zip((plain, local), parts, strict=True):
                    if len(part):
                        more = part if log_jacobian is None else part + log_jacobian
                        np.logaddexp(total, more, out=total)

    def _add_sums(
        self, members: Array, x: Array, log_p: Array, plain: Array, local: Array
    ) -> None:
        """Fill the log sums over the markers of some clusters, at points under their map."""
        markers, clusters = self.markers, self.markers.clusters
        slope, base = self._tables
        x, log_p_marker = np.ascontiguousarray(x), markers.log_p
        mean, inv_chol, offset = clusters.mean, clusters.inv_chol, markers.offset
        if len(members) < len(clusters):
            own = np.flatnonzero(np.isin(markers.label, members))
            slope, base = np.ascontiguousarray(slope[:, own]), base[own]
            log_p_marker, mean, inv_chol = log_p_marker[own], mean[members], inv_chol[members]
            offset = np.concatenate([[0], np.cumsum(np.diff(offset)[members])]).astype(np.int64)

        def work(start: int, stop: int) -> None:
            _compiled.mixture_sums(
                x,
                log_p,
                mean,
                inv_chol,
                slope,
                base,
                offset,
                log_p_marker,
                0.5 / self.spread**2,
                plain,
                local,
                start,
                stop,
            )

        for_chunks(work, len(x), _CHUNK, self.n_jobs)


def by_island(things: Sequence[_Thing], island: IntArray) -> Iterator[tuple[_Thing, Array]]:
    """Give the mixture of each island, or whatever it has, with the rows of its points."""
    for i, thing in enumerate(things):
        yield thing, np.flatnonzero(island == i)


class Choice(NamedTuple):
    """A mixture that was chosen: its importance efficiency, and log E_p[p / q], the criterion."""

    mixture: MarkerMixture
    efficiency: float
    cost: float


def choose_spread(markers: Markers, x: Array, log_p: Array, n_jobs: int | None = None) -> Choice:
    """Choose the spread whose mixture is the best importance density, without any evaluation.

    The importance efficiency of q for a normalised p is 1 / E_p[p / q], for any p
    1 / (E_p[p / q] E_p[q / p]); the expectations are taken over points of p that are independent
    of the markers.

    Parameters
    ----------
    markers : Markers
    x : ndarray, shape (n, n_params)
        Points of p, of the other island.
    log_p : ndarray, shape (n,)
        Log density there.
    n_jobs : int, optional
    """
    best: tuple[float, MarkerMixture, Array] | None = None
    for spread in SPREADS:
        mixture = MarkerMixture.shrinking(markers, spread, n_jobs)
        log_ratio = log_p - mixture.log_density(x)
        cost = log_mean_exp(log_ratio)
        if best is None or cost < best[0]:
            best = cost, mixture, log_ratio
    assert best is not None
    cost, mixture, log_ratio = best
    return Choice(mixture, float(np.exp(-cost - log_mean_exp(-log_ratio))), cost)


def sobol(n: int, n_dims: int, rng: np.random.Generator) -> Array:
    """Return ``n`` quasi-random points inside the open unit cube.

    They are a scrambled Sobol' sequence in ``N_REPLICATES`` blocks of a power of two; row i
    belongs to block i mod ``N_REPLICATES``, in random order within it.
    """
    exponent = int(np.ceil(np.log2(max(n / N_REPLICATES, 1.0))))
    engine = qmc.Sobol(n_dims, scramble=True, bits=52, rng=rng)
    blocks = engine.random(N_REPLICATES * 2**exponent).reshape(N_REPLICATES, -1, n_dims)
    out = np.empty((n, n_dims))
    for r, block in enumerate(blocks):
        size = len(range(r, n, N_REPLICATES))
        out[r::N_REPLICATES] = block[rng.permutation(size)]
    return np.clip(out, 2.0**-53, 1 - 2.0**-53)
