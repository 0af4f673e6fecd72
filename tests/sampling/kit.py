"""What the tests of the sampler share: a density with exact draws, mixtures of markers, z-scores.

`Toy` is a mixture of two Gaussians of different shape, near enough to each other that a point
between them may belong to either: clusters, second stages and local acceptances all matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import lognorm, multivariate_normal
from tests import targets

import paims
from paims.sampling import Reference
from paims.sampling._bend import Bend, Coordinate
from paims.sampling._clusters import Clusters, fit_clusters, single_cluster
from paims.sampling._density import Density
from paims.sampling._proposal import MarkerMixture, Markers
from paims.sampling._target import Points, Target
from paims.sampling._warp import Warp

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Toy:
    """A normalised mixture of Gaussians in two dimensions; mode 1 is the narrow one."""

    share: Floats
    mean: Floats
    cov: Floats

    def log_density(self, x: Floats) -> Floats:
        each = [
            np.log(s) + multivariate_normal(m, c).logpdf(x).reshape(len(x))
            for s, m, c in zip(self.share, self.mean, self.cov, strict=True)
        ]
        return np.asarray(logsumexp(each, axis=0))

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        chosen = rng.choice(len(self.share), size=n, p=self.share)
        step = np.einsum(
            "nab,nb->na", np.linalg.cholesky(self.cov)[chosen], rng.standard_normal((n, 2))
        )
        return np.asarray(self.mean[chosen] + step)

    @property
    def first_moment(self) -> Floats:
        return np.asarray(self.share @ self.mean)

    @property
    def second_moment(self) -> Floats:
        variances = np.diagonal(self.cov, axis1=1, axis2=2)
        return np.asarray(self.share @ (self.mean**2 + variances))


TOY = Toy(
    np.array([0.4, 0.6]),
    np.array([[-1.0, 0.0], [1.5, 0.5]]),
    np.array([[[1.0, 0.6], [0.6, 0.8]], [[0.15, -0.05], [-0.05, 0.1]]]),
)


def wide_target(log_density: Any = TOY.log_density) -> Target:
    """The toy with a reference that cuts nothing off."""
    return target_of(log_density, paims.Normal([0.0, 0.0], 100.0))


def target_of(log_density: Any, reference: Reference) -> Target:
    """A density with its reference, evaluated in one call."""
    return Target(Density(log_density), reference)


def points_of(theta: Floats, log_pi: Floats, log_m: Floats) -> Points:
    """Points of one island."""
    return Points(theta, log_pi, log_m, np.zeros(len(theta), dtype=np.int64))


def on_islands(target: Target, draws: Sequence[Floats]) -> Points:
    """A population that has these draws on its islands."""
    island = np.repeat(np.arange(len(draws)), [len(theta) for theta in draws])
    return target.evaluate(np.concatenate(list(draws)), island)


def as_points(log_density: Any, theta: Floats) -> Points:
    """Points of a density, with the wide reference."""
    return wide_target(log_density).evaluate(theta)


def markers_of(
    theta: Floats, log_p: Floats, weight: Floats | None = None, clustered: bool = True
) -> Markers:
    """Weighted markers with their clusters, or with one cluster for all."""
    w = np.full(len(theta), 1.0) if weight is None else weight
    w = w / w.sum()
    if clustered:
        clusters, label = fit_clusters(theta, w)
    else:
        clusters = single_cluster(np.ascontiguousarray(theta), w)
        label = np.zeros(len(theta), dtype=np.int64)
    return Markers.of(theta, w, log_p, clusters, label)


def labelled_markers(theta: Floats, log_p: Floats, weight: Floats, label: Any) -> Markers:
    """Markers of given clusters, whose moments are computed here."""
    w = weight / weight.sum()
    share = np.bincount(label, weights=w)
    mean = np.stack([np.average(theta[label == r], 0, w[label == r]) for r in range(len(share))])
    cov = np.stack(
        [np.cov(theta[label == r].T, aweights=w[label == r]) for r in range(len(share))]
    )
    clusters = Clusters.of(share, mean, cov, np.zeros(theta.shape[1]))
    return Markers.of(theta, w, log_p, clusters, label)


BEND = Bend(
    centre=(1.4, 0.5),
    scale=(0.5, 0.4),
    coordinates=(
        Coordinate(
            1, None, 0.5, 0.4, (), (), Warp((-1.8, 0.1, 2.3), (-2.0, 0.0, 2.0), (0.6, 1.4, 0.7))
        ),
        Coordinate(
            0, None, 1.4, 0.5, ((-1, -1, -0.2), (1, -1, 0.3), (1, 1, 0.3)), ((1, -1, 0.8),), None
        ),
    ),
)  # a curved funnel with a skewed coordinate, fitted to nothing


def bent_markers(theta: Floats, log_p: Floats, weight: Floats, label: Any) -> Markers:
    """Markers of given clusters, of which the last has a map."""
    w, n_clusters = weight / weight.sum(), int(np.max(label)) + 1
    bends = (*[None] * (n_clusters - 1), BEND)
    y = np.where((label == n_clusters - 1)[:, None], BEND.straightened(theta)[0], theta)
    moments = labelled_markers(y, log_p, w, label).clusters
    return Markers.of(theta, w, log_p, replace(moments, bends=bends), label)


def mixture_of(
    theta: Floats,
    log_p: Floats,
    spread: float,
    weight: Floats | None = None,
    clustered: bool = True,
    shrinking: bool = True,
) -> MarkerMixture:
    """The default scheme's kernels, or the paper's random walks from the markers."""
    markers = markers_of(theta, log_p, weight, clustered)
    if shrinking:
        return MarkerMixture.shrinking(markers, spread)
    return MarkerMixture(markers, spread, 1.0)


def brute_kernels(mixture: MarkerMixture, x: Floats) -> Floats:
    """Log of w_j q(x_i | theta_j) from the formula of the kernels, one by one; (n, n_markers)."""
    markers = mixture.markers
    columns = []
    for j, r in enumerate(markers.label):
        mean = markers.clusters.mean[r]
        bend = markers.clusters.bends[r] if markers.clusters.bends else None
        y, log_jacobian = (x, 0.0) if bend is None else bend.straightened(x)
        marker = markers.theta[j : j + 1]
        marker = marker[0] if bend is None else bend.straightened(marker)[0][0]
        centre = mixture.retained * marker + (1 - mixture.retained) * mean
        cov = mixture.spread**2 * markers.clusters.chol[r] @ markers.clusters.chol[r].T
        kernel = multivariate_normal(centre, cov).logpdf(y).reshape(len(x)) + log_jacobian
        columns.append(np.log(markers.weight[j]) + kernel)
    return np.column_stack(columns)


def reference_of(target: targets.Target) -> Reference:
    """The reference of a target of `tests.targets` as one of the library's."""
    where = target.reference
    if isinstance(where, targets.Box):
        return paims.Uniform(where.lower, where.upper)
    return paims.Product(
        *(lognorm(s, scale=np.exp(m)) for m, s in zip(where.mean, where.sd, strict=True))
    )


def mean_z(values: Floats, truth: float = 0.0) -> float:
    """Standard errors between the mean of independent values and what it should be."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return float((np.mean(values) - truth) / error) if error > 0 else 0.0


def rms(values: Sequence[float] | Floats) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
