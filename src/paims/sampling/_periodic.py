"""Periodic parameters: where each circle is cut open, so that it can be sampled as an interval.

The sampler knows straight lines only. A circle that is cut at one point and laid out from there is
an interval, a uniform reference on it stays the same, and nothing is lost as long as no mode lies
across the cut. So the cut is made where the density is lowest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paims._arrays import Array
from paims.sampling._references import Reference

_MOST_CELLS = 24  # of a circle, when the emptiest place is looked for
_POINTS_PER_CELL = 30


@dataclass(frozen=True)
class Circles:
    """The periodic parameters of a density.

    Attributes
    ----------
    index : tuple of int
        Which parameters.
    lower, period : tuple of float
        Where each begins, and its length.
    cut : tuple of float
        Where each is cut open, from its beginning: 0 before the cut is chosen.
    """

    index: tuple[int, ...]
    lower: tuple[float, ...]
    period: tuple[float, ...]
    cut: tuple[float, ...]

    @staticmethod
    def from_stored(values: Mapping[str, Any] | None) -> Circles | None:
        """Build from the values of a file."""
        return None if not values else Circles(**{key: tuple(v) for key, v in values.items()})

    def laid_out(self, x: Array) -> Array:
        """Lay the circles out from their cuts: what the sampler sees."""
        return self._turned(x, -np.array(self.cut))

    def closed(self, x: Array) -> Array:
        """Undo :meth:`laid_out`: what the user sees."""
        return self._turned(x, np.array(self.cut))

    def _turned(self, x: Array, by: Array) -> Array:
        out, columns = np.array(x, dtype=float), list(self.index)
        out[..., columns] = self.lower + np.mod(out[..., columns] - self.lower + by, self.period)
        return out

    def angle(self, draws: Array) -> Array:
        """Angles of the draws (n, n_params), shape (n, n_circles)."""
        return np.asarray(2 * np.pi * (draws[:, list(self.index)] - self.lower) / self.period)

    def mean(self, draws: Array, weights: Array, straight: Array) -> Array:
        """Means of all parameters: straight ones as given, circular ones for the circles."""
        out, angle = straight.copy(), np.angle(self._resultant(draws, weights))
        out[list(self.index)] = self.lower + np.mod(angle, 2 * np.pi) * self._radius
        return out

    def sd(self, draws: Array, weights: Array, straight: Array) -> Array:
        """Standard deviations likewise: sqrt(-2 log R), R the length of the mean direction."""
        out, length = straight.copy(), np.abs(self._resultant(draws, weights))
        out[list(self.index)] = np.sqrt(-2.0 * np.log(np.clip(length, 1e-300, 1.0))) * self._radius
        return out

    def linearised(self, draws: Array, weights: Array) -> Array:
        """Draws with the circles as values whose mean errs as the circular mean does.

        To first order, the circular mean of angles a is off by the mean of sin(a - mean) / R.
        """
        out, resultant = draws.copy(), self._resultant(draws, weights)
        off = np.sin(self.angle(draws) - np.angle(resultant))
        out[:, list(self.index)] = off / np.maximum(np.abs(resultant), 1e-300) * self._radius
        return out

    @property
    def _radius(self) -> Array:
        return np.array(self.period) / (2 * np.pi)

    def _resultant(self, draws: Array, weights: Array) -> Array:
        return np.asarray(weights @ np.exp(1j * self.angle(draws)))

    def cut_where_lowest(self, x: Array, log_density: Array) -> Circles:
        """Choose the cuts from draws of the reference: where the largest log density is least.

        Points of a flat reference say of each part of the circle how high the density is there,
        whatever the other parameters are.
        """
        n_cells = int(np.clip(len(x) // _POINTS_PER_CELL, 2, _MOST_CELLS))
        cell = np.floor(self.angle(x) / (2 * np.pi) * n_cells).astype(np.int64) % n_cells
        cuts = []
        for k, period in enumerate(self.period):
            highest = np.full(n_cells, -np.inf)
            np.maximum.at(highest, cell[:, k], log_density)
            # A cell counts with its neighbours, so that the cut is not made at the foot of a mode.
            around = np.maximum(highest, np.maximum(np.roll(highest, 1), np.roll(highest, -1)))
            lowest = np.flatnonzero(around == around.min())
            quietest = lowest[np.argmin(highest[lowest])]
            cuts.append(float((quietest + 0.5) / n_cells * period))
        return replace(self, cut=tuple(cuts))


def as_circles(
    periodic: Sequence[str | int] | None, names: Sequence[str], reference: Reference
) -> Circles | None:
    """The periodic parameters, by their names or numbers; None if there are none."""
    if periodic is None or (not isinstance(periodic, str | int) and not len(periodic)):
        return None
    if isinstance(periodic, str | int):
        raise TypeError(
            f"periodic must be a list of names or numbers of parameters; got {periodic!r}."
        )
    index = sorted({_number(which, names) for which in periodic})
    ends = [_ends(reference, i, names[i]) for i in index]
    return Circles(
        tuple(index),
        tuple(low for low, _ in ends),
        tuple(high - low for low, high in ends),
        (0.0,) * len(index),
    )


def _number(which: Any, names: Sequence[str]) -> int:
    if isinstance(which, str) and which in names:
        return list(names).index(which)
    if isinstance(which, int | np.integer) and 0 <= which < len(names):
        return int(which)
    raise ValueError(
        f"periodic names {which!r}, which is no parameter; they are {', '.join(names)} (or the "
        f"numbers 0 to {len(names) - 1})."
    )


def _ends(reference: Any, i: int, name: str) -> tuple[float, float]:
    """Ends of a parameter that is uniform, and independent of the others."""
    ends = getattr(reference, "uniform_ends", None)
    found: tuple[float, float] | None = None if ends is None else ends(i)
    if found is None:
        raise ValueError(
            f"The periodic parameter {name} needs a uniform reference from the beginning to the "
            "end of its period, such as paims.Uniform(lower, upper) or stats.uniform(0, 2 * pi); "
            f"got {reference!r}."
        )
    return found
