"""What a level has evaluated so far, so that a run that goes on need not evaluate it again.

A level that starts from the same State draws the same points, so the values of its batches, in
order, are enough to bring it back to where it was.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from paims._arrays import Array
from paims.sampling._calls import KNOWN, REJECTED, UNKNOWN, Answer


def digest(theta: Array) -> str:
    """Name of a set of points."""
    return hashlib.sha256(np.ascontiguousarray(theta).tobytes()).hexdigest()


@dataclass
class Entry:
    """A batch: which points, and those of their values that are there.

    Attributes
    ----------
    digest : str
        Of the points.
    values : ndarray, shape (m,)
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
    def blank(theta: Array, name: str = "") -> Entry:
        """Nothing known yet."""
        return Entry(name, np.full(len(theta), np.nan), np.full(len(theta), UNKNOWN, np.uint8))

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
    """The batches of a level, in order.

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

    def begin(self, theta: Array) -> Entry:
        """Return the entry of the next batch: one from before, or a blank one."""
        name = digest(theta)
        if self.place < len(self.entries) and self.entries[self.place].digest != name:
            # Another machine or version of NumPy may round differently. The level is whole
            # without its journal, so nothing but time is lost.
            del self.entries[self.place :]
            self.lost = True
        if self.place == len(self.entries):
            self.entries.append(Entry.blank(theta, name))
        self.place += 1
        return self.entries[self.place - 1]
