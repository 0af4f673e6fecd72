"""Maps that straighten a bent cluster: what a mean and a covariance do not say of its shape.

Coordinates are taken in some order. Given the earlier ones, u = (x - centre) / scale, each is
straightened by a mean that is quadratic in them, a log scale that is linear and quadratic, and a
monotone map of what is left::

    y_k = warp_k((e_k(x_k) - m_k(u_<k)) exp(-s_k(u_<k)))

e_k is the identity, or the probit map of the box for a coordinate whose points pile up at an edge.
A funnel, a curved valley and skewed or heavy-tailed coordinates become Gaussian under such a map.
It is triangular (Knothe and Rosenblatt), so its inverse and Jacobian are known exactly whatever
the terms are; terms enter only where the points speak for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from paims._arrays import Array
from paims._parallel import single_threaded_blas
from paims.sampling._warp import Warp

_REACH = 5.0  # quadratic terms stay constant beyond so many standard deviations
_MOST_LOG_SCALE = 8.0
_SIGNIFICANT = 4.0  # standard errors
_ONE = (-1, -1)
_LEAST = 2.0**-53  # distance from an edge, relative to the box, that can be told from none

Terms = tuple[tuple[int, int, float], ...]


@dataclass(frozen=True)
class Coordinate:
    """How one coordinate is straightened, given earlier ones.

    Attributes
    ----------
    index : int
    edges : tuple of float or None
        The interval whose probit map is taken first.
    centre, scale : float
        Standardise the coordinate, or its probit.
    mean, log_scale : tuple of (int, int, float)
        Terms: coefficients of u_i u_j; -1 stands for a factor of 1.
    warp : Warp or None
    """

    index: int
    edges: tuple[float, float] | None
    centre: float
    scale: float
    mean: Terms
    log_scale: Terms
    warp: Warp | None

    def straightened(self, x: Array, u: Array) -> tuple[Array, Array]:
        """Values x mapped, and log dy/dx, given the standardised coordinates u (n, n_params)."""
        e, log_slope = entered(x, self.edges)
        log_scale = np.clip(_sum(self.log_scale, u), -_MOST_LOG_SCALE, _MOST_LOG_SCALE)
        y = ((e - self.centre) / self.scale - _sum(self.mean, u)) * np.exp(-log_scale)
        log_slope = log_slope - log_scale - np.log(self.scale)
        if self.warp is None:
            return y, log_slope
        y, more = self.warp.forward(y)
        return y, log_slope + more

    def bent(self, y: Array, u: Array) -> Array:
        """Undo :meth:`straightened`."""
        log_scale = np.clip(_sum(self.log_scale, u), -_MOST_LOG_SCALE, _MOST_LOG_SCALE)
        t = y if self.warp is None else self.warp.inverse(y)
        e = (t * np.exp(log_scale) + _sum(self.mean, u)) * self.scale + self.centre
        if self.edges is None:
            return np.asarray(e)
        lower, upper = self.edges
        return np.asarray(lower + (upper - lower) * ndtr(e))


@dataclass(frozen=True, eq=False)
class Bend:
    """The map of a cluster.

    Attributes
    ----------
    centre, scale : tuple of float
        Of u, for each coordinate.
    coordinates : tuple of Coordinate
        In the order in which they are straightened.
    """

    centre: tuple[float, ...]
    scale: tuple[float, ...]
    coordinates: tuple[Coordinate, ...]

    @staticmethod
    def from_stored(values: Mapping[str, Any]) -> Bend:
        """Build from the values of a file."""
        return Bend(
            tuple(values["centre"]),
            tuple(values["scale"]),
            tuple(
                Coordinate(
                    one["index"],
                    tuple(one["edges"]) if one["edges"] else None,
                    one["centre"],
                    one["scale"],
                    tuple((i, j, c) for i, j, c in one["mean"]),
                    tuple((i, j, c) for i, j, c in one["log_scale"]),
                    Warp(**{k: tuple(v) for k, v in one["warp"].items()}) if one["warp"] else None,
                )
                for one in values["coordinates"]
            ),
        )

    def to_store(self) -> dict[str, Any]:
        """Values for a file."""
        return asdict(self)

    @property
    def n_terms(self) -> int:
        """How many numbers were fitted beyond mean and covariance."""
        return sum(
            sum(j >= 0 for _, j, _ in one.mean)
            + len(one.log_scale)
            + (len(one.warp.t) + 2 if one.warp else 0)
            + (one.edges is not None)
            for one in self.coordinates
        )

    @cached_property
    def _standard(self) -> tuple[Array, Array]:
        return np.array(self.centre), np.array(self.scale)

    def straightened(self, x: Array) -> tuple[Array, Array]:
        """Map points (n, n_params); return y and the log Jacobian (n,), -inf beyond an edge."""
        centre, scale = self._standard
        u = (x - centre) / scale
        y, log_jacobian = np.empty_like(u), np.zeros(len(x))
        for one in self.coordinates:
            y[:, one.index], log_slope = one.straightened(x[:, one.index], u)
            log_jacobian += log_slope
        return np.where(np.isneginf(log_jacobian)[:, None], 0.0, y), log_jacobian

    def bent(self, y: Array) -> Array:
        """Undo :meth:`straightened`."""
        centre, scale = self._standard
        x, u = np.empty_like(y), np.zeros_like(y)
        for one in self.coordinates:
            k = one.index
            x[:, k] = one.bent(y[:, k], u)
            u[:, k] = (x[:, k] - centre[k]) / scale[k]
        return x


def entered(x: Array, edges: tuple[float, float] | None) -> tuple[Array, Array]:
    """Values, or their probits on an interval, and the log derivative; -inf outside of it."""
    if edges is None:
        return x, np.zeros(len(x))
    lower, upper = edges
    inside = (x >= lower) & (x <= upper)
    share = np.clip((x - lower) / (upper - lower), _LEAST, 1.0 - _LEAST)
    e = ndtri(share)
    log_slope = 0.5 * e**2 + 0.5 * np.log(2 * np.pi) - np.log(upper - lower)
    return e, np.where(inside, log_slope, -np.inf)


def _factor(u: Array, i: int) -> Array:
    return np.clip(u[:, i], -_REACH, _REACH)


def _feature(u: Array, i: int, j: int) -> Array:
    """u_i u_j, each within reach; linear terms go on for ever."""
    if i < 0:
        return np.ones(len(u))
    return u[:, i] if j < 0 else _factor(u, i) * _factor(u, j)


def _sum(terms: Terms, u: Array) -> Array:
    out = np.zeros(len(u))
    for i, j, coefficient in terms:
        out += coefficient * _feature(u, i, j)
    return out


def fit_bend(x: Array, w: Array, lower: Array, upper: Array) -> tuple[Bend, float] | None:
    """Fit a map to weighted points.

    Parameters
    ----------
    x : ndarray, shape (n, n_params)
    w : ndarray, shape (n,)
        Sums to 1.
    lower, upper : ndarray, shape (n_params,)
        The box that the points live in; infinite where there is none.

    Returns
    -------
    (Bend, float) or None
        The map, and by how much the mean log likelihood of a Gaussian is higher after it, less
        the price of its terms (BIC); None if no map pays.
    """
    n = 1.0 / float(np.sum(w**2))
    n_params = x.shape[1]
    if n < 10.0 * (n_params + 3.0):
        return None
    with single_threaded_blas():  # the same bits for any number of threads
        return _best(x, w, n, lower, upper)


def _best(x: Array, w: Array, n: float, lower: Array, upper: Array) -> tuple[Bend, float] | None:
    fit = _Fit(x, w, n, lower, upper)
    plain = _gaussian(x, w)
    best: tuple[Bend, float] | None = None
    for order in fit.orders():
        bend = fit.along(order)
        y, log_jacobian = bend.straightened(x)
        gain = _gaussian(y, w) + float(w @ log_jacobian) - plain
        gain -= 0.5 * bend.n_terms * float(np.log(n)) / n
        if bend.n_terms and np.isfinite(gain) and gain > (0.0 if best is None else best[1]):
            best = bend, gain
    return best


def _gaussian(x: Array, w: Array) -> float:
    """Mean log likelihood of the best Gaussian, but for a constant."""
    centred = x - w @ x
    sign, log_det = np.linalg.slogdet(_gram(centred, w))
    return -0.5 * float(log_det) if sign > 0 else np.inf


@dataclass
class _Fit:
    """Weighted points on their way to a map."""

    x: Array
    w: Array
    n: float
    lower: Array
    upper: Array
    edges: list[tuple[float, float] | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.centre = self.w @ self.x
        self.scale = np.sqrt(self.w @ (self.x - self.centre) ** 2)
        self.u = (self.x - self.centre) / self.scale
        self.e = np.empty_like(self.u)
        self.e_centre, self.e_scale = np.empty((2, self.x.shape[1]))
        self.edges = [self._edge(k) for k in range(self.x.shape[1])]
        self.pairs = np.array(np.triu_indices(self.x.shape[1])).T
        factors = np.clip(self.u, -_REACH, _REACH)
        self.quadratic = factors[:, self.pairs[:, 0]] * factors[:, self.pairs[:, 1]]

    def _edge(self, k: int) -> tuple[float, float] | None:
        """The box's edges if the probits of a coordinate look more Gaussian; standardises it."""
        edges: tuple[float, float] | None = None
        column = self.x[:, k]
        centre, scale = self.centre[k], self.scale[k]
        if np.isfinite(self.lower[k]) and np.isfinite(self.upper[k]):
            box = float(self.lower[k]), float(self.upper[k])
            e, log_slope = entered(column, box)
            middle = self.w @ e
            sd = np.sqrt(self.w @ (e - middle) ** 2)
            gain = float(self.w @ log_slope) - np.log(sd) + np.log(scale)
            if np.isfinite(gain) and self.n * gain > 10.0:
                edges, column, centre, scale = box, e, middle, sd
        self.e_centre[k], self.e_scale[k] = centre, scale
        self.e[:, k] = (column - centre) / scale
        return edges

    def orders(self) -> list[tuple[int, ...]]:
        """Orders to try: as given, and with those last that the others say most about."""
        n_params = self.x.shape[1]
        given = tuple(range(n_params))
        if n_params == 1:
            return [given]
        precision = np.linalg.pinv(_gram(self.e, self.w))
        rest = (self.e @ precision) / np.diag(precision)
        rest = rest / np.sqrt(np.maximum(self.w @ rest**2, 1e-300))
        gain = np.zeros(n_params)
        spread = np.log(rest**2 + 1e-12)
        for k in range(n_params):
            free = np.all(self.pairs != k, axis=1)
            others = np.arange(n_params) != k
            for value, features in (
                (rest[:, k], self.quadratic[:, free]),
                (spread[:, k], self.u[:, others]),
            ):
                score = self._correlation(value, features)
                score[np.abs(score) < _SIGNIFICANT / np.sqrt(self.n)] = 0.0
                gain[k] += np.sum(np.minimum(score**2, 0.99))
        by_gain = tuple(int(k) for k in np.argsort(gain, kind="stable"))
        return list(dict.fromkeys([by_gain, given]))

    def _correlation(self, value: Array, features: Array, weight: Array | None = None) -> Array:
        w = self.w if weight is None else weight
        value = value - w @ value
        mean = w @ features
        square = w @ features**2 - mean**2
        cross = (w * value) @ features
        scale = np.sqrt(np.maximum(square, 1e-12) * (w @ value**2))
        return np.asarray(cross / np.maximum(scale, 1e-300))

    def along(self, order: tuple[int, ...]) -> Bend:
        """The map with the coordinates in this order."""
        coordinates = []
        for place, k in enumerate(order):
            coordinates.append(self._coordinate(k, order[:place]))
        return Bend(tuple(self.centre.tolist()), tuple(self.scale.tolist()), tuple(coordinates))

    def _coordinate(self, k: int, earlier: tuple[int, ...]) -> Coordinate:
        e = self.e[:, k]
        mean: list[tuple[int, int]] = [_ONE]
        log_scale: list[tuple[int, int]] = []
        coef, gamma = np.zeros(1), np.zeros(0)
        bends = False
        if earlier:
            mean += [(i, -1) for i in sorted(earlier)]
            log_sigma = np.zeros(len(e))
            coef = self._least_squares(e, mean, log_sigma)
            for _ in range(2):
                rest = e - self._predicted(mean, coef)
                log_scale = self._scale_terms(rest, earlier)
                gamma = self._log_scale(rest, log_scale)
                log_sigma = self._predicted(log_scale, gamma)
                new = self._mean_terms(rest, log_sigma, earlier, mean)
                mean = mean + new
                coef = self._least_squares(e, mean, log_sigma)
            bends = bool(log_scale) or len(mean) > 1 + len(earlier)
        rest = (e - self._predicted(mean, coef)) * np.exp(-self._predicted(log_scale, gamma))
        sd = float(np.sqrt(max(self.w @ rest**2, 1e-300)))
        if log_scale:
            log_scale, gamma = [_ONE, *log_scale], np.concatenate([[np.log(sd)], gamma])
            rest = rest / sd
            sd = 1.0
        warp = Warp.of(rest, self.w) if self._odd(rest / sd) else None
        if not bends and warp is None:
            mean, coef = [], np.zeros(0)  # the covariance says it all
        return Coordinate(
            k,
            self.edges[k],
            float(self.e_centre[k]),
            float(self.e_scale[k]),
            tuple((i, j, float(c)) for (i, j), c in zip(mean, coef, strict=True)),
            tuple((i, j, float(c)) for (i, j), c in zip(log_scale, gamma, strict=True)),
            warp,
        )

    def _odd(self, t: Array) -> bool:
        """Whether standardised values have a skewness or kurtosis that no normal sample has."""
        skewness = float(self.w @ t**3)
        kurtosis = float(self.w @ t**4) - 3.0
        skewed = abs(skewness) > _SIGNIFICANT * np.sqrt(6.0 / self.n)
        return bool(skewed or abs(kurtosis) > _SIGNIFICANT * np.sqrt(24.0 / self.n))

    def _predicted(self, terms: list[tuple[int, int]], coef: Array) -> Array:
        return _sum(tuple((i, j, c) for (i, j), c in zip(terms, coef, strict=True)), self.u)

    def _matrix(self, terms: list[tuple[int, int]]) -> Array:
        return np.stack([_feature(self.u, i, j) for i, j in terms], axis=1)

    def _least_squares(self, e: Array, terms: list[tuple[int, int]], log_sigma: Array) -> Array:
        a = self._matrix(terms)
        weight = self.w * np.exp(-2.0 * (log_sigma - np.min(log_sigma)))
        return _solved(a, weight, e)

    def _mean_terms(
        self, rest: Array, log_sigma: Array, earlier: tuple[int, ...], have: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Quadratic terms that the residuals speak for."""
        own = np.isin(self.pairs[:, 0], earlier) & np.isin(self.pairs[:, 1], earlier)
        columns = np.flatnonzero(own)
        weight = self.w * np.exp(-2.0 * (log_sigma - np.min(log_sigma)))
        weight = weight / weight.sum()
        score = np.abs(self._correlation(rest, self.quadratic[:, columns], weight))
        n = min(self.n, 1.0 / float(np.sum(weight**2)))
        best = np.argsort(-score, kind="stable")
        most = int(max(n / 30.0 - len(have), 0))
        chosen = [c for c in best if score[c] > _SIGNIFICANT / np.sqrt(n)][:most]
        terms = [(int(i), int(j)) for i, j in self.pairs[columns[chosen]]]
        return [term for term in terms if term not in have]

    def _scale_terms(self, rest: Array, earlier: tuple[int, ...]) -> list[tuple[int, int]]:
        """Terms of the log scale that the residuals speak for."""
        terms = [(i, -1) for i in earlier] + [(i, i) for i in earlier]
        spread = np.log(rest**2 + 1e-12 * float(self.w @ rest**2))
        score = np.abs(self._correlation(spread, self._matrix(terms)))
        best = np.argsort(-score, kind="stable")
        most = int(max(self.n / 50.0, 1))
        return [terms[c] for c in best if score[c] > _SIGNIFICANT / np.sqrt(self.n)][:most]

    def _log_scale(self, rest: Array, terms: list[tuple[int, int]]) -> Array:
        """Coefficients of the log scale: least squares of log r^2 / 2, then Fisher scoring."""
        if not terms:
            return np.zeros(0)
        a = self._matrix([_ONE, *terms])
        spread = 0.5 * np.log(rest**2 + 1e-12 * float(self.w @ rest**2)) + 0.635
        coef = _solved(a, self.w, spread)
        inverse = np.linalg.pinv(_gram(a, self.w), rcond=1e-12, hermitian=True)
        for _ in range(6):
            excess = rest**2 * np.exp(-2.0 * np.clip(a @ coef, -20, 20)) - 1.0
            coef = coef + inverse @ (a.T @ (self.w * 0.5 * np.minimum(excess, 8.0)))
        return np.asarray(coef[1:])


def _gram(a: Array, weight: Array) -> Array:
    return np.asarray((a * weight[:, None]).T @ a)


def _solved(a: Array, weight: Array, value: Array) -> Array:
    """Weighted least squares."""
    return np.asarray(np.linalg.lstsq(_gram(a, weight), a.T @ (weight * value), rcond=1e-12)[0])
