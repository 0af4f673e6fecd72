"""Units: inputs to [0, 1] by the range of the runs, outputs to mean 0 and standard deviation 1.

A power of two is taken out first. That is exact, so no unit overflows or underflows on the way,
and runs in other units are scaled to the same numbers. Conversions that are not powers of two
change the last digits of the runs; the scaled runs are rounded to multiples of 2^-32, so that
these digits, which no emulator can use, do not change what is learnt. (Inputs at which a
prediction is wanted are not rounded: derivatives by differences stay smooth.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paims._arrays import BoolArray, FloatArray, IntArray

# Inputs this many ranges away from the runs are as far as any further ones; their squares are
# still finite.
_FAR = 1e150


def _rounded(values: FloatArray) -> FloatArray:
    rounded: FloatArray = np.rint(values * 2.0**32) * 2.0**-32
    return rounded


def _exponent(values: FloatArray) -> int:
    """Power of two that takes the largest of the values to [1/2, 1)."""
    return int(np.frexp(np.abs(values).max())[1])


def spread(values: FloatArray) -> float:
    """Standard deviation of values whose squares may be beyond double precision."""
    exponent = _exponent(values)
    return float(np.ldexp(np.std(np.ldexp(values, -exponent)), exponent))


@dataclass(frozen=True)
class InputScaling:
    """Inputs to [0, 1] and back.

    Attributes
    ----------
    exponent : (n_features,) ndarray of int
        Power of two taken out of each column.
    lower, width : (n_features,) ndarray
        Least value and range of what is left of the runs' columns; a column that never varies
        has a width of 0.
    """

    exponent: IntArray
    lower: FloatArray
    width: FloatArray

    @classmethod
    def of(cls, X: FloatArray) -> InputScaling:
        """Scaling by the range of the runs ``X`` (n, n_features)."""
        exponent = np.array([_exponent(column) for column in X.T], dtype=np.int64)
        reduced = np.ldexp(X, -exponent)
        lower = reduced.min(axis=0)
        return cls(exponent, lower, reduced.max(axis=0) - lower)

    @property
    def active(self) -> BoolArray:
        """Whether each column varies, ``(n_features,)``."""
        varies: BoolArray = self.width > 0.0
        return varies

    @property
    def range(self) -> FloatArray:
        """Range of the columns that vary, in the user's units; inf if beyond double precision."""
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(self.width, self.exponent)[self.active], dtype=np.float64)

    def runs(self, X: FloatArray) -> FloatArray:
        """Scaled and rounded inputs of the runs, ``(n, p)``: the columns that vary."""
        return _rounded(self.apply(X))

    def apply(self, X: FloatArray) -> FloatArray:
        """Scaled inputs ``(k, p)``, without the columns that never vary in the runs."""
        active = self.active
        with np.errstate(over="ignore", under="ignore"):
            reduced = np.ldexp(X[:, active], -self.exponent[active])
            scaled = (reduced - self.lower[active]) / self.width[active]
        return np.clip(scaled, -_FAR, _FAR)

    def undo(self, scaled: FloatArray) -> FloatArray:
        """Inputs ``(k, n_features)`` in the user's units."""
        active = self.active
        full = np.broadcast_to(self.lower, (len(scaled), len(self.lower))).copy()
        with np.errstate(over="ignore", under="ignore"):
            full[:, active] += scaled * self.width[active]
            return np.asarray(np.ldexp(full, self.exponent), dtype=np.float64)

    def changed_constants(self, X: FloatArray) -> IntArray:
        """Columns that never vary in the runs, but have another value somewhere in ``X``."""
        fixed = np.flatnonzero(~self.active)
        constant = np.ldexp(self.lower[fixed], self.exponent[fixed])
        return np.asarray(fixed[(X[:, fixed] != constant).any(axis=0)], dtype=np.int64)


@dataclass(frozen=True)
class OutputScaling:
    """Outputs to mean 0 and standard deviation 1, and back: y = 2^exponent (shift + scale t).

    Attributes
    ----------
    exponent : int
    shift, scale : float
    """

    exponent: int
    shift: float
    scale: float

    @classmethod
    def of(cls, y: FloatArray, *, centre: bool) -> OutputScaling:
        """Scaling by the outputs of the runs.

        Parameters
        ----------
        y : (n,) ndarray
            Not all equal; not all 0 without ``centre``.
        centre : bool
            Whether the mean is taken out. It must not be for a trend without a constant term,
            as that would be another model.
        """
        exponent = _exponent(y)
        reduced = np.ldexp(y, -exponent)
        shift = float(reduced.mean()) if centre else 0.0
        return cls(exponent, shift, float(np.sqrt(np.mean((reduced - shift) ** 2))))

    @property
    def log_scale(self) -> float:
        """Log of the unit of the scaled outputs, in the user's units."""
        return float(np.log(self.scale) + self.exponent * np.log(2.0))

    def runs(self, y: FloatArray) -> FloatArray:
        """Scaled and rounded outputs of the runs."""
        return _rounded(self.apply(y))

    def apply(self, y: FloatArray) -> FloatArray:
        """Scaled outputs."""
        with np.errstate(over="ignore", under="ignore"):
            scaled: FloatArray = (np.ldexp(y, -self.exponent) - self.shift) / self.scale
        return scaled

    def value(self, scaled: FloatArray) -> FloatArray:
        """Outputs in the user's units."""
        return self._in_units(self.shift + self.scale * np.asarray(scaled), 1)

    def difference(self, scaled: FloatArray) -> FloatArray:
        """Differences of outputs (such as standard deviations) in the user's units."""
        return self._in_units(self.scale * np.asarray(scaled), 1)

    def square(self, scaled: FloatArray) -> FloatArray:
        """Squared differences (such as variances) in the user's units; may overflow to inf."""
        return self._in_units(self.scale * self.scale * np.asarray(scaled), 2)

    def _in_units(self, reduced: FloatArray, power: int) -> FloatArray:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(reduced, power * self.exponent), dtype=np.float64)
