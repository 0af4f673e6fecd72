"""The density to sample: what the user gives, made safe to call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic
from typing import Any, Protocol

import numpy as np

from paims._arrays import Array
from paims.sampling._calls import REJECTED, Call, LogDensity
from paims.sampling._journal import Entry
from paims.sampling._references import Reference


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


class Evaluator(Protocol):
    """Where the density is evaluated."""

    def fill(self, call: Call, theta: Array, entry: Entry, tick: Callable[[], None]) -> None:
        """Evaluate what is missing in an entry; ``tick`` is called whenever some of it is there.

        Parameters
        ----------
        call : Call
        theta : ndarray, shape (m, n_params)
        entry : Entry
            Of these points.
        tick : callable
            May raise, which ends the evaluation.
        """


class InThisCall:
    """Evaluates a batch by one call of the density."""

    def fill(self, call: Call, theta: Array, entry: Entry, tick: Callable[[], None]) -> None:
        """Evaluate what is missing."""
        rows = entry.missing
        entry.put(rows, call(theta[rows]))
        tick()


class Recorder(Protocol):
    """Who keeps the values of batches, so that none is evaluated twice."""

    def begin(self, theta: Array) -> Entry:
        """Return the entry of the next batch."""

    def tick(self) -> None:
        """Notice that there are new values."""


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
    on_error : {"raise", "reject"}
        What to do when the density raises.
    evaluator : Evaluator
    recorder : Recorder, optional
    """

    log_density: LogDensity
    reference: Reference
    vectorized: bool = True
    times_reference: bool = False
    max_evaluations: int | None = None
    deadline: float | None = None
    on_error: str = "raise"
    evaluator: Evaluator = field(default_factory=InThisCall)
    recorder: Recorder | None = None
    n_evaluations: int = field(default=0, init=False)
    n_nan: int = field(default=0, init=False)
    n_rejected: int = field(default=0, init=False)
    why_rejected: str = field(default="", init=False)

    def limit(self, max_evaluations: int | None, max_seconds: float | None, on_error: str) -> None:
        """Set the limits of a run that begins now, and what an exception of the density means."""
        self.max_evaluations, self.on_error = max_evaluations, on_error
        self.deadline = None if max_seconds is None else monotonic() + max_seconds

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
        if np.any(inside):
            values = self._values(theta[inside])
            log_pi[inside] = values + log_m[inside] if self.times_reference else values
        return Points(theta, log_pi, log_m)

    def log_pi(self, theta: Array) -> Array:
        """Log density of the target at a batch, without limits or counts."""
        return self.bare().evaluate(np.atleast_2d(theta)).log_pi

    def bare(self) -> Target:
        """Copy without limits, counts and records."""
        return Target(
            self.log_density,
            self.reference,
            self.vectorized,
            self.times_reference,
            on_error=self.on_error,
        )

    def raw(self, theta: Array) -> Array:
        """What the density returns at a few points, not counted or recorded."""
        entry = Entry.blank(theta)
        self.evaluator.fill(self._call, theta, entry, lambda: None)
        return entry.values

    @cached_property
    def _call(self) -> Call:
        return Call(self.log_density, self.vectorized, self.on_error)

    def _values(self, theta: Array) -> Array:
        """Evaluate points inside the support, or look them up."""
        if (
            self.max_evaluations is not None
            and self.n_evaluations + len(theta) > self.max_evaluations
        ):
            raise StopSampling(
                f"the next batch of {len(theta)} would pass max_evaluations={self.max_evaluations}"
            )
        entry = Entry.blank(theta) if self.recorder is None else self.recorder.begin(theta)
        if entry.missing.size:
            self._check_time()
            self.evaluator.fill(self._call, theta, entry, self._tick)
        self.n_evaluations += len(theta)
        is_nan = np.isnan(entry.values)
        self.n_nan += int(np.count_nonzero(is_nan))
        self.n_rejected += int(np.count_nonzero(entry.known == REJECTED))
        self.why_rejected = self.why_rejected or entry.why
        return np.where(is_nan, -np.inf, entry.values)

    def _check_time(self) -> None:
        if self.deadline is not None and monotonic() >= self.deadline:
            raise StopSampling("max_seconds is over")

    def _tick(self) -> None:
        """Keep what is there, and end in the middle of a batch only if nothing is lost."""
        if self.recorder is not None:
            self.recorder.tick()
            self._check_time()
