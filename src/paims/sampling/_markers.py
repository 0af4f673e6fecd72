"""From the points of a level to the mixtures that propose: clusters, markers, kernels.

Points of an island are described by their clusters; markers are points thinned to the scheme's
limit, each with the covariance of its cluster; a mixture has a kernel at each marker.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paims._arrays import Array
from paims.sampling._clusters import Clusters, fit_clusters, single_cluster
from paims.sampling._path import log_tempered, systematic
from paims.sampling._proposal import MarkerMixture, Markers, choose_spread
from paims.sampling._scheme import Scheme
from paims.sampling._state import State
from paims.sampling._target import Points


def marker_mixtures(
    state: State,
    beta: float,
    weight: Array,
    scheme: Scheme,
    rng: np.random.Generator,
    box: tuple[Array, Array] | None = None,
) -> tuple[list[MarkerMixture], list[Clusters], float]:
    """The proposal mixture of each island, from the markers of the island that it may see.

    Also the clusters of these markers, without maps and tails, and the least importance efficiency
    of a mixture; 0 with the paper's kernels. Where it is low, clusters with maps that straighten
    them are tried, within ``box``, and taken if the points of the chains' own island are described
    better by them.
    """
    others = state.islands[::-1]  # with one island: its own
    described = [_described(state.points[rows], weight[rows], scheme) for rows in others]
    metrics = [one.clusters for one in described]
    markers = [_markers(one, beta, scheme, rng) for one in described]
    if not scheme.shrinking:
        spread = scheme.decayed_spread(state.points.theta.shape[1], state.level)
        mixtures = [MarkerMixture(other, spread, 1.0, scheme.n_jobs) for other in markers]
        return mixtures, metrics, 0.0
    chosen = []
    for rows, other, plain in zip(state.islands, others, markers, strict=True):
        judges = state.points[rows[systematic(weight[rows], scheme.n_judges, rng)]]
        log_p = log_tempered(judges, beta)
        best = choose_spread(plain, judges.theta, log_p, scheme.n_jobs)
        if box is not None and best.efficiency < scheme.bending:
            mapped = _described(state.points[other], weight[other], scheme, box)
            bent = _markers(mapped, beta, scheme, rng)
            if any(bent.clusters.bends):
                new = choose_spread(bent, judges.theta, log_p, scheme.n_jobs)
                best = min(best, new, key=lambda one: one.cost)
        chosen.append(best)
    return [one.mixture for one in chosen], metrics, min(one.efficiency for one in chosen)


class _Described(NamedTuple):
    """Weighted, distinct points, their clusters, and the cluster of each."""

    points: Points
    weight: Array
    clusters: Clusters
    label: Array


def _described(
    points: Points, weight: Array, scheme: Scheme, box: tuple[Array, Array] | None = None
) -> _Described:
    """Find the clusters of an island's points.

    None is proposed from less than ``scheme.least_share``: a cluster that has hardly any points
    left is not lost, and can win back what it should have.
    """
    _, first, inverse = np.unique(points.theta, axis=0, return_index=True, return_inverse=True)
    joint = np.bincount(inverse.ravel(), weights=weight)
    kept = joint > 1e-12 / len(joint)
    points, joint = points[first[kept]], joint[kept] / joint[kept].sum()
    if not scheme.shrinking:
        clusters = single_cluster(np.ascontiguousarray(points.theta), joint)
        return _Described(points, joint, clusters, np.zeros(len(points), dtype=np.int64))
    clusters, label = fit_clusters(points.theta, joint, box=box)
    share = np.bincount(label, weights=joint)
    clusters = clusters.steadied(share**2 / np.bincount(label, weights=joint**2))
    least = min(scheme.least_share, 0.5 / len(share))
    joint = joint * (np.maximum(share, least) / share)[label]
    return _Described(points, joint, clusters, label)


def _markers(
    described: _Described, beta: float, scheme: Scheme, rng: np.random.Generator
) -> Markers:
    """Markers, thinned to the scheme's limit; their clusters are those of all points."""
    points, joint, clusters, label = described
    if len(points) > scheme.max_markers:
        order = np.argsort(label, kind="stable")
        index = order[systematic(joint[order], scheme.max_markers, rng)]
        index, count = np.unique(index, return_counts=True)
        alive, label = np.unique(label[index], return_inverse=True)
        points, joint, clusters = points[index], count.astype(float), clusters[alive]
    if scheme.wide_share > 0.0:
        clusters, label = _with_tails(clusters, label, scheme.wide_share)
    return Markers.of(points.theta, joint, log_tempered(points, beta), clusters, label)


def _with_tails(clusters: Clusters, label: Array, share: float) -> tuple[Clusters, Array]:
    """Give some of each cluster's markers wider kernels, so that the mixture has heavier tails.

    The widened clusters follow the others, 1 + 2/sqrt(d) times as wide.
    """
    order = np.argsort(label, kind="stable")
    rank = np.empty(len(label), dtype=np.int64)  # of each marker within its cluster
    first = np.searchsorted(label[order], label[order])
    rank[order] = np.arange(len(label)) - first
    every = round(1.0 / share)
    wide = rank % every == every // 2
    label = np.where(wide, label + len(clusters), label)
    kept, label = np.unique(label, return_inverse=True)
    return clusters.widened(1.0 + 2.0 / np.sqrt(clusters.mean.shape[1]))[kept], label
