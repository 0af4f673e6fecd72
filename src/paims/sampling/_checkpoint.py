"""A run on disk: one HDF5 file from which it goes on and ends as if nothing had happened.

Schema 1::

    /             attributes: format, schema, version (of the library that wrote it)
    /settings     what fixes the draws (points, goal, scheme, seed, reference, data), as JSON
    /progress     evaluations so far, levels done, as JSON
    /state/...    the State after the last whole level; not there before level 0 is done
    /at_one/...   for goal="optimum", past temperature 1: the points at temperature 1
    /journal/...  values of the batches that were evaluated since

A level draws from its own random stream, named by the seed and the level's number: these are the
state of the generator.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from paims import _version
from paims._arrays import Array
from paims._sealed import SealError, get_json, open_sealed, put_json, remove_remains, write_sealed
from paims.sampling._archive import (
    get_journal,
    get_points,
    get_state,
    infos_as_json,
    infos_of_json,
    put_journal,
    put_points,
    put_state,
)
from paims.sampling._journal import Entry, Journal
from paims.sampling._level import LevelInfo, State
from paims.sampling._result import SamplingWarning
from paims.sampling._target import Target

FORMAT = "paims-checkpoint"
SCHEMA = 1


class CheckpointError(ValueError):
    """A checkpoint that cannot be written, read, or gone on from."""


@dataclass(frozen=True)
class Snapshot:
    """Where a run was after its last whole level, and what it has evaluated since.

    Replaced as a whole, so that an interruption at any moment leaves one that fits together.
    """

    state: State | None = None
    at_one: State | None = None
    infos: tuple[LevelInfo, ...] = ()
    n_evaluations: int = 0
    n_nan: int = 0
    n_rejected: int = 0
    why_rejected: str = ""
    journal: Journal = field(default_factory=Journal)


class Checkpoint:
    """The file of a run; records what is evaluated.

    Parameters
    ----------
    path : Path
    every : float
        Seconds between two writes inside a level.
    settings : dict
        What fixes the draws, as JSON.
    snapshot : Snapshot
        Where to go on from.
    """

    def __init__(
        self, path: Path, every: float, settings: dict[str, Any], snapshot: Snapshot
    ) -> None:
        self.path = path
        self.settings = settings
        self.snapshot = snapshot
        self._every = every
        self._written = monotonic()
        self._changed = False
        self._failing = False
        self._unchecked: Target | None = None

    def start(self, target: Target) -> None:
        """Put the counts of the run so far into the target, and record from here on.

        The file is written at once if there is none: what hinders that is found out before
        anything has been evaluated.
        """
        for name in ("n_evaluations", "n_nan", "n_rejected", "why_rejected"):
            setattr(target, name, getattr(self.snapshot, name))
        target.recorder = self
        if self.snapshot.state is not None:
            _check_same(self.path, target, self.snapshot.state)
        elif self.snapshot.journal.entries:
            self._unchecked = target
        remove_remains(self.path)
        if not self.path.exists():
            try:
                self._write()
            except OSError as error:
                raise CheckpointError(
                    f"The checkpoint {str(self.path)!r} cannot be written: "
                    f"{error.strerror or error}. Give a file in a folder that exists, that you "
                    "may write to and that has room."
                ) from None

    def begin(self, theta: Array) -> Entry:
        """Return the entry of the next batch: one from before, or a blank one."""
        journal = self.snapshot.journal
        entry = journal.begin(theta)
        if journal.lost:
            journal.lost = False
            warnings.warn(
                f"The level in which {str(self.path)!r} stopped draws other points here than it "
                "did then, as may happen on another machine or with another version of NumPy or "
                "SciPy: it is evaluated anew. The result is as good, but not the same to the bit.",
                SamplingWarning,
                stacklevel=2,
            )
        self._check_first(theta, entry)
        return entry

    def _check_first(self, theta: Array, entry: Entry) -> None:
        """Compare the density with a value in the journal, when there is nothing else."""
        target, self._unchecked = self._unchecked, None
        known = np.flatnonzero(entry.known)
        if target is not None and known.size:
            _compare(self.path, theta[known[:1]], entry.values[known[:1]], target)

    def tick(self) -> None:
        """Notice new values; write them if the last time is long ago."""
        self._changed = True
        if monotonic() - self._written >= self._every:
            self.save()

    def level_done(
        self, state: State, at_one: State | None, infos: list[LevelInfo], target: Target
    ) -> None:
        """Take in a whole level and write it."""
        self.snapshot = Snapshot(
            state,
            at_one,
            tuple(infos),
            target.n_evaluations,
            target.n_nan,
            target.n_rejected,
            target.why_rejected,
        )
        self._changed = True
        self.save()

    def save(self) -> None:
        """Write what has changed. A disk that is full does not end the run: it says so."""
        if not self._changed:
            return
        try:
            self._write()
        except OSError as error:
            if not self._failing:
                warnings.warn(
                    f"The checkpoint {str(self.path)!r} could not be written "
                    f"({error.strerror or error}). The run goes on and tries again; until that "
                    "works the file holds an earlier state, from which the run can be resumed. "
                    "Make room or restore the folder.",
                    SamplingWarning,
                    stacklevel=2,
                )
            self._failing = True
            self._written = monotonic()
            return
        self._failing = False

    def _write(self) -> None:
        snapshot = self.snapshot

        def fill(file: Any) -> None:
            file.attrs.update(format=FORMAT, schema=SCHEMA, version=_version.__version__)
            put_json(file, "settings", self.settings)
            counts = ("n_evaluations", "n_nan", "n_rejected", "why_rejected")
            progress = {name: getattr(snapshot, name) for name in counts}
            put_json(file, "progress", {**progress, "infos": infos_as_json(snapshot.infos)})
            put_journal(file, "journal", snapshot.journal.entries)
            if snapshot.state is not None:
                put_state(file, "state", snapshot.state)
                at_one = snapshot.at_one
                if at_one is not None and at_one is not snapshot.state:
                    put_points(file, "at_one", at_one.islands)
                    put_json(file, "at_one/plain", {"level": at_one.level, "log_z": at_one.log_z})

        write_sealed(self.path, FORMAT, fill)
        self._written = monotonic()
        self._changed = False


def open_checkpoint(
    path: Path, every: float, settings: dict[str, Any], n_jobs: int | None
) -> Checkpoint:
    """Begin a checkpoint, or go on from one of the same settings.

    A seed of None takes that of the file.
    """
    if not path.exists():
        return Checkpoint(path, every, settings, Snapshot())
    stored, snapshot = read_checkpoint(path, n_jobs)
    if settings["random_state"] is None:
        settings = {**settings, "random_state": stored.get("random_state")}
    differences = _differences(settings, stored)
    if differences:
        raise CheckpointError(
            f"The checkpoint {str(path)!r} is of another run: {'; '.join(differences)}. Give "
            "another file, or remove this one to begin anew."
        )
    return Checkpoint(path, every, settings, snapshot)


def read_checkpoint(path: Path, n_jobs: int | None) -> tuple[dict[str, Any], Snapshot]:
    """Read settings and snapshot."""
    if not path.is_file():
        raise CheckpointError(f"There is no checkpoint {str(path)!r} to go on from.")
    lost = "Remove the file to begin anew, or restore it from a copy."
    try:
        with open_sealed(path, FORMAT) as file:
            _check_version(file, path)
            return get_json(file, "settings"), _get_snapshot(file, n_jobs)
    except CheckpointError:
        raise
    except SealError as error:
        raise CheckpointError(
            f"{str(path)!r} cannot be used as a checkpoint: {error}. {lost}"
        ) from None
    except (OSError, KeyError, ValueError, TypeError, RuntimeError, IndexError) as error:
        raise CheckpointError(f"{str(path)!r} cannot be read ({error}). {lost}") from error


def _check_version(file: Any, path: Path) -> None:
    version = str(file.attrs["version"])
    if int(file.attrs["schema"]) != SCHEMA or version != _version.__version__:
        raise CheckpointError(
            f"{str(path)!r} was written by version {version} of paims (schema "
            f"{int(file.attrs['schema'])}); this is version {_version.__version__} (schema "
            f"{SCHEMA}). A run has to be ended by the version that began it: install that one, or "
            "remove the file to begin anew."
        )


def _get_snapshot(file: Any, n_jobs: int | None) -> Snapshot:
    progress = get_json(file, "progress")
    infos = infos_of_json(progress.pop("infos"))
    state = get_state(file["state"], n_jobs) if "state" in file else None
    at_one = state if state is not None and state.beta == 1.0 else None
    if state is not None and "at_one" in file:
        plain = get_json(file["at_one"], "plain")
        at_one = replace(
            state,
            level=plain["level"],
            beta=1.0,
            log_z=tuple(plain["log_z"]),
            islands=get_points(file, "at_one"),
        )
    journal = Journal(get_journal(file["journal"]))
    return Snapshot(state, at_one, infos, **progress, journal=journal)


def _differences(here: Any, there: Any, name: str = "") -> list[str]:
    """What two settings differ in, in words."""
    if isinstance(here, dict) and isinstance(there, dict):
        return [
            text
            for key in dict.fromkeys([*here, *there])
            for text in _differences(here.get(key), there.get(key), f"{name} {key}".strip())
        ]
    return [] if here == there else [f"{name} is {here!r} here and {there!r} in the file"]


def _check_same(path: Path, target: Target, state: State) -> None:
    """Compare the reference and the density with what is stored of them."""
    points = state.islands[0]
    log_m = np.asarray(target.reference.log_density(points.theta), dtype=float)
    off = np.flatnonzero(~np.isclose(log_m, points.log_m, rtol=1e-9, atol=1e-9))
    if off.size:
        i = int(off[0])
        raise CheckpointError(
            f"The checkpoint {str(path)!r} is of another reference: its log density at "
            f"{points.theta[i].tolist()} is {log_m[i]:.12g} here and {points.log_m[i]:.12g} in "
            "the file."
        )
    alive = np.flatnonzero(np.isfinite(points.log_pi))[:2]
    expected = points.log_pi[alive] - (points.log_m[alive] if target.times_reference else 0.0)
    _compare(path, points.theta[alive], expected, target)


def _compare(path: Path, theta: Array, expected: Array, target: Target) -> None:
    values = target.raw(theta)
    off = ~np.isclose(values, expected, rtol=1e-6, atol=1e-6, equal_nan=True)
    if np.any(off):
        i = int(np.argmax(off))
        raise CheckpointError(
            f"The checkpoint {str(path)!r} is of another density: at {theta[i].tolist()} it is "
            f"{values[i]:.12g} here and {expected[i]:.12g} in the file. Pass the density that "
            "the run began with, or another file."
        )
