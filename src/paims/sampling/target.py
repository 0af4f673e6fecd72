"""The density to sample: what the user gives, made safe to call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from paims.sampling._arrays import Array
from paims.sampling.references import Reference

LogDensity = Callable[[Array], Any]


class StopSampling(Exception):
    """Raised before a batch that a limit forbids; carries the reason."""


@dataclass(frozen=True)
class Points:
    """Points with what is known of the densities there.

    Attributes
    ----------
    theta : ndarray, shape (n, n_params)
    log_pi : ndarray, shape (n,)
        Log density of the target; -inf where it is zero.
    log_m : ndarray, shape (n,)
        Log density of the reference.
    """

    theta: Array
    log_pi: Array
    log_m: Array

    def __len__(self) -> int:
        return len(self.log_pi)

    def __getitem__(self, index: Any) -> Points:
        return Points(self.theta[index], self.log_pi[index], self.log_m[index])

    @staticmethod
    def concatenate(parts: list[Points]) -> Points:
        """Join several sets of points."""
        return Points(
            np.concatenate([part.theta for part in parts]),
            np.concatenate([part.log_pi for part in parts]),
            np.concatenate([part.log_m for part in parts]),
        )


@dataclass
class Target:
    """A log density with its reference, evaluated batch by batch, counted and limited.

    Zero density is -inf or NaN (the latter is counted) and everything outside the support of the
    reference, where the user's function is not called at all.

    Parameters
    ----------
    log_density : callable
        Takes ``(m, n_params)`` and returns ``(m,)``; with ``vectorized=False`` takes
        ``(n_params,)`` and returns a number.
    reference : Reference
    vectorized : bool
    times_reference : bool
        Whether the density is ``exp(log_density)`` times that of the reference.
    max_evaluations : int, optional
    deadline : float, optional
        Value of ``time.monotonic()`` after which no batch starts.
    """

    log_density: LogDensity
    reference: Reference
    vectorized: bool = True
    times_reference: bool = False
    max_evaluations: int | None = None
    deadline: float | None = None
    n_evaluations: int = field(default=0, init=False)
    n_nan: int = field(default=0, init=False)

    def evaluate(self, theta: Array) -> Points:
        """Evaluate a batch ``(m, n_params)``."""
        log_m = np.asarray(self.reference.log_density(theta), dtype=float)
        if log_m.shape != (len(theta),):
            raise ValueError(
                f"reference.log_density must return shape ({len(theta)},) for points of shape "
                f"{theta.shape}; got {log_m.shape}."
            )
        log_pi = np.full(len(theta), -np.inf)
        inside = np.isfinite(log_m)
        n_inside = int(np.count_nonzero(inside))
        if n_inside:
            self._check_limits(n_inside)
            values = self._call(theta[inside])
            self.n_evaluations += n_inside
            is_nan = np.isnan(values)
            self.n_nan += int(np.count_nonzero(is_nan))
            values[is_nan] = -np.inf
            log_pi[inside] = values + log_m[inside] if self.times_reference else values
        return Points(theta, log_pi, log_m)

    def log_pi(self, theta: Array) -> Array:
        """Log density of the target at a batch, without limits or counts."""
        free = Target(self.log_density, self.reference, self.vectorized, self.times_reference)
        return free.evaluate(np.atleast_2d(theta)).log_pi

    def _check_limits(self, size: int) -> None:
        if self.max_evaluations is not None and self.n_evaluations + size > self.max_evaluations:
            raise StopSampling(
                f"the next batch of {size} would pass max_evaluations={self.max_evaluations}"
            )
        if self.deadline is not None and monotonic() >= self.deadline:
            raise StopSampling("max_seconds is over")

    def _call(self, theta: Array) -> Array:
        if self.vectorized:
            raw = self.log_density(theta.copy())
        else:
            raw = [self.log_density(point.copy()) for point in theta]
        values = np.asarray(raw)
        if np.iscomplexobj(values) or values.dtype.kind not in "fiub":
            raise TypeError(
                f"log_density must return real numbers; got dtype {values.dtype}. "
                "Return the log of a density, -inf where it is zero."
            )
        if values.shape != (len(theta),):
            hint = (
                "If your function takes one point at a time, pass vectorized=False."
                if self.vectorized
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
