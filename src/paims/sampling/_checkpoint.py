"""A run on disk: one HDF5 file from which it goes on and ends as if nothing had happened.

Schema 1::

    /             attributes: format, schema, version (of the library that wrote it)
    /settings     what fixes the draws (points, goal, scheme, seed, reference, data), as JSON
    /progress     evaluations so far, levels done, as JSON
    /state/...    the State after the last whole level; not there before level 0 is done
    /at_one/...   for goal="optimum", past temperature 1: the points at temperature 1
    /journal/...  values of the batches that were evaluated since

A level draws from its own random stream, named by the seed and the level's number: these are the
state of the generator. Many small arrays of one kind are stored end to end with their lengths:
HDF5 is slow with many small ones.
"""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from paims import _version
from paims._arrays import Array
from paims._sealed import (
    SealError,
    get_json,
    open_sealed,
    put_array,
    put_json,
    remove_remains,
    write_sealed,
)
from paims.sampling._bend import Bend
from paims.sampling._checkpoint_checks import check_values
from paims.sampling._clusters import Clusters
from paims.sampling._density import Density
from paims.sampling._periodic import Circles
from paims.sampling._proposal import MarkerMixture, Markers
from paims.sampling._recycling import Batch
from paims.sampling._result import SamplingWarning
from paims.sampling._scheme import upgraded_settings
from paims.sampling._search import SearchInfo
from paims.sampling._state import LevelInfo, Progress, State
from paims.sampling._target import Counts, Entry, Journal, Points, Slopes, Target

FORMAT = "paims-checkpoint"
SCHEMA = 1
_POINTS = ("theta", "log_pi", "log_m")
_MARKERS = ("theta", "weight", "log_p", "offset")
_CLUSTERS = ("share", "mean", "chol", "inv_chol")


class CheckpointError(ValueError):
    """A checkpoint that cannot be written, read, or gone on from."""


class Checkpoint:
    """The file of a run; records what is evaluated.

    Parameters
    ----------
    path : Path
    every : float
        Seconds between two writes inside a level.
    settings : dict
        What fixes the draws, as JSON.
    progress : Progress
        Where to go on from.
    journal : Journal
        What was evaluated since.
    """

    def __init__(
        self,
        path: Path,
        every: float,
        settings: dict[str, Any],
        progress: Progress,
        journal: Journal,
    ) -> None:
        self.path = path
        self.settings = settings
        self.progress, self.journal = progress, journal
        self._every = every
        self._written = monotonic()
        self._changed = False
        self._failing = False
        self._unchecked: Target | None = None

    def start(self, target: Target) -> None:
        """Compare the target with what is stored of it.

        The file is written at once if there is none: what hinders that is found out before
        anything has been evaluated.
        """
        if self.progress.state is not None:
            _check_same(self.path, target, self.progress.state)
        elif self.journal.entries:
            self._unchecked = target
        remove_remains(self.path)
        if not self.path.exists() or self.is_empty:
            try:
                self._write()
            except OSError as error:
                raise CheckpointError(
                    f"The checkpoint {str(self.path)!r} cannot be written: "
                    f"{error.strerror or error}. Give a file in a folder that exists, that you "
                    "may write to and that has room."
                ) from None

    def begin(self, theta: Array, density: Density) -> Entry:
        """Return the entry of the next batch: one from before, or a blank one."""
        entry = self.journal.begin(theta, density)
        if self.journal.lost:
            self.journal.lost = False
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
            values = entry.values.reshape(len(theta), -1)[known[:1], 0]
            _compare(self.path, theta[known[:1]], values, target)

    def new_values(self) -> None:
        """Notice new values; write them if the last time is long ago."""
        self._changed = True
        if monotonic() - self._written >= self._every:
            self.save()

    def level_done(self, progress: Progress) -> None:
        """Take in a whole level and write it."""
        self.progress, self.journal = progress, Journal()
        self._changed = True
        self.save()

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been evaluated yet."""
        known = any(np.any(entry.known) for entry in self.journal.entries)
        return self.progress.state is None and not known

    def discard(self) -> None:
        """Remove the file of a run that cannot go on from its first points."""
        if self.progress.state is None:
            self._changed = False
            with suppress(OSError):
                self.path.unlink(missing_ok=True)

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
        progress = self.progress

        def fill(file: Any) -> None:
            file.attrs.update(format=FORMAT, schema=SCHEMA, version=_version.__version__)
            put_json(file, "settings", self.settings)
            infos = [asdict(info) for info in progress.infos]
            put_json(file, "progress", {**asdict(progress.counts), "infos": infos})
            _put_journal(file, "journal", self.journal.entries)
            if progress.state is not None:
                _put_state(file, "state", progress.state)
                at_one = progress.at_one
                if at_one is not None and at_one is not progress.state:
                    _put_points(file, "at_one", _by_island(at_one))
                    put_json(file, "at_one/plain", {"level": at_one.level, "log_z": at_one.log_z})

        write_sealed(self.path, FORMAT, fill)
        self._written = monotonic()
        self._changed = False


def whole_path(path: str | os.PathLike[str]) -> Path:
    """Where a checkpoint is, wherever the density may go with ``os.chdir``."""
    try:
        return Path(path).absolute()
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {os.fspath(path)!r} cannot be found: the working directory does not "
            f"exist any more ({error.strerror or error}). Give the whole path."
        ) from None


def open_checkpoint(
    path: Path, every: float, settings: dict[str, Any], any_seed: bool, n_jobs: int | None
) -> Checkpoint:
    """Begin a checkpoint, or go on from one of the same settings.

    With ``any_seed`` that of the file is taken, if there is a file. A file of other settings in
    which nothing has been evaluated yet holds nothing to lose: it is begun anew.
    """
    new = Checkpoint(path, every, settings, Progress(), Journal())
    if not path.exists():
        return new
    opened = read_checkpoint(path, every, n_jobs)
    if any_seed:
        settings = {**settings, "random_state": opened.settings.get("random_state")}
    differences = _differences(settings, opened.settings)
    if differences and opened.is_empty:
        return new
    if differences:
        raise CheckpointError(
            f"The checkpoint {str(path)!r} is of another run: {'; '.join(differences)}. Give "
            "another file, or remove this one to begin anew."
        )
    return opened


def read_checkpoint(path: Path, every: float = 60.0, n_jobs: int | None = None) -> Checkpoint:
    """Read a checkpoint to go on from."""
    if not path.is_file():
        raise CheckpointError(f"There is no checkpoint {str(path)!r} to go on from.")
    lost = "Remove the file to begin anew, or restore it from a copy."
    try:
        with open_sealed(path, FORMAT) as file:
            _check_version(file, path)
            settings = upgraded_settings(get_json(file, "settings"))
            journal = Journal(_get_journal(file["journal"]))
            progress = _get_progress(file, n_jobs)
            check_values(settings, progress, journal)
            return Checkpoint(path, every, settings, progress, journal)
    except CheckpointError:
        raise
    except SealError as error:
        raise CheckpointError(
            f"{str(path)!r} cannot be used as a checkpoint: {error}. {lost}"
        ) from None
    except (
        OSError, KeyError, ValueError, TypeError, RuntimeError, IndexError, AttributeError,
        OverflowError,
    ) as error:  # fmt: skip
        raise CheckpointError(f"{str(path)!r} cannot be read ({error}). {lost}") from error


def _check_version(file: Any, path: Path) -> None:
    """Refuse files of another layout; warn where another version has begun the run."""
    version, schema = str(file.attrs["version"]), int(file.attrs["schema"])
    if schema != SCHEMA:
        raise CheckpointError(
            f"{str(path)!r} was written by version {version} of paims (schema {schema}); this is "
            f"version {_version.__version__} (schema {SCHEMA}). A run has to be ended by the "
            "version that began it: install that one, or remove the file to begin anew."
        )
    if version != _version.__version__:
        warnings.warn(
            f"{str(path)!r} was written by version {version} of paims and goes on with "
            f"{_version.__version__}. The result is as good, but not the one that either version "
            "gives alone.",
            SamplingWarning,
            stacklevel=2,
        )


def _get_progress(file: Any, n_jobs: int | None) -> Progress:
    plain = get_json(file, "progress")
    infos = tuple(
        LevelInfo(**{**info, "log_z": tuple(info["log_z"])}) for info in plain.pop("infos")
    )
    state = _get_state(file["state"], n_jobs) if "state" in file else None
    at_one = state if state is not None and state.arrived and state.beta == 1.0 else None
    if state is not None and "at_one" in file:
        about = get_json(file["at_one"], "plain")
        at_one = replace(
            state,
            level=about["level"],
            beta=1.0,
            log_z=tuple(about["log_z"]),
            points=Points.concatenate(_get_points(file, "at_one")),
        )
    return Progress(state, at_one, infos, Counts(**plain))


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
    points = state.points[state.islands[0]]
    log_m = np.asarray(target.reference.log_density(points.theta), dtype=float)
    off = np.flatnonzero(~np.isclose(log_m, points.log_m, rtol=1e-9, atol=1e-9))
    if off.size and state.leg[0] is None:
        i = int(off[0])
        raise CheckpointError(
            f"The checkpoint {str(path)!r} is of another reference: its log density at "
            f"{points.theta[i].tolist()} is {log_m[i]:.12g} here and {points.log_m[i]:.12g} in "
            "the file."
        )
    alive = np.flatnonzero(np.isfinite(points.log_pi))[:2]
    prior = log_m[alive] if target.times_reference else 0.0
    theta = target.closed(points.theta[alive])
    _compare(path, theta, points.log_pi[alive] - prior, target)
    if state.leg[0] is not None:
        _compare(path, theta, points.log_m[alive] - prior, target, state.leg[0])


def _compare(
    path: Path, theta: Array, expected: Array, target: Target, place: int | None = None
) -> None:
    values = target.raw(theta, place)
    off = ~np.isclose(values, expected, rtol=1e-6, atol=1e-6, equal_nan=True)
    if np.any(off):
        i = int(np.argmax(off))
        raise CheckpointError(
            f"The checkpoint {str(path)!r} is of another density: at {theta[i].tolist()} it is "
            f"{values[i]:.12g} here and {expected[i]:.12g} in the file. Pass the density that "
            "the run began with, or another file."
        )


def _put_state(parent: Any, name: str, state: State) -> None:
    """Write a state, with the pool of all candidates and the mixtures they came from."""
    group = parent.create_group(name)
    mixtures = list(
        dict.fromkeys(batch.mixture for batch in state.pool if batch.mixture is not None)
    )
    number = {mixture: i for i, mixture in enumerate(mixtures)}
    put_json(
        group,
        "plain",
        {
            "level": state.level,
            "beta": state.beta,
            "log_z": state.log_z,
            "seed": state.seed,
            "initial_sd": state.initial_sd,
            "search": None if state.search is None else asdict(state.search),
            "circles": None if state.circles is None else asdict(state.circles),
            "leg": state.leg,
            "stride": state.stride,
            "leapt": state.leapt,
            "lead_note": state.lead_note,
            "batches": [
                {
                    "mixture": None if batch.mixture is None else number[batch.mixture],
                    "island": int(batch.points.island[0]),
                    "even": batch.quasi_random,
                }
                for batch in state.pool
            ],
            "mixtures": [
                {"spread": m.spread, "pull": m.retained, "bends": _put_bends(m.markers.clusters)}
                for m in mixtures
            ],
        },
    )
    _put_points(group, "islands", _by_island(state))
    if state.slopes is not None:
        put_array(group, "slopes", np.stack([state.slopes.log_pi, state.slopes.log_m]), False)
    _put_points(group, "pool", [batch.points for batch in state.pool])
    log_q = [batch.log_q for batch in state.pool]
    put_array(group, "pool/log_q", np.concatenate([np.empty(0), *log_q]), False)
    markers = [mixture.markers for mixture in mixtures]
    for key in _MARKERS:
        _put_joined(group, f"markers/{key}", [getattr(m, key) for m in markers])
    for key in _CLUSTERS:
        _put_joined(group, f"clusters/{key}", [getattr(m.clusters, key) for m in markers])


def _get_state(group: Any, n_jobs: int | None) -> State:
    """Read what :func:`_put_state` wrote."""
    plain = get_json(group, "plain")
    markers = {key: _get_joined(group, f"markers/{key}") for key in _MARKERS}
    clusters = {key: _get_joined(group, f"clusters/{key}") for key in _CLUSTERS}
    mixtures = [
        MarkerMixture(
            Markers(
                **{key: column[i] for key, column in markers.items()},
                clusters=Clusters(
                    **{key: column[i] for key, column in clusters.items()},
                    bends=_get_bends(about.get("bends")),
                ),
            ),
            about["spread"],
            about["pull"],
            n_jobs,
        )
        for i, about in enumerate(plain["mixtures"])
    ]
    points = _get_points(group, "pool", [about["island"] for about in plain["batches"]])
    edges = np.cumsum([len(part) for part in points])[:-1]
    log_qs = np.split(group["pool/log_q"][()], edges)
    pool = [
        Batch(
            None if about["mixture"] is None else mixtures[about["mixture"]],
            part,
            log_q,
            about["even"],
        )
        for about, part, log_q in zip(plain["batches"], points, log_qs, strict=True)
    ]
    return State(
        level=plain["level"],
        beta=plain["beta"],
        points=Points.concatenate(_get_points(group, "islands")),
        log_z=tuple(plain["log_z"]),
        seed=plain["seed"],
        initial_sd=plain["initial_sd"],
        pool=tuple(pool),
        search=SearchInfo(**plain["search"]) if plain.get("search") else None,
        circles=Circles.from_stored(plain.get("circles")),
        leg=tuple(plain.get("leg", (None, 0))),
        stride=plain.get("stride", 0.0),
        leapt=plain.get("leapt", False),
        slopes=Slopes(*group["slopes"][()]) if "slopes" in group else None,
        lead_note=plain.get("lead_note", ""),
    )


def _put_bends(clusters: Clusters) -> dict[str, Any] | None:
    """The maps of clusters, each once, and the number of that of each cluster; None for none."""
    if not any(clusters.bends):
        return None
    maps = list(dict.fromkeys(clusters.bends))
    return {
        "maps": [None if bend is None else bend.to_store() for bend in maps],
        "number": [maps.index(bend) for bend in clusters.bends],
    }


def _get_bends(stored: dict[str, Any] | None) -> tuple[Bend | None, ...]:
    """Read what :func:`_put_bends` made."""
    if stored is None:
        return ()
    maps = [None if values is None else Bend.from_stored(values) for values in stored["maps"]]
    return tuple(maps[i] for i in stored["number"])


def _by_island(state: State) -> list[Points]:
    return [state.points[rows] for rows in state.islands]


def _put_points(parent: Any, name: str, parts: list[Points]) -> None:
    """Write several sets of points."""
    for key in _POINTS:
        _put_joined(parent, f"{name}/{key}", [getattr(part, key) for part in parts])


def _get_points(parent: Any, name: str, islands: list[int] | None = None) -> list[Points]:
    """Read what :func:`_put_points` wrote; by default a set is the island of its number."""
    theta, log_pi, log_m = (_get_joined(parent, f"{name}/{key}") for key in _POINTS)
    island = range(len(theta)) if islands is None else islands
    return [
        Points(x, pi, m, np.full(len(x), i))
        for x, pi, m, i in zip(theta, log_pi, log_m, island, strict=True)
    ]


def _put_journal(parent: Any, name: str, entries: list[Entry]) -> None:
    """Write what a level has evaluated."""
    group = parent.create_group(name)
    put_json(group, "plain", {"entries": [{"digest": e.digest, "why": e.why} for e in entries]})
    _put_joined(group, "values", [entry.values.ravel() for entry in entries])
    _put_joined(group, "known", [entry.known for entry in entries])


def _get_journal(group: Any) -> list[Entry]:
    """Read what :func:`_put_journal` wrote."""
    values, known = _get_joined(group, "values"), _get_joined(group, "known")
    return [
        Entry(
            about["digest"],
            _in_rows(values[i], len(known[i])),
            known[i].astype(np.uint8),
            about["why"],
        )
        for i, about in enumerate(get_json(group, "plain")["entries"])
    ]


def _in_rows(values: Array, n: int) -> Array:
    """Values, or rows of them with their gradients."""
    return values if len(values) == n else values.reshape(n, -1)


def _put_joined(parent: Any, name: str, arrays: list[Array]) -> None:
    put_array(parent, name, np.concatenate(arrays) if arrays else np.empty(0), False)
    put_array(parent, f"{name}_lengths", np.array([len(a) for a in arrays], dtype=np.int64), False)


def _get_joined(parent: Any, name: str) -> list[Array]:
    lengths = parent[f"{name}_lengths"][()]
    if not len(lengths):
        return []
    joined = parent[name][()]
    if int(lengths.sum()) != len(joined):
        raise ValueError(f"{name} has {len(joined)} rows where {int(lengths.sum())} are expected")
    return [part.copy() for part in np.split(joined, np.cumsum(lengths)[:-1])]
