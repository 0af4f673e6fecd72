"""A State as arrays in an HDF5 group, and back, to the bit.

Many small arrays of one kind are stored end to end with their lengths: HDF5 is slow with many
small ones.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from paims._arrays import Array
from paims._sealed import get_json, put_array, put_json
from paims.sampling._clusters import Clusters
from paims.sampling._journal import Entry
from paims.sampling._level import LevelInfo, State
from paims.sampling._pool import Batch
from paims.sampling._proposal import MarkerMixture, Markers
from paims.sampling._target import Points

_MARKERS = ("theta", "weight", "log_p")
_CLUSTERS = ("share", "mean", "chol", "inv_chol")


def put_state(parent: Any, name: str, state: State) -> None:
    """Write a state, with the pool of all candidates and the mixtures they came from."""
    group = parent.create_group(name)
    mixtures: list[MarkerMixture] = []
    for batch in state.pool:
        if batch.mixture is not None and all(batch.mixture is not m for m in mixtures):
            mixtures.append(batch.mixture)
    index = {id(mixture): i for i, mixture in enumerate(mixtures)}
    put_json(
        group,
        "plain",
        {
            "level": state.level,
            "beta": state.beta,
            "log_z": state.log_z,
            "seed": state.seed,
            "initial_sd": state.initial_sd,
            "batches": [
                {
                    "mixture": None if batch.mixture is None else index[id(batch.mixture)],
                    "island": batch.island,
                    "even": batch.even,
                }
                for batch in state.pool
            ],
            "mixtures": [{"spread": m.spread, "pull": m.pull} for m in mixtures],
        },
    )
    put_points(group, "islands", state.islands)
    put_points(group, "pool", tuple(batch.points for batch in state.pool))
    put_array(group, "pool/log_q", np.concatenate([batch.log_q for batch in state.pool]), False)
    markers = [mixture.markers for mixture in mixtures]
    for key in _MARKERS:
        _put_joined(group, f"markers/{key}", [getattr(m, key) for m in markers])
    _put_joined(group, "markers/offset", [m.offset for m in markers])
    for key in _CLUSTERS:
        _put_joined(group, f"clusters/{key}", [getattr(m.clusters, key) for m in markers])


def get_state(group: Any, n_jobs: int | None) -> State:
    """Read what :func:`put_state` wrote."""
    plain = get_json(group, "plain")
    columns = {key: _get_joined(group, f"markers/{key}") for key in (*_MARKERS, "offset")}
    clusters = {key: _get_joined(group, f"clusters/{key}") for key in _CLUSTERS}
    mixtures = [
        MarkerMixture(
            Markers(
                **{key: column[i] for key, column in columns.items()},
                clusters=Clusters(**{key: column[i] for key, column in clusters.items()}),
            ),
            about["spread"],
            about["pull"],
            n_jobs,
        )
        for i, about in enumerate(plain["mixtures"])
    ]
    points = get_points(group, "pool")
    edges = np.cumsum([len(part) for part in points])[:-1]
    log_qs = np.split(group["pool/log_q"][()], edges)
    pool = [
        Batch(
            None if about["mixture"] is None else mixtures[about["mixture"]],
            part,
            log_q,
            about["island"],
            about["even"],
        )
        for about, part, log_q in zip(plain["batches"], points, log_qs, strict=True)
    ]
    return State(
        level=plain["level"],
        beta=plain["beta"],
        islands=get_points(group, "islands"),
        log_z=tuple(plain["log_z"]),
        seed=plain["seed"],
        initial_sd=plain["initial_sd"],
        pool=tuple(pool),
    )


def put_points(parent: Any, name: str, parts: tuple[Points, ...]) -> None:
    """Write several sets of points."""
    for key in ("theta", "log_pi", "log_m"):
        _put_joined(parent, f"{name}/{key}", [getattr(part, key) for part in parts])


def get_points(parent: Any, name: str) -> tuple[Points, ...]:
    """Read what :func:`put_points` wrote."""
    columns = [_get_joined(parent, f"{name}/{key}") for key in ("theta", "log_pi", "log_m")]
    return tuple(Points(*part) for part in zip(*columns, strict=True))


def put_journal(parent: Any, name: str, entries: list[Entry]) -> None:
    """Write what a level has evaluated."""
    group = parent.create_group(name)
    put_json(group, "plain", {"entries": [{"digest": e.digest, "why": e.why} for e in entries]})
    _put_joined(group, "values", [entry.values for entry in entries])
    _put_joined(group, "known", [entry.known for entry in entries])


def get_journal(group: Any) -> list[Entry]:
    """Read what :func:`put_journal` wrote."""
    values, known = _get_joined(group, "values"), _get_joined(group, "known")
    return [
        Entry(about["digest"], values[i], known[i].astype(np.uint8), about["why"])
        for i, about in enumerate(get_json(group, "plain")["entries"])
    ]


def infos_as_json(infos: tuple[LevelInfo, ...]) -> list[dict[str, Any]]:
    """Levels as JSON."""
    return [asdict(info) for info in infos]


def infos_of_json(values: list[dict[str, Any]]) -> tuple[LevelInfo, ...]:
    """Levels of JSON."""
    return tuple(LevelInfo(**{**value, "log_z": tuple(value["log_z"])}) for value in values)


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
