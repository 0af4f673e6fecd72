"""The modes of a weighted sample whose log densities are known.

Points are linked to their nearest neighbours; going down from the best point, each either starts a
peak or joins that of a higher neighbour; two peaks that meet are one mode when the lower of them
stands out by less than a threshold (persistence-based clustering: Chazal et al. 2013, with the
exact density in place of an estimate).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from paims._arrays import Array
from paims.sampling._clusters import fit_clusters

_MAX_POINTS = 6000
# Points on the line between two modes.
_N_STEPS = 15
# What a climb sees of a density that is zero, upside down.
_NOWHERE = 1e10


@dataclass(frozen=True)
class Mode:
    """One mode.

    Attributes
    ----------
    location : ndarray, shape (n_params,)
        The best point of the mode.
    log_density : float
        There.
    mass : float
        Share of the weights.
    mass_error : float
        Its Monte-Carlo standard error.
    mean, sd : ndarray, shape (n_params,)
        Of the points that belong to the mode.
    """

    location: Array
    log_density: float
    mass: float
    mass_error: float
    mean: Array
    sd: Array


def find_modes(
    theta: Array, log_pi: Array, weight: Array, min_mass: float, prominence: float | None = None
) -> tuple[list[Mode], Array]:
    """Find the modes of a weighted sample.

    Parameters
    ----------
    theta : ndarray, shape (n, n_params)
    log_pi : ndarray, shape (n,)
    weight : ndarray, shape (n,)
        Sums to 1.
    min_mass : float
        Modes with less are left out (their points belong to no mode).
    prominence : float, optional
        How much log density a peak has to stand out by; by default grows with the dimension as
        the roughness of the sampled surface does.

    Returns
    -------
    modes : list of Mode
        By falling mass.
    label : ndarray of int, shape (n,)
        The mode of each point, -1 for none.
    """
    chosen = _subset(log_pi, weight)
    peak_of = _peaks(theta, log_pi, weight, chosen, prominence)
    mass = np.bincount(peak_of, weights=weight)
    peaks = [p for p in np.argsort(mass)[::-1] if mass[p] >= min_mass]
    label = np.full(len(theta), -1)
    modes = []
    for number, peak in enumerate(peaks):
        member = peak_of == peak
        label[member] = number
        modes.append(_describe(theta, log_pi, weight, member))
    return modes, label


def _describe(theta: Array, log_pi: Array, weight: Array, member: Array) -> Mode:
    mass = float(weight[member].sum())
    share = weight[member] / mass
    mean = share @ theta[member]
    sd = np.sqrt(share @ (theta[member] - mean) ** 2)
    best = np.flatnonzero(member)[np.argmax(log_pi[member])]
    error = float(np.sqrt(np.sum(weight**2 * (member - mass) ** 2)))
    return Mode(theta[best].copy(), float(log_pi[best]), mass, error, mean, sd)


def climb(
    modes: list[Mode],
    log_density: Callable[[Array], Array],
    value_and_gradient: Callable[[Array], tuple[Array, Array]] | None = None,
) -> list[Mode]:
    """Go on from the best draw of each mode to its top; those that reach the same top are one.

    Without ``value_and_gradient`` slopes are differences of the density.
    """
    found: list[Mode] = []
    tops = [_top(mode, log_density, value_and_gradient) for mode in modes]
    for mode in sorted(tops, key=lambda m: -m.log_density):
        for i, other in enumerate(found):
            scale = np.where(other.sd > 0, other.sd, 1.0)
            if np.max(np.abs(mode.location - other.location) / scale) < 0.1:
                found[i] = _joined(other, mode)
                break
        else:
            found.append(mode)
    return sorted(found, key=lambda m: -m.mass)


def connect(
    modes: list[Mode], log_density: Callable[[Array], Array], prominence: float | None = None
) -> list[Mode]:
    """Join modes that have no valley between them, by the density itself.

    On a plateau or a long ridge a sample has many peaks. Two modes are one if on the straight line
    between their best points the log density never is below that of the lower one by
    ``prominence`` or more.
    """
    modes = sorted(modes, key=lambda mode: -mode.log_density)
    if len(modes) < 2:
        return modes
    location = np.array([mode.location for mode in modes])
    if prominence is None:
        prominence = _prominence(location.shape[1])
    low, high = np.tril_indices(len(modes), -1)
    t = np.linspace(0.0, 1.0, _N_STEPS + 2)[1:-1, None]
    lines = location[low, None] + t * (location[high] - location[low])[:, None]
    valley = log_density(lines.reshape(-1, location.shape[1])).reshape(len(low), -1).min(axis=1)
    found: dict[int, Mode] = {}
    top = np.arange(len(modes))  # the highest mode that each is joined to
    for i, mode in enumerate(modes):
        beside = high[(low == i) & (mode.log_density - valley < prominence)]
        top[i] = top[beside].min(initial=i)
        found[top[i]] = _joined(found[top[i]], mode) if top[i] in found else mode
    return sorted(found.values(), key=lambda m: -m.mass)


def _joined(first: Mode, second: Mode) -> Mode:
    mass = first.mass + second.mass
    a, b = first.mass / mass, second.mass / mass
    mean = a * first.mean + b * second.mean
    square = a * (first.sd**2 + first.mean**2) + b * (second.sd**2 + second.mean**2)
    return replace(
        first,
        mass=mass,
        mass_error=float(np.hypot(first.mass_error, second.mass_error)),
        mean=mean,
        sd=np.sqrt(np.maximum(square - mean**2, 0.0)),
    )


def _top(
    mode: Mode,
    log_density: Callable[[Array], Array],
    value_and_gradient: Callable[[Array], tuple[Array, Array]] | None,
) -> Mode:
    """Climb from the best draw of a mode by quasi-Newton steps."""
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import, seldom needed

    n_params = len(mode.location)
    scale = np.where(mode.sd > 0, mode.sd, 1.0)
    width = 1e-4
    steps = np.vstack([np.zeros(n_params), np.eye(n_params), -np.eye(n_params)]) * width

    def by_differences(v: Array) -> tuple[float, Array]:
        values = -log_density(mode.location + (v + steps) * scale)
        values = np.where(np.isfinite(values), values, _NOWHERE)
        slope = (values[1 : n_params + 1] - values[n_params + 1 :]) / (2 * width)
        return float(values[0]), slope

    def by_gradient(v: Array) -> tuple[float, Array]:
        assert value_and_gradient is not None
        value, slope = value_and_gradient((mode.location + v * scale)[None])
        if not (np.isfinite(value[0]) and np.all(np.isfinite(slope[0]))):
            return _NOWHERE, np.zeros(n_params)
        return -float(value[0]), -slope[0] * scale

    negative = by_differences if value_and_gradient is None else by_gradient
    found = minimize(negative, np.zeros(n_params), jac=True, method="L-BFGS-B")
    if not -found.fun > mode.log_density:
        return mode
    return replace(mode, location=mode.location + found.x * scale, log_density=-float(found.fun))


def _subset(log_pi: Array, weight: Array) -> Array:
    """Points that describe the surface: the heaviest, with every n-th of them if too many."""
    order = np.argsort(weight)[::-1]
    covered = np.searchsorted(np.cumsum(weight[order]), 1 - 1e-6) + 1
    kept = order[:covered]
    if len(kept) > _MAX_POINTS:
        kept = kept[:: -(-len(kept) // _MAX_POINTS)]
    return np.union1d(kept, [int(np.argmax(log_pi))])


def _peaks(
    theta: Array, log_pi: Array, weight: Array, chosen: Array, prominence: float | None
) -> Array:
    """The peak of every point, as small integers."""
    from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415 - slow to import

    scaled = _whitened(theta, weight, chosen)
    points, height = scaled[chosen], log_pi[chosen]
    n_neighbours = min(len(chosen) - 1, 8 + 2 * theta.shape[1])
    if n_neighbours < 1:
        return np.zeros(len(theta), dtype=np.int64)
    search = NearestNeighbors(n_neighbors=n_neighbours).fit(points)
    neighbours = search.kneighbors(return_distance=False)
    if prominence is None:
        prominence = _prominence(theta.shape[1])
    parent = _climb(neighbours, height, prominence)
    _, peak = np.unique(parent, return_inverse=True)
    nearest = search.kneighbors(scaled, n_neighbors=1, return_distance=False)[:, 0]
    return np.asarray(peak.ravel()[nearest])


def _prominence(n_params: int) -> float:
    """How much log density a peak of a sample has to stand out by: more in many dimensions."""
    return 0.08 * n_params + 0.0225 * n_params**2


def _whitened(theta: Array, weight: Array, chosen: Array) -> Array:
    """Coordinates in which a cluster is round: by the pooled covariance within clusters.

    The covariance of all points would squeeze the directions in which modes lie apart.
    """
    share = weight[chosen] / weight[chosen].sum()
    clusters, _ = fit_clusters(theta[chosen], share)
    pooled = np.einsum("r,rab,rcb->ac", clusters.share, clusters.chol, clusters.chol)
    return np.asarray(np.linalg.solve(np.linalg.cholesky(pooled), theta.T).T)


def _climb(neighbours: Array, height: Array, prominence: float) -> Array:
    """Persistence-based clustering: the peak of each point as an index."""
    n = len(height)
    order = np.argsort(-height, kind="stable")
    rank = np.empty(n, dtype=np.int64)  # 0 for the highest; what follows is in ranks
    rank[order] = np.arange(n)
    one, other = np.repeat(rank, neighbours.shape[1]), rank[neighbours.ravel()]
    low, high = np.maximum(one, other), np.minimum(one, other)
    summit = np.arange(n)
    np.minimum.at(summit, low, high)
    while not np.array_equal(summit, summit[summit]):
        summit = summit[summit]
    # Where two basins meet first is the highest pass between them: only there can they be joined.
    passes = np.flatnonzero(summit[low] != summit[high])
    passes = passes[np.lexsort((high[passes], low[passes]))]
    ends = np.sort([summit[low[passes]], summit[high[passes]]], axis=0)
    _, first = np.unique(ends[0] * n + ends[1], return_index=True)
    parent = np.arange(n)

    def root(i: int) -> int:
        while parent[i] != i:
            i = int(parent[i])
        return i

    for meeting in passes[np.sort(first)]:
        upper, lower = sorted((root(summit[low[meeting]]), root(summit[high[meeting]])))
        if height[order[lower]] - height[order[low[meeting]]] < prominence:
            parent[lower] = upper
    peak = np.array([order[root(top)] for top in summit.tolist()])
    found = np.empty(n, dtype=np.int64)
    found[order] = peak
    return found
