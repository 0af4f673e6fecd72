"""The density to sample, batch by batch: counted, limited, recorded, and led to by others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from paims._arrays import Array, IntArray
from paims.sampling._density import Answer, Density
from paims.sampling._periodic import Circles
from paims.sampling._references import Reference

if TYPE_CHECKING:
    pass

# States of a value: not there yet, there, or refused by an exception that counts as zero density.
UNKNOWN, KNOWN, REJECTED = 0, 1, 2


@dataclass
class Entry:
    """A batch: which points, and those of their values that are there.

    Attributes
    ----------
    digest : str
        Name of the points.
    values : ndarray, shape (m,) or (m, 1 + n_params)
        As in :class:`Answer`.
    known : ndarray of uint8, shape (m,)
        UNKNOWN, KNOWN or REJECTED.
    why : str
        First exception of those that were rejected.
    """

    digest: str
    values: Array
    known: Array
    why: str = ""

    @staticmethod
    def blank(theta: Array, digest: str = "", sloped: bool = False) -> Entry:
        """Nothing known yet."""
        shape = (len(theta), 1 + theta.shape[1]) if sloped else (len(theta),)
        return Entry(digest, np.full(shape, np.nan), np.full(len(theta), UNKNOWN, np.uint8))

    def fits(self, digest: str, sloped: bool) -> bool:
        """Whether it is of a batch of these points, with gradients or without."""
        return self.digest == digest and (self.values.ndim == 2) == sloped

    @property
    def missing(self) -> Array:
        """Rows that are still to be evaluated."""
        return np.flatnonzero(self.known == UNKNOWN)

    def put(self, rows: Array, answer: Answer) -> None:
        """Take in the values of some rows."""
        self.values[rows] = answer.values
        self.known[rows] = np.where(answer.rejected, REJECTED, KNOWN)
        self.why = self.why or answer.why


@dataclass
class Journal:
    """What a level has evaluated so far, so that a run that goes on need not do it again.

    A level that starts from the same State draws the same points, so the values of its batches,
    in order, are enough to bring it back to where it was.

    Attributes
    ----------
    entries : list of Entry
    place : int
        How many of them have been asked for.
    lost : bool
        Whether entries had to be given up because the run asked for other points.
    """

    entries: list[Entry] = field(default_factory=list)
    place: int = 0
    lost: bool = False

    def begin(self, theta: Array, density: Density) -> Entry:
        """Return the entry of the next batch: one from before, or a blank one."""
        digest = hashlib.sha256(np.ascontiguousarray(theta).tobytes()).hexdigest()
        if self.place < len(self.entries) and not self.entries[self.place].fits(
            digest, density.sloped
        ):
            # Another machine or version of NumPy may round differently. The level is whole
            # without its journal, so nothing but time is lost.
            del self.entries[self.place :]
            self.lost = True
        if self.place == len(self.entries):
            self.entries.append(Entry.blank(theta, digest, density.sloped))
        self.place += 1
        return self.entries[self.place - 1]


@dataclass(frozen=True)
class Points:
    """Points with what is known of the densities there: a population, or part of one.

    Attributes
    ----------
    theta : ndarray, shape (n, n_params)
    log_pi : ndarray, shape (n,)
        Log density at the path's end, the target or a lead; -inf where it is zero.
    log_m : ndarray, shape (n,)
        Log density at the path's beginning, the reference or a lead.
    island : ndarray of int, shape (n,)
        The island that each point lives on.
    """

    theta: Array
    log_pi: Array
    log_m: Array
    island: IntArray

    def __len__(self) -> int:
        return len(self.log_pi)

    def __getitem__(self, index: Any) -> Points:
        return Points(self.theta[index], self.log_pi[index], self.log_m[index], self.island[index])

    @staticmethod
    def concatenate(parts: list[Points]) -> Points:
        """Join several sets of points."""
        return Points(
            np.concatenate([part.theta for part in parts]),
            np.concatenate([part.log_pi for part in parts]),
            np.concatenate([part.log_m for part in parts]),
            np.concatenate([part.island for part in parts]),
        )


@dataclass(frozen=True)
class Counts:
    """What a run has counted: evaluations, those that were NaN, and those that raised.

    ``why_rejected`` is the first exception that counted as zero density. What a lead was asked
    and what went wrong there is counted apart; ``n_gradients`` are those of either that came with
    a gradient.
    """

    n_evaluations: int = 0
    n_nan: int = 0
    n_rejected: int = 0
    why_rejected: str = ""
    n_lead: int = 0
    n_lead_failed: int = 0
    why_lead_failed: str = ""
    n_gradients: int = 0

    def including(self, entry: Entry, of_lead: bool = False) -> Counts:
        """Counts with those of a whole batch."""
        n = len(entry.values)
        n_nan = int(np.count_nonzero(np.isnan(entry.values.reshape(n, -1)[:, 0])))
        n_rejected = int(np.count_nonzero(entry.known == REJECTED))
        n_gradients = self.n_gradients + n * (entry.values.ndim == 2)
        if of_lead:
            return replace(
                self,
                n_lead=self.n_lead + n,
                n_lead_failed=self.n_lead_failed + n_nan + n_rejected,
                why_lead_failed=self.why_lead_failed or entry.why,
                n_gradients=n_gradients,
            )
        return replace(
            self,
            n_evaluations=self.n_evaluations + n,
            n_nan=self.n_nan + n_nan,
            n_rejected=self.n_rejected + n_rejected,
            why_rejected=self.why_rejected or entry.why,
            n_gradients=n_gradients,
        )


class StopSampling(Exception):
    """Raised before a batch that a limit forbids; carries the reason."""


@dataclass(frozen=True)
class Limits:
    """When a run ends early.

    Attributes
    ----------
    max_evaluations : int, optional
        From the beginning of the run.
    deadline : float, optional
        Value of ``time.monotonic()`` after which no evaluation starts.
    """

    max_evaluations: int | None = None
    deadline: float | None = None

    def check_size(self, n_done: int, n_more: int) -> None:
        """Refuse a batch that would pass the number of evaluations."""
        if self.max_evaluations is not None and n_done + n_more > self.max_evaluations:
            raise StopSampling(
                f"the next batch of {n_more} would pass max_evaluations={self.max_evaluations}"
            )

    def check_time(self) -> None:
        """Refuse to go on after the deadline."""
        if self.deadline is not None and monotonic() >= self.deadline:
            raise StopSampling("max_seconds is over")


# Where the density is evaluated: gives rows of a batch with their values, as they come.
Evaluator = Callable[[Density, Array], Generator[tuple[Array, Answer], None, None]]


def in_one_call(density: Density, theta: Array) -> Generator[tuple[Array, Answer], None, None]:
    """Evaluate a batch by one call of the density, in this process."""
    yield np.arange(len(theta)), density(theta)


class Recorder(Protocol):
    """Who keeps the values of batches, so that none is evaluated twice."""

    def begin(self, theta: Array, density: Density) -> Entry:
        """Return the entry of the next batch."""

    def new_values(self) -> None:
        """Notice that an entry has new values."""


# Beginning and end of a leg of the path: 0 is the target, -1 the last lead, -2 the one before it,
# and None the reference.
Leg = tuple[int | None, int]


@dataclass(frozen=True)
class Slopes:
    """Gradients of the two densities of a leg, shape ``(m, n_params)`` each."""

    log_pi: Array
    log_m: Array

    def tempered(self, beta: float) -> Array:
        """Gradient of the log density of the path at ``beta``."""
        return np.asarray(beta * self.log_pi + max(0.0, 1.0 - beta) * self.log_m)

    def __getitem__(self, index: Array) -> Slopes:
        return Slopes(self.log_pi[index], self.log_m[index])

    def replaced(self, where: Array, by: Slopes) -> Slopes:
        """Copy with the rows ``where`` taken from those of ``by``."""
        rows = where[:, None]
        return Slopes(np.where(rows, by.log_pi, self.log_pi), np.where(rows, by.log_m, self.log_m))


@dataclass
class Target:
    """A log density with its reference, evaluated batch by batch, counted and limited.

    Zero density is -inf or NaN (the latter is counted) and everything outside the support of the
    reference, where the user's function is not called at all.

    The path to it may lead over cheaper densities, each a leg of the way; see :data:`Leg`.

    Parameters
    ----------
    density : Density
    reference : Reference
    times_reference : bool
        Whether the density is ``exp(log_density)`` times that of the reference; so are leads.
    leads : tuple of Density
        Cheap approximations of the density, in the order in which they come.
    leg : Leg
        Between which densities the points are now.
    circles : Circles, optional
        Periodic parameters. Points are laid out from the cuts; the density sees them closed.
    evaluator : Evaluator
    limits : Limits
    recorder : Recorder, optional
    counts : Counts
        Of the run so far.
    """

    density: Density
    reference: Reference
    times_reference: bool = False
    leads: tuple[Density, ...] = ()
    leg: Leg = (None, 0)
    circles: Circles | None = None
    evaluator: Evaluator = in_one_call
    limits: Limits = Limits()
    recorder: Recorder | None = None
    counts: Counts = Counts()

    def evaluate(self, theta: Array, island: IntArray | None = None) -> Points:
        """Evaluate a batch ``(m, n_params)``; ``island`` is that of each point, by default 0."""
        theta = np.ascontiguousarray(theta)
        log_m = np.asarray(self.reference.log_density(theta), dtype=float)
        if log_m.shape != (len(theta),):
            raise ValueError(
                f"reference.log_density must return shape ({len(theta)},) for points of shape "
                f"{theta.shape}; got {log_m.shape}."
            )
        log_pi = np.full(len(theta), -np.inf)
        inside = np.flatnonzero(np.isfinite(log_m))
        if len(inside):
            prior = log_m[inside] if self.times_reference else 0.0
            log_pi[inside] = self._values(self.leg[1], theta[inside]) + prior
            if self.leg[0] is not None:
                log_m[inside] = self._values(self.leg[0], theta[inside]) + prior
        if island is None:
            island = np.zeros(len(theta), dtype=np.int64)
        return Points(theta, log_pi, log_m, island)

    @property
    def has_gradient(self) -> bool:
        """Whether both densities of the leg have one, and the reference where it counts."""
        begin, end = self.leg
        some = self.density_of(end).gradient is not None
        if begin is not None:
            some = some and self.density_of(begin).gradient is not None
        if begin is None or self.times_reference:
            some = some and hasattr(self.reference, "gradient")
        return some and self.circles is None

    def evaluate_slopes(self, theta: Array, island: IntArray) -> tuple[Points, Slopes]:
        """Evaluate a batch with gradients, which are 0 where a density is."""
        log_m = np.asarray(self.reference.log_density(theta), dtype=float)
        log_pi = np.full(len(theta), -np.inf)
        slope_pi, slope_m = np.zeros_like(theta), np.zeros_like(theta)
        inside = np.flatnonzero(np.isfinite(log_m))
        begin, end = self.leg
        if len(inside):
            of_reference: Array | None = None
            prior: Array | float = 0.0
            slope: Array | float = 0.0
            if begin is None or self.times_reference:
                gradient = self.reference.gradient  # type: ignore[attr-defined]
                of_reference = np.asarray(gradient(theta[inside]), dtype=float)
            if self.times_reference:
                assert of_reference is not None
                prior, slope = log_m[inside], of_reference
            values = self._values(end, theta[inside], sloped=True)
            log_pi[inside], slope_pi[inside] = values[:, 0] + prior, values[:, 1:] + slope
            if begin is not None:
                values = self._values(begin, theta[inside], sloped=True)
                log_m[inside], slope_m[inside] = values[:, 0] + prior, values[:, 1:] + slope
            else:
                slope_m[inside] = of_reference
        return Points(theta, log_pi, log_m, island), Slopes(slope_pi, slope_m)

    def at_next(self, points: Points) -> Points:
        """Points of the leg's end as those of the next leg's beginning; evaluates that's end."""
        log_pi = self.at(self.leg[1] + 1, points.theta)
        return replace(points, log_pi=log_pi, log_m=points.log_pi)

    def at(self, place: int, theta: Array) -> Array:
        """Log density of the target, or of a lead."""
        log_m = np.asarray(self.reference.log_density(theta), dtype=float)
        inside = np.flatnonzero(np.isfinite(log_m))
        out = np.full(len(theta), -np.inf)
        if len(inside):
            prior = log_m[inside] if self.times_reference else 0.0
            out[inside] = self._values(place, theta[inside]) + prior
        return out

    @property
    def first_leg(self) -> Leg:
        """From the reference to the first lead, or to the target."""
        return None, -len(self.leads)

    @property
    def n_spent(self) -> int:
        """Evaluations so far of the target, or on the way to a lead of the leads."""
        return self.counts.n_evaluations if self.leg[1] == 0 else self.counts.n_lead

    def density_of(self, place: int) -> Density:
        """The target, or a lead."""
        return self.density if place == 0 else self.leads[place]

    def log_pi(self, theta: Array) -> Array:
        """Log density of the target at a batch."""
        return self.evaluate(np.atleast_2d(theta)).log_pi

    def closed(self, theta: Array) -> Array:
        """Points as the density sees them."""
        return theta if self.circles is None else self.circles.closed(theta)

    def cut_circles(self, points: Points) -> Points:
        """Choose where the circles are cut, from draws of the reference, and lay these out."""
        if self.circles is None:
            return points
        self.circles = self.circles.cut_where_lowest(points.theta, points.log_pi)
        return self.laid_out(points)

    def laid_out(self, points: Points) -> Points:
        """Lay closed points out from the cuts."""
        if self.circles is None:
            return points
        return replace(points, theta=self.circles.laid_out(points.theta))

    def bare(self) -> Target:
        """Copy that is evaluated in this process, without limits, records and cuts."""
        return Target(self.density, self.reference, self.times_reference)

    def raw(self, theta: Array, place: int | None = None) -> Array:
        """What a density, by default that of the leg's end, returns at a few closed points.

        Not counted or recorded.
        """
        density = self.density_of(self.leg[1] if place is None else place)
        return replace(self, recorder=None)._filled(Entry.blank(theta), theta, density).values

    def _values(self, place: int, theta: Array, sloped: bool = False) -> Array:
        """Evaluate points inside the support, or look them up."""
        density, theta = self.density_of(place), self.closed(theta)
        if sloped:
            density = replace(density, sloped=True)
        if place == 0:
            self.limits.check_size(self.counts.n_evaluations, len(theta))
        if self.recorder is None:
            entry = Entry.blank(theta, sloped=sloped)
        else:
            entry = self.recorder.begin(theta, density)
        if entry.missing.size:
            self.limits.check_time()
            self._filled(entry, theta, density)
        self.counts = self.counts.including(entry, of_lead=place != 0)
        return np.where(np.isnan(entry.values), -np.inf, entry.values)

    def _filled(self, entry: Entry, theta: Array, density: Density) -> Entry:
        """Evaluate what is missing in an entry.

        What is there is kept; the run ends in the middle of a batch only if nothing is lost.
        """
        missing = entry.missing
        with closing(self.evaluator(density, theta[missing])) as answers:
            for rows, answer in answers:
                entry.put(missing[rows], answer)
                if self.recorder is not None:
                    self.recorder.new_values()
                    self.limits.check_time()
        return entry
