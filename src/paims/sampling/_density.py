"""One call of the user's function, wherever it happens.

What comes back is checked, what is raised is explained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from paims._arrays import Array

if TYPE_CHECKING:
    from paims.sampling._result import SampleResult

LogDensity = Callable[[Array], Any]

_SEARCH_SECONDS = 10.0  # for the point at which a batch raises, or as long as the batch took


class DensityError(RuntimeError):
    """The density raised, hung, or took its worker down.

    Attributes
    ----------
    points : ndarray, shape (m, n_params)
        Where.
    result : SampleResult or None
        What the levels before it gave.
    advice : str
        How to go on, which is the last sentence of the message.
    """

    points: Array
    result: SampleResult | None = None
    advice: str = ""

    def __str__(self) -> str:
        return f"{super().__str__()} {self.advice}".rstrip()

    @classmethod
    def at(cls, points: Array, text: str) -> Self:
        """Build from the points and what happened there."""
        error = cls(text)
        error.points = points
        return error


def listed(points: Array, most: int = 3) -> str:
    """Points for a message; the first few of many."""
    shown = ", ".join(str(point.tolist()) for point in points[:most])
    more = len(points) - most
    return shown if more <= 0 else f"{shown} and {more} more"


@dataclass
class Answer:
    """Values of a batch.

    Attributes
    ----------
    values : ndarray, shape (m,) or (m, 1 + n_params)
        As the density gave them, NaN included; -inf where rejected. With gradients these are the
        columns after the first.
    rejected : ndarray of bool, shape (m,)
        Where it raised.
    why : str
        The first exception among those.
    seconds : float
        How long it took.
    """

    values: Array
    rejected: Array
    why: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Density:
    """The user's function with the rules for calling it, here or in another process.

    Parameters
    ----------
    log_density : callable
        Takes ``(m, n_params)`` and returns ``(m,)``; with ``vectorized=False`` takes
        ``(n_params,)`` and returns a number.
    vectorized : bool
    on_error : {"raise", "reject"}
    gradient : callable, optional
        Takes what ``log_density`` takes; returns its values and their gradients.
    sloped : bool
        Whether a call gives the gradients too.
    """

    log_density: LogDensity
    vectorized: bool = True
    on_error: str = "raise"
    gradient: Callable[[Array], Any] | None = None
    sloped: bool = False

    def __call__(self, theta: Array) -> Answer:
        """Evaluate a batch ``(m, n_params)``, m > 0."""
        start = monotonic()
        answer = self._reject(theta) if self.on_error == "reject" else self._raise(theta)
        answer.seconds = monotonic() - start
        return answer

    def _raise(self, theta: Array) -> Answer:
        start = monotonic()
        try:
            return Answer(self._values(theta), np.zeros(len(theta), dtype=bool))
        except _Raised as raised:
            allowed = monotonic() + max(_SEARCH_SECONDS, monotonic() - start)
            points, error = self._search(theta, raised, allowed)
        advice = (
            "Correct the function, return -inf where the density is zero, or pass "
            'on_error="reject" to count such points as zero density.'
        )
        where = (
            f"at {points[0].tolist()}"
            if len(points) == 1
            else f"for a batch of {len(points)} points: {listed(points)}"
        )
        raise DensityError.at(
            points, f"log_density raised {_described(error)} {where}. {advice}"
        ) from error

    def _search(
        self, theta: Array, raised: _Raised, allowed: float
    ) -> tuple[Array, BaseException | None]:
        """Halve a batch that raises down to a point that does, as long as time allows."""
        points, error = raised.points if raised.points is not None else theta, raised.__cause__
        while len(points) > 1 and monotonic() < allowed:
            middle = len(points) // 2
            for half in (points[:middle], points[middle:]):
                try:
                    self._values(half)
                except _Raised as again:
                    points = again.points if again.points is not None else half
                    error = again.__cause__
                    break
            else:
                break  # The batch raises, its halves do not.
        return points, error

    def _reject(self, theta: Array) -> Answer:
        """Halve a batch that raises until the points that do are alone."""
        try:
            return Answer(self._values(theta), np.zeros(len(theta), dtype=bool))
        except _Raised as raised:
            if len(theta) == 1:
                values, rejected = np.full(1, -np.inf), np.ones(1, dtype=bool)
                if self.sloped:
                    values = np.append(values, np.zeros(theta.shape[1]))[None]
                return Answer(values, rejected, _described(raised.__cause__))
        middle = len(theta) // 2
        a, b = self._reject(theta[:middle]), self._reject(theta[middle:])
        return Answer(
            np.concatenate([a.values, b.values]),
            np.concatenate([a.rejected, b.rejected]),
            a.why or b.why,
        )

    def _values(self, theta: Array) -> Array:
        if not self.sloped:
            assert self.log_density is not None
            return checked(self._called(self.log_density, theta), theta, self.vectorized)
        assert self.gradient is not None
        raw = self._called(self.gradient, theta)
        values, slopes = raw if self.vectorized else tuple(zip(*raw, strict=True))
        return np.column_stack(
            [checked(values, theta, self.vectorized), checked_slopes(slopes, theta)]
        )

    def _called(self, function: Callable[[Array], Any], theta: Array) -> Any:
        if self.vectorized:
            try:
                return function(theta.copy())
            except Exception as error:
                raise _Raised(None) from error
        values = []
        for i, point in enumerate(theta):
            try:
                values.append(function(point.copy()))
            except Exception as error:
                raise _Raised(theta[i : i + 1]) from error
        return values


class _Raised(Exception):
    """The user's function raised; ``points`` are those that are known to be the cause."""

    def __init__(self, points: Array | None) -> None:
        self.points = points


def _described(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def checked(raw: Any, theta: Array, vectorized: bool) -> Array:
    """What a density returned as an array of floats, or an error that says what is wrong."""
    if isinstance(raw, np.ma.MaskedArray) and np.ma.is_masked(raw):
        raise ValueError(
            "log_density returned masked values. Return -inf where the density is zero, or NaN "
            "where it could not be computed."
        )
    try:
        values = np.asarray(raw)
    except ValueError:
        raise ValueError(
            "log_density must return one number for each point; got a ragged list."
        ) from None
    if np.iscomplexobj(values) or values.dtype.kind not in "fiub":
        raise TypeError(
            f"log_density must return real numbers; got dtype {values.dtype}. "
            "Return the log of a density, -inf where it is zero."
        )
    if values.shape != (len(theta),):
        hint = (
            "If your function takes one point at a time, pass vectorized=False."
            if vectorized
            else "Return one number for a point."
        )
        raise ValueError(
            f"log_density must return shape ({len(theta)},) for a batch of shape "
            f"{theta.shape}; got shape {values.shape}. {hint}"
        )
    values = values.astype(float)
    if np.any(values == np.inf):
        at = theta[np.argmax(values == np.inf)].tolist()
        raise ValueError(
            f"log_density is +inf at {at}: not a density. Return a finite number, or -inf "
            "where the density is zero."
        )
    return values


def checked_slopes(raw: Any, theta: Array) -> Array:
    """Gradients as an array of floats, 0 where there is none, or an error."""
    slopes = np.asarray(raw, dtype=float)
    if slopes.shape != theta.shape:
        raise ValueError(
            f"value_and_gradient must return gradients of shape {theta.shape} for a batch of that "
            f"shape; got {slopes.shape}."
        )
    return np.where(np.isfinite(slopes), slopes, 0.0)
