"""Gaussian clusters of weighted points, as many as the data ask for.

scikit-learn's GaussianMixture takes no weights and a fit for each number of clusters; here the
points are split recursively, each split being kept when it lowers the Bayesian information
criterion, and a few EM steps over all clusters follow. Deterministic: no random starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from paims._arrays import Array
from paims.sampling import _compiled
from paims.sampling._bend import Bend, fit_bend

_FLOOR = 1e-9  # smallest variance of a cluster relative to that of all points
_MAX_AXES = 2  # how many principal axes are halved
_MAX_CUTS = 3  # how many are cut where two Gaussians fit best


@dataclass(frozen=True)
class Clusters:
    """Gaussian clusters.

    Attributes
    ----------
    share : ndarray, shape (n_clusters,)
        Weight of each; sums to 1.
    mean : ndarray, shape (n_clusters, n_params)
    chol : ndarray, shape (n_clusters, n_params, n_params)
        Lower Cholesky factors of the covariances.
    inv_chol : ndarray, shape (n_clusters, n_params, n_params)
    bends : tuple of (Bend or None)
        Maps under which the clusters are Gaussian: means and covariances are those of the mapped
        points. Empty if no cluster has one.
    """

    share: Array
    mean: Array
    chol: Array
    inv_chol: Array
    bends: tuple[Bend | None, ...] = ()

    def __len__(self) -> int:
        return len(self.share)

    @staticmethod
    def of(
        share: Array,
        mean: Array,
        cov: Array,
        floor: Array,
        bends: tuple[Bend | None, ...] = (),
    ) -> Clusters:
        """Build from covariances, lifted by ``floor`` on the diagonal."""
        chol = np.linalg.cholesky(cov + np.diag(floor))
        inverse = np.ascontiguousarray(np.tril(np.linalg.inv(chol)))
        return Clusters(share / share.sum(), mean, chol, inverse, bends)

    def straightened(self, x: Array) -> Iterator[tuple[Array, Array, Array | None]]:
        """For each map, the clusters that have it, the points mapped, and its log Jacobian.

        The Jacobian is None for the clusters without a map.
        """
        bends = self.bends or (None,) * len(self)
        for bend in dict.fromkeys(bends):
            members = np.array([r for r, own in enumerate(bends) if own is bend])
            if bend is None:
                yield members, x, None
            else:
                yield members, *bend.straightened(x)

    def bent(self, y: Array, cluster: Array) -> Array:
        """Undo the map of the cluster that each point belongs to."""
        x = y
        for r, bend in enumerate(self.bends):
            if bend is not None and np.any(cluster == r):
                rows = cluster == r
                x = x.copy() if x is y else x
                x[rows] = bend.bent(y[rows])
        return x

    def straightened_by(self, x: Array, cluster: Array) -> tuple[Array, Array]:
        """Points under the maps of the clusters that they belong to, and the log Jacobians."""
        y, log_jacobian = x, np.zeros(len(x))
        for r, bend in enumerate(self.bends):
            if bend is not None and np.any(cluster == r):
                rows = cluster == r
                y = y.copy() if y is x else y
                y[rows], log_jacobian[rows] = bend.straightened(x[rows])
        return y, log_jacobian

    @property
    def centre(self) -> Array:
        """The means as points, (n_clusters, n_params)."""
        return self.bent(self.mean, np.arange(len(self)))

    def steadied(self, size: Array) -> Clusters:
        """Covariances as proposals should have them when estimated from few points.

        An estimate from n points in d dimensions is too narrow in some directions, by up to
        (1 - sqrt(d/n))^2 in variance (Marchenko and Pastur 1967). d/n times its diagonal is added
        to it, in no direction more than makes up for that: a thin ridge stays thin.

        Parameters
        ----------
        size : ndarray, shape (n_clusters,)
            Effective number of points of each cluster.
        """
        ratio = self.mean.shape[1] / size
        most = (1.0 - np.minimum(np.sqrt(ratio), 0.95)) ** -2 - 1.0
        variance = np.sum(self.chol**2, axis=2)  # the diagonals of the covariances
        white = self.inv_chol * np.sqrt(ratio[:, None] * variance)[:, None, :]
        value, vector = np.linalg.eigh(white @ white.transpose(0, 2, 1))
        turned = self.chol @ vector
        scaled = turned * (1.0 + np.minimum(value, most[:, None]))[:, None, :]
        cov = scaled @ turned.transpose(0, 2, 1)
        return Clusters.of(self.share, self.mean, cov, np.zeros(cov.shape[1]), self.bends)

    def widened(self, factor: float) -> Clusters:
        """The clusters, followed by the same ones ``factor`` times as wide."""
        return Clusters(
            np.tile(self.share, 2) / 2,
            np.tile(self.mean, (2, 1)),
            np.concatenate([self.chol, factor * self.chol]),
            np.concatenate([self.inv_chol, self.inv_chol / factor]),
            self.bends + self.bends,
        )

    def __getitem__(self, kept: Array) -> Clusters:
        share = self.share[kept]
        return Clusters(
            share / share.sum(),
            self.mean[kept],
            self.chol[kept],
            self.inv_chol[kept],
            tuple(self.bends[r] for r in kept) if self.bends else (),
        )

    def draw(self, x: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Draw a cluster for each point with the probabilities rho_r(x).

        Returns
        -------
        chol : ndarray, shape (n, n_params, n_params)
            Cholesky factors of the clusters' covariances.
        r : ndarray of int, shape (n,)
            Their numbers.
        log_rho : ndarray, shape (n,)
            Log probabilities of these.
        """
        _, log_rho = self.log_responsibilities(x)
        edges = np.cumsum(np.exp(log_rho), axis=1)
        draw = rng.random(len(x))[:, None] * edges[:, -1:]
        r = np.minimum(np.sum(draw >= edges, axis=1), len(self) - 1)
        return self.chol[r], r, log_rho[np.arange(len(x)), r]

    def log_responsibilities(self, x: Array) -> tuple[float, Array]:
        """Mean log likelihood, and log probability of each cluster at each point."""
        log_resp = np.empty((len(x), len(self)))
        uniform = np.full(len(x), 1.0 / max(len(x), 1))
        if not any(self.bends):
            value = self._expectation(x, uniform, log_resp)
            return value, log_resp
        for members, y, log_jacobian in self.straightened(x):
            log_resp[:, members] = self._log_joint(y, members)
            if log_jacobian is not None:
                log_resp[:, members] += log_jacobian[:, None]
        total = np.logaddexp.reduce(log_resp, axis=1)
        nowhere = np.isneginf(total)
        log_resp[nowhere] = np.log(self.share)
        return float(np.mean(total)), log_resp - np.where(nowhere, 0.0, total)[:, None]

    def _log_joint(self, y: Array, members: Array) -> Array:
        """Log of share times density of some clusters at mapped points."""
        out = np.empty((len(y), len(members)))
        for column, r in enumerate(members):
            white = np.einsum("ab,nb->na", self.inv_chol[r], y - self.mean[r])
            log_det = np.sum(np.log(np.diag(self.inv_chol[r])))
            out[:, column] = np.log(self.share[r]) + log_det - 0.5 * np.sum(white**2, axis=1)
        return np.asarray(out - 0.5 * y.shape[1] * np.log(2 * np.pi))

    def _expectation(self, x: Array, w: Array, log_resp: Array) -> float:
        return float(
            _compiled.expectation(x, w, log_resp, np.log(self.share), self.mean, self.inv_chol)
        )


def single_cluster(x: Array, w: Array) -> Clusters:
    """Describe all points by one cluster: their weighted mean and covariance."""
    return _maximise(x, w, np.zeros((len(x), 1)), _floor(x, w))


def fit_clusters(
    x: Array, w: Array, max_clusters: int = 64, box: tuple[Array, Array] | None = None
) -> tuple[Clusters, Array]:
    """Split weighted points into Gaussian clusters by BIC.

    With a ``box`` a set of points that a map makes Gaussian (:mod:`paims.sampling._bend`) is a
    cluster where that is better, by BIC, than splitting it.

    Parameters
    ----------
    x : ndarray, shape (n, n_params)
        Distinct points.
    w : ndarray, shape (n,)
        Their weights, summing to 1.
    max_clusters : int
        Upper limit.
    box : tuple of ndarray, shape (n_params,), optional
        Lower and upper edges of where the points may be, infinite where there are none.

    Returns
    -------
    clusters : Clusters
        Mean and covariance of the points that belong to each cluster.
    label : ndarray of int, shape (n,)
        The cluster of each point.
    """
    x = np.ascontiguousarray(x)
    floor = _floor(x, w)
    effective = 1.0 / float(np.sum(w**2))
    n_params = x.shape[1]
    smallest = n_params + 3.0

    leaves: list[Array] = []
    bends: list[Bend | None] = []
    queue = [np.arange(len(x))]
    while queue:
        members = queue.pop(0)
        local = min(effective * float(w[members].sum()), float(len(members)))
        room = max_clusters - len(leaves) - len(queue)
        split = _split(x[members], w[members], local, smallest, floor, room)
        bend = None if box is None else fit_bend(x[members], w[members] / w[members].sum(), *box)
        if bend is not None and (split is None or bend[1] > split[1]):
            split = None
        elif split is not None:
            bend = None
        if split is None:
            leaves.append(members)
            bends.append(None if bend is None else bend[0])
        else:
            part, _ = split
            queue += [members[part == k] for k in range(int(part.max()) + 1)]

    label = np.empty(len(x), dtype=np.int64)
    for r, members in enumerate(leaves):
        label[members] = r
    if any(bends):
        return _maximise_bent(x, w, label, floor, tuple(bends)), label
    if len(leaves) > 1:
        label = _polish(x, w, label, floor)
    kept, label = np.unique(label, return_inverse=True)
    clusters = _maximise(x, w, _hard(label, len(kept)), floor)
    return clusters, label


def _split(
    x: Array, w: Array, local: float, smallest: float, floor: Array, room: int
) -> tuple[Array, float] | None:
    """Part a set of points if BIC says so: the part of each point and what BIC gains, or None.

    Two parts are tried by EM from halves along the principal axes. Where two do not pay, more may:
    no two Gaussians describe a lattice of narrow modes better than one.
    """
    if local < 2 * smallest or len(x) < 2 * smallest or room < 2:
        return None
    w = w / w.sum()
    whole = _maximise(x, w, np.zeros((len(x), 1)), floor)
    single = whole._expectation(x, w, np.empty((len(x), 1)))
    white = (x - whole.mean[0]) @ whole.inv_chol[0].T
    for part in _by_axes(x, w, whole, floor, smallest / local):
        if not _large_enough(part, w, local, smallest):
            continue  # a few points far from the rest hide what the rest is made of
        gain = _gain(x, w, part, single, local, floor)
        if gain > 0.0:
            return part, gain
        break
    if not _flat(white, w, local):
        return None
    for n_parts in (4, 8, 16, 32):
        if n_parts > room or local < n_parts * smallest:
            break
        part = _k_means(white, w, n_parts, smallest / local)
        if not _large_enough(part, w, local, smallest):
            continue
        gain = _gain(x, w, part, single, local, floor)
        if gain > 0.0:
            return part, gain
    return None


def _flat(white: Array, w: Array, local: float) -> bool:
    """Whether whitened points have lighter tails than a Gaussian, as several modes together have.

    Mardia's kurtosis: d (d + 2) for a Gaussian, with variance 8 d (d + 2) / n.
    """
    expected = white.shape[1] * (white.shape[1] + 2)
    kurtosis = float(w @ np.sum(white**2, axis=1) ** 2)
    return bool(kurtosis < expected - 3 * np.sqrt(8 * expected / local))


def _large_enough(part: Array, w: Array, local: float, smallest: float) -> bool:
    """Whether there are several parts, and none of them is too small for a covariance."""
    count = np.bincount(part)
    share = np.bincount(part, weights=w)
    return bool(len(count) > 1 and np.min(share) * local >= smallest and np.min(count) >= smallest)


def _gain(x: Array, w: Array, part: Array, single: float, local: float, floor: Array) -> float:
    """Mean log likelihood that the parts gain over the whole, less their price by BIC."""
    n_parts, n_params = int(part.max()) + 1, x.shape[1]
    value, _ = _em(x, w, _hard(part, n_parts), floor, n_steps=2)
    n_extra = (n_parts - 1) * (1 + n_params + n_params * (n_params + 1) / 2)
    return float(value - single - 0.5 * n_extra * np.log(local) / local)


def _by_axes(x: Array, w: Array, whole: Clusters, floor: Array, least: float) -> Iterator[Array]:
    """Two parts that EM finds from cuts across the principal axes, the most promising first.

    Each axis is cut where two Gaussians describe the points along it best; the longest are also
    halved.
    """
    values, vectors = np.linalg.eigh(whole.chol[0] @ whole.chol[0].T)
    along = (x - whole.mean[0]) @ vectors
    cut, gain = _best_cuts(along, w, least)
    starts = [along[:, axis] > cut[axis] for axis in np.argsort(gain)[::-1][:_MAX_CUTS]]
    starts += [along[:, axis] > 0 for axis in np.argsort(values)[::-1][:_MAX_AXES]]
    tried = [_em(x, w, _hard(start.astype(np.int64), 2), floor, n_steps=3) for start in starts]
    for value, resp in sorted(tried, key=lambda one: -one[0]):
        if np.isfinite(value):
            yield np.asarray(np.argmax(_em(x, w, resp, floor, n_steps=25)[1], axis=1))


def _best_cuts(along: Array, w: Array, least: float) -> tuple[Array, Array]:
    """Where to cut each coordinate so that two Gaussians fit best, and their log likelihood."""
    order = np.argsort(along, axis=0)
    u = np.take_along_axis(along, order, axis=0)
    v = w[order]
    a = np.cumsum(v, axis=0)[:-1]
    b = 1.0 - a
    first = np.cumsum(v * u, axis=0)
    second = np.cumsum(v * u * u, axis=0)
    variance = np.maximum(second[-1] - first[-1] ** 2, np.finfo(float).tiny)
    tiny = 1e-6 * variance
    with np.errstate(divide="ignore", invalid="ignore"):
        left = second[:-1] / a - (first[:-1] / a) ** 2
        right = (second[-1] - second[:-1]) / b - ((first[-1] - first[:-1]) / b) ** 2
        value = a * (np.log(a) - 0.5 * np.log(np.maximum(left, tiny)))
        value += b * (np.log(b) - 0.5 * np.log(np.maximum(right, tiny)))
    value += 0.5 * np.log(variance)
    value[(a < least) | (b < least) | ~np.isfinite(value)] = -np.inf
    i = np.argmax(value, axis=0)
    columns = np.arange(along.shape[1])
    return 0.5 * (u[i, columns] + u[i + 1, columns]), value[i, columns]


def _k_means(x: Array, w: Array, n_parts: int, least: float, n_steps: int = 8) -> Array:
    """Weighted k-means from k-means++ seeds; parts below the share ``least`` are dissolved.

    Own code because scikit-learn's sums depend on the number of threads in the last bits.
    """
    rng = np.random.default_rng(n_parts)
    centre = x[rng.choice(len(x), p=w)][None]
    distance = np.sum((x - centre[0]) ** 2, axis=1)
    for _ in range(n_parts - 1):
        weight = w * distance
        if not weight.sum() > 0:
            break
        centre = np.vstack([centre, x[rng.choice(len(x), p=weight / weight.sum())]])
        distance = np.minimum(distance, np.sum((x - centre[-1]) ** 2, axis=1))
    for _ in range(n_steps):
        part = _nearest(x, centre)
        share = np.bincount(part, weights=w, minlength=len(centre))
        keep = share >= least if np.any(share >= least) else share == share.max()
        moments = [np.bincount(part, weights=w * column, minlength=len(centre)) for column in x.T]
        centre = (np.stack(moments, axis=1)[keep].T / share[keep]).T
    _, part = np.unique(_nearest(x, centre), return_inverse=True)
    return np.asarray(part)


def _nearest(x: Array, centre: Array) -> Array:
    distance = np.sum(centre**2, axis=1) - 2 * np.einsum("ni,ki->nk", x, centre)
    return np.asarray(np.argmin(distance, axis=1))


def _em(x: Array, w: Array, log_resp: Array, floor: Array, n_steps: int) -> tuple[float, Array]:
    """Run EM from responsibilities; -inf when a cluster dies."""
    log_resp = log_resp.copy()
    return float(_compiled.expectation_maximisation(x, w, log_resp, floor, n_steps)), log_resp


def _polish(x: Array, w: Array, label: Array, floor: Array, n_steps: int = 10) -> Array:
    """Let the leaves of the splitting compete for their points; clusters that die are dropped."""
    value, log_resp = _em(x, w, _hard(label, int(label.max()) + 1), floor, n_steps)
    if not np.isfinite(value):
        return label
    new = np.argmax(log_resp, axis=1)
    counts = np.bincount(new, minlength=log_resp.shape[1])
    too_small = (counts > 0) & (counts < x.shape[1] + 2)
    if np.any(too_small):
        log_resp[:, too_small] = -np.inf
        new = np.argmax(log_resp, axis=1)
    return np.asarray(new)


def _maximise(x: Array, w: Array, log_resp: Array, floor: Array) -> Clusters:
    n_clusters, n_params = log_resp.shape[1], x.shape[1]
    share = np.empty(n_clusters)
    mean = np.empty((n_clusters, n_params))
    cov = np.empty((n_clusters, n_params, n_params))
    _compiled.maximisation(x, w, log_resp, share, mean, cov)
    return Clusters.of(share, mean, cov, floor)


def _maximise_bent(
    x: Array, w: Array, label: Array, floor: Array, bends: tuple[Bend | None, ...]
) -> Clusters:
    """Means and covariances of the points of each cluster under its map."""
    n_clusters, n_params = len(bends), x.shape[1]
    y = x.copy()
    for r, bend in enumerate(bends):
        if bend is not None:
            y[label == r] = bend.straightened(x[label == r])[0]
    share = np.empty(n_clusters)
    mean = np.empty((n_clusters, n_params))
    cov = np.empty((n_clusters, n_params, n_params))
    _compiled.maximisation(y, w, _hard(label, n_clusters), share, mean, cov)
    for r, bend in enumerate(bends):
        cov[r] += np.diag(floor if bend is None else np.full(n_params, _FLOOR))
    return Clusters.of(share, mean, cov, np.zeros(n_params), bends)


def _hard(label: Array, n_clusters: int) -> Array:
    log_resp = np.full((len(label), n_clusters), -1e300)
    log_resp[np.arange(len(label)), label] = 0.0
    return log_resp


def _floor(x: Array, w: Array) -> Array:
    centre = w @ x
    variance = w @ (x - centre) ** 2
    tiny = np.finfo(float).eps * (1 + np.abs(centre)) ** 2
    return np.asarray(_FLOOR * variance + tiny**1.5 + np.finfo(float).tiny)
