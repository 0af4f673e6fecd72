"""Search for what the annealing has missed.

A mode that is narrow, or that drifted away on the path, has left traces: points whose density is
higher than the modes that are known can explain. From some of these, and from the best point of
each cluster, quasi-Newton steps climb to a top. The curvature there gives the mode's mass by
Laplace's approximation. If the sample has less of it, draws from a Gaussian at the top join the
pool, and what they weigh there is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from paims._arrays import Array
from paims.sampling._climb import Evaluate, climb, curvature
from paims.sampling._clusters import Clusters, single_cluster
from paims.sampling._proposal import MarkerMixture, Markers, sobol
from paims.sampling._recycling import Batch, Recycled
from paims.sampling._target import Target

_WAVE = 4  # climbs at a time
_MOST_BEST = 16  # clusters whose best points are climbed from
_FEW = 10.0  # effective number of points below which a mode is not known well
_UNEXPLAINED = 0.02  # excess of log density, relative to the fall, that asks for a climb
_APART = 0.1  # least distance of two doubted starts, in units of the reference's scale
_RELEVANT = 1e-3  # least mass of a mode that counts
_MOST_SHARES = 3.0  # finds prolong the search to at most this multiple of its budget


@dataclass(frozen=True)
class SearchInfo:
    """What a search did.

    Attributes
    ----------
    n_evaluations : int
        What it cost.
    n_starts : int
        Climbs.
    n_found : int
        Modes that the sample had less than half of.
    n_screened : int
        Points whose density was compared with what the known modes explain.
    """

    n_evaluations: int
    n_starts: int
    n_found: int
    n_screened: int


@dataclass
class Peaks:
    """Gaussian descriptions of modes, and what they predict of the log density.

    Attributes
    ----------
    top : list of ndarray, shape (n_params,)
    log_pi : list of float
        At the tops.
    inv_chol : list of ndarray, shape (n_params, n_params)
        Inverse Cholesky factors of the covariances.
    """

    top: list[Array] = field(default_factory=list)
    log_pi: list[float] = field(default_factory=list)
    inv_chol: list[Array] = field(default_factory=list)

    def add(self, top: Array, log_pi: float, inv_chol: Array) -> None:
        """Describe one more mode."""
        self.top.append(top)
        self.log_pi.append(log_pi)
        self.inv_chol.append(inv_chol)

    def predicted(self, x: Array) -> tuple[Array, Array]:
        """Log density that the best of the modes predicts, and how far that is below its top."""
        best, fall = np.full(len(x), -np.inf), np.full(len(x), np.inf)
        for top, log_pi, inv_chol in zip(self.top, self.log_pi, self.inv_chol, strict=True):
            half = half_square(x, top, inv_chol)
            better = log_pi - half > best
            best = np.where(better, log_pi - half, best)
            fall = np.where(better, half, fall)
        return best, fall

    def explain(self, x: Array, log_pi: Array, slack: float) -> Array:
        """Whether the density at each point is no more than predicted, but for some slack."""
        best, fall = self.predicted(x)
        return np.asarray(log_pi - best < slack * fall + _noise(x.shape[1]))


def _noise(n_params: int) -> float:
    """Log density by which a point of a mode may exceed what a Gaussian predicts."""
    return 3.0 + 0.1 * n_params


def half_square(x: Array, centre: Array, inv_chol: Array) -> Array:
    """Half the squared Mahalanobis distance."""
    return np.asarray(0.5 * np.sum(((x - centre) @ inv_chol.T) ** 2, axis=1))


class _Screen:
    """Evaluated points and how much of their density the peaks found so far leave unexplained.

    Near a cluster its own description is believed too: a mode need not be Gaussian to be known. A
    cluster may lie across several modes, though, so such points come last, not never.
    """

    def __init__(self, clusters: Peaks, scale: Array) -> None:
        self._clusters, self._scale = clusters, scale
        self.theta, self.log_pi = np.empty((0, len(scale))), np.empty(0)
        self._best, self._fall = np.empty(0), np.empty(0)
        self._open = np.empty(0, dtype=bool)
        self._doubted = np.empty(0, dtype=bool)  # near a cluster, and not climbed from
        self._high = np.empty(0, dtype=bool)  # the best of the points that it came with
        self._distance = np.empty(0)  # to the nearest start or top so far, squared

    def __len__(self) -> int:
        return len(self.theta)

    def include(self, theta: Array, log_pi: Array, peaks: Peaks) -> None:
        """Take in new points."""
        alive = np.isfinite(log_pi)
        theta, log_pi = theta[alive], log_pi[alive]
        if not len(theta):
            return
        best, fall = peaks.predicted(theta)
        self.theta = np.concatenate([self.theta, theta])
        self.log_pi = np.append(self.log_pi, log_pi)
        self._best, self._fall = np.append(self._best, best), np.append(self._fall, fall)
        near = self._near_cluster(theta, log_pi)
        self._open = np.append(self._open, ~near)
        self._doubted = np.append(self._doubted, near)
        self._high = np.append(self._high, log_pi >= np.quantile(log_pi, 0.9))
        distance = np.full(len(theta), np.inf)
        for top in peaks.top:
            distance = np.minimum(distance, self._squared(theta, top))
        self._distance = np.append(self._distance, distance)

    def _near_cluster(self, theta: Array, log_pi: Array) -> Array:
        best, fall = self._clusters.predicted(theta)
        n_params = theta.shape[1]
        near = fall < 2.0 * n_params + 5.0
        return np.asarray(near & (log_pi - best < 0.25 * fall + _noise(n_params)))

    def _squared(self, theta: Array, point: Array) -> Array:
        return np.asarray(np.sum(((theta - point) / self._scale) ** 2, axis=1))

    def _been_at(self, point: Array) -> None:
        self._distance = np.minimum(self._distance, self._squared(self.theta, point))

    def explain_by(self, top: Array, log_pi: float, inv_chol: Array) -> None:
        """Take a new peak into account."""
        half = half_square(self.theta, top, inv_chol)
        better = log_pi - half > self._best
        self._best[better], self._fall[better] = log_pi - half[better], half[better]
        self._been_at(top)

    def starts(self, rng: np.random.Generator) -> Array:
        """Rows to climb from next.

        Half are the least explained; a quarter are, among the best points of each level, the
        farthest from where the search has been; a quarter are any of these best points.
        """
        score = self._score(self._open)
        rows = np.flatnonzero(score > _UNEXPLAINED)
        if not len(rows):
            return rows
        chosen = list(rows[np.argsort(-score[rows], kind="stable")[: _WAVE // 2]])
        high = rows[self._high[rows]]
        for _ in range(_WAVE // 4 if len(high) else 0):
            farthest = high[np.argmax(self._distance[high])]
            chosen.append(farthest)
            self._been_at(self.theta[farthest])
        if len(high):
            chosen += list(rng.choice(high, size=min(_WAVE // 4, len(high)), replace=False))
        found = np.unique(chosen)
        self._open[found] = False
        return found

    def doubted(self) -> Array:
        """Rows near a cluster that no peak explains: the least explained, each far from the rest.

        A cluster that lies across modes excuses the points of one that it has no top for.
        """
        score = self._score(self._doubted)
        chosen: list[int] = []
        while len(score) and len(chosen) < _WAVE // 2:
            worst = int(np.argmax(score))
            if not score[worst] > _UNEXPLAINED:
                break
            chosen.append(worst)
            score[self._squared(self.theta, self.theta[worst]) < _APART**2] = -np.inf
        self._doubted[chosen] = False
        return np.array(chosen, dtype=np.int64)

    def _score(self, among: Array) -> Array:
        """Log density that no peak explains, relative to the fall from the nearest; or -inf."""
        excess = self.log_pi - self._best - _noise(self.theta.shape[1])
        with np.errstate(invalid="ignore"):
            score = np.where(among, excess / np.maximum(self._fall, 1.0), -np.inf)
        score[np.isnan(score)] = np.inf  # no peak yet: nothing is explained
        return np.asarray(score)


@dataclass(frozen=True)
class _Found:
    """A mode that the sample has too little of."""

    top: Array
    log_pi: float
    cov: Array
    log_mass: float


def search(
    pool: Sequence[Batch],
    recycled: Recycled,
    target: Target,
    share: float,
    rng: np.random.Generator,
) -> tuple[list[Batch], SearchInfo]:
    """Look for modes that the sample so far has missed.

    Parameters
    ----------
    pool : sequence of Batch
        Every candidate so far; the last ones are of temperature 1.
    recycled : Recycled
        The sample.
    target : Target
    share : float
        Evaluations to spend, relative to those so far; three times as many where leads were
        followed, as what they do not cover has not been looked at.
    rng : Generator

    Returns
    -------
    batches : list of Batch
        Draws at the modes that were found, half as many for each island as it has points.
    info : SearchInfo
    """
    before = target.n_spent
    led = target.leg[0] is not None
    budget = share * before * (3.0 if led else 1.0)

    def evaluate(theta: Array) -> Array:
        return target.evaluate(theta).log_pi

    clusters, (best, log_best) = _clusters_of(pool, recycled)
    scale = np.std(np.concatenate([b.points.theta for b in _first_batches(pool)]), axis=0)
    screen, peaks = _Screen(clusters, scale), Peaks()
    for batch in pool:
        screen.include(batch.points.theta, batch.points.log_pi, peaks)
    fresh = _fresh_points(pool, target, rng)
    if led:
        more = next(fresh)
        screen.include(more, evaluate(more), peaks)
    found: list[_Found] = []
    n_starts, allowed = 0, budget
    while (spent := target.n_spent - before) < min(allowed, _MOST_SHARES * budget):
        if len(best):
            # One at first: several clusters may be parts of one mode, which it then explains.
            size = min(max(n_starts, 1), _WAVE)
            start, log_start, best, log_best = (
                best[:size],
                log_best[:size],
                best[size:],
                log_best[size:],
            )
        else:
            rows = screen.starts(rng)
            if not len(rows):
                rows = screen.doubted()
            if not len(rows):
                if spent > 0.5 * allowed:
                    break
                more = next(fresh)
                screen.include(more, evaluate(more), peaks)
                continue
            start, log_start = screen.theta[rows], screen.log_pi[rows]
        n_starts += len(start)
        tops, log_tops, inverse = climb(evaluate, start, log_start, scale)
        for k in np.argsort(-log_tops, kind="stable"):
            new = _described(evaluate, tops[k], float(log_tops[k]), inverse[k], peaks)
            if new is None:
                continue
            cov, inv_chol = new
            peaks.add(tops[k], float(log_tops[k]), inv_chol)
            screen.explain_by(tops[k], float(log_tops[k]), inv_chol)
            log_mass = _laplace(float(log_tops[k]), inv_chol) - recycled.log_evidence
            if _missing(recycled, tops[k], inv_chol, log_mass):
                found.append(_Found(tops[k], float(log_tops[k]), cov, log_mass))
                allowed = max(allowed, target.n_spent - before + budget)
        left = ~peaks.explain(best, log_best, _UNEXPLAINED)
        best, log_best = best[left], log_best[left]
    batches = _draws(found, pool, target, rng) if found else []
    spent = target.n_spent - before
    return batches, SearchInfo(spent, n_starts, len(found), len(screen))


def _clusters_of(pool: Sequence[Batch], recycled: Recycled) -> tuple[Peaks, tuple[Array, Array]]:
    """The clusters of the last mixtures as peaks, and their best points with their densities.

    The height of a cluster's top is the median of what its points say of it, by weight.
    """
    clusters, best = Peaks(), []
    points, weight = recycled.points, recycled.weight
    for batch in pool[-2:]:
        if batch.mixture is None:
            continue
        fitted = batch.mixture.markers.clusters
        label = np.argmax(fitted.log_responsibilities(points.theta)[1], axis=1)
        for r in range(len(fitted)):
            rows = np.flatnonzero(label == r)
            if len(rows) < 5 or not weight[rows].sum() > 0:
                continue
            mean, inv_chol = fitted.mean[r], fitted.inv_chol[r]
            if any(fitted.bends):  # as it is, not as its map makes it
                own = weight[rows] / weight[rows].sum()
                own = 0.9 * own + 0.1 / len(rows)
                round_ = single_cluster(np.ascontiguousarray(points.theta[rows]), own)
                mean, inv_chol = round_.mean[0], round_.inv_chol[0]
            fall = half_square(points.theta[rows], mean, inv_chol)
            height = _weighted_median(points.log_pi[rows] + fall, weight[rows])
            clusters.add(mean, height, inv_chol)
            best.append(rows[np.argmax(points.log_pi[rows])])
    order = np.array(best, dtype=np.int64)[np.argsort(-points.log_pi[best], kind="stable")]
    first = order[:_MOST_BEST]
    return clusters, (points.theta[first], points.log_pi[first])


def _first_batches(pool: Sequence[Batch]) -> list[Batch]:
    """The first batch of each island: the reference's draws, or those that crossed to a leg."""
    first: dict[int, Batch] = {}
    for batch in pool:
        first.setdefault(int(batch.points.island[0]), batch)
    return list(first.values())


def _weighted_median(values: Array, weight: Array) -> float:
    order = np.argsort(values, kind="stable")
    edges = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(edges, 0.5 * edges[-1])])


def _fresh_points(
    pool: Sequence[Batch], target: Target, rng: np.random.Generator
) -> Iterator[Array]:
    """New points, in turn from the reference and from the mixtures of all levels."""
    mixtures = list(dict.fromkeys([None, *(batch.mixture for batch in pool)]))
    size = max(len(pool[0].points) // 4, 1)
    quantile = getattr(target.reference, "quantile", None)
    while True:
        for mixture in mixtures:
            if mixture is not None:
                yield mixture.sample(size, rng)[0]
            elif quantile is not None:
                yield np.asarray(quantile(sobol(size, pool[0].points.theta.shape[1], rng)))
            else:
                yield np.asarray(target.reference.sample(size, rng), dtype=float)


def _described(
    evaluate: Evaluate, top: Array, log_top: float, inverse: Array, peaks: Peaks
) -> tuple[Array, Array] | None:
    """Covariance of a new peak and its inverse Cholesky factor; None if known, or no peak."""
    if peaks.top and peaks.explain(top[None], np.array([log_top - 1.0]), 0.1)[0]:
        return None
    cov = curvature(evaluate, top, log_top, inverse)
    if cov is None:
        cov = inverse
    try:
        return cov, np.linalg.inv(np.linalg.cholesky(cov))
    except np.linalg.LinAlgError:
        return None


def _laplace(log_top: float, inv_chol: Array) -> float:
    """Log of the integral of a Gaussian peak."""
    n_params = len(inv_chol)
    return (
        log_top
        + 0.5 * n_params * float(np.log(2 * np.pi))
        - float(np.sum(np.log(np.diag(inv_chol))))
    )


def _missing(recycled: Recycled, top: Array, inv_chol: Array, log_mass: float) -> bool:
    """Whether an island's sample has less than half of a mode's mass, or too few points of it.

    They are counted within one standard deviation beyond the mode's typical distance, where a
    Gaussian has at least 0.6 of its mass.
    """
    if log_mass < np.log(_RELEVANT):
        return False
    reach = 0.5 * (np.sqrt(len(top)) + 1.0) ** 2
    inside = half_square(recycled.points.theta, top, inv_chol) < reach
    island, weight = recycled.points.island, recycled.weight
    total = np.bincount(island, weights=weight)
    own = np.bincount(island, weights=weight * inside)
    squares = np.bincount(island, weights=weight**2 * inside)
    too_little = own / total < 0.6 * 0.5 * np.exp(min(log_mass, 0.0))
    too_few = own**2 < _FEW * squares
    return bool(np.any(too_little | too_few))


def _draws(
    found: list[_Found], pool: Sequence[Batch], target: Target, rng: np.random.Generator
) -> list[Batch]:
    """Draws from Gaussians at the tops, somewhat wider than the modes, for each island."""
    log_mass = np.array([mode.log_mass for mode in found])
    share = np.exp(log_mass - log_mass.max())
    share = 0.5 * share / share.sum() + 0.5 / len(found)
    mean = np.array([mode.top for mode in found])
    clusters = Clusters.of(
        share, mean, 1.1 * np.array([mode.cov for mode in found]), np.zeros(mean.shape[1])
    )
    log_p = np.array([mode.log_pi for mode in found])
    markers = Markers(mean, share, log_p, np.arange(len(found) + 1), clusters)
    mixture = MarkerMixture(markers, 1.0, 0.0)
    batches = []
    for first in _first_batches(pool):
        island = first.points.island[:1]
        theta, _ = mixture.sample(max(len(first.points) // 2, 1), rng)
        points = target.evaluate(theta, np.repeat(island, len(theta)))
        batches.append(Batch(mixture, points, mixture.log_density(theta)))
    return batches
