"""What the numbers of a checkpoint have to be; whoever makes a file can make its checksum fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from paims._arrays import Array
from paims._sealed import SealError
from paims.sampling._proposal import MarkerMixture
from paims.sampling._state import LevelInfo, Progress, State
from paims.sampling._target import KNOWN, REJECTED, UNKNOWN, Counts, Journal, Points

_COUNTS = ("n_evaluations", "n_nan", "n_rejected")


def check_values(settings: dict[str, Any], progress: Progress, journal: Journal) -> None:
    """Raise :class:`SealError` at the first number that no run writes."""
    size, seed = settings.get("n_samples"), settings.get("random_state")
    _require(_is_count(size, 1), f"its n_samples is {size!r}")
    _require(_is_count(seed), f"its random_state is {seed!r}")
    _check_counts(progress.counts)
    _check_betas(progress.infos)
    n_params = len(settings.get("names") or ())
    for entry in journal.entries:
        n = len(entry.known)
        # Each with its gradient, where that was asked for.
        _require(
            entry.values.shape in ((n,), (n, 1 + n_params)) and entry.known.ndim == 1,
            "its journal has values of another number than points",
        )
        states = np.isin(entry.known, (UNKNOWN, KNOWN, REJECTED))
        _require(bool(states.all()), "its journal has values of an unknown kind")
        there = entry.values.reshape(n, -1)[entry.known != UNKNOWN]
        _require(not np.any(there[:, :1] == np.inf), "its journal has infinite densities")
    for state in (progress.state, progress.at_one):
        if state is not None:
            _check_state(state, n_params, progress.infos)


def _require(fine: bool, what: str) -> None:
    if not fine:
        raise SealError(what)


def _is_count(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and bool(np.isfinite(value))


def _check_counts(counts: Counts) -> None:
    for name in _COUNTS:
        value = getattr(counts, name)
        _require(
            _is_count(value) and value <= counts.n_evaluations,
            f"its {name} is {value!r}, of {counts.n_evaluations!r} evaluations",
        )


def _check_betas(infos: tuple[LevelInfo, ...]) -> None:
    before = 0.0
    for info in infos:
        beta = info.beta
        _require(_is_number(beta) and beta > 0, f"beta is {beta!r} at one of its levels")
        # Behind 1 another path may begin.
        _require(beta >= before or before == 1.0, "its levels are out of order: beta falls")
        before = beta


def _check_state(state: State, n_params: int, infos: tuple[LevelInfo, ...]) -> None:
    _require(_is_count(state.level), f"its level is {state.level!r}")
    reached = [0.0, 1.0, *(info.beta for info in infos[-1:])]
    _require(state.beta in reached, f"its beta is {state.beta!r}, which its levels do not reach")
    _require(len(state.points) > 0, "it has no points")
    _require(len(state.pool) > 0, "its pool of candidates is empty")
    _check_points(state.points, n_params, "points")
    n_islands = len(np.unique(state.points.island))
    _require(
        len(state.log_z) == n_islands and all(map(_is_number, state.log_z)),
        f"its log evidences {list(state.log_z)!r} are not those of {n_islands} island(s)",
    )
    _require(
        _is_number(state.initial_sd) and state.initial_sd >= 0,
        f"its first standard deviation is {state.initial_sd!r}",
    )
    for batch in state.pool:
        _check_points(batch.points, n_params, "pool")
        _check_shape(batch.log_q, (len(batch.points),), "pool's log densities")
        _require(not np.isnan(batch.log_q).any(), "its pool's log densities are not numbers")
    for mixture in {batch.mixture for batch in state.pool if batch.mixture is not None}:
        _check_mixture(mixture, n_params)


def _check_points(points: Points, n_params: int, what: str) -> None:
    n = len(points.log_pi)
    _check_shape(points.theta, (n, n_params), f"{what}' parameters")
    _check_shape(points.log_m, (n,), f"{what}' log densities of the reference")
    _require(bool(np.isfinite(points.theta).all()), f"its {what} are not finite")
    for values in (points.log_pi, points.log_m):
        fine = not np.isnan(values).any() and not (values == np.inf).any()
        _require(fine, f"its {what} have log densities that are NaN or infinite")


def _check_mixture(mixture: MarkerMixture, n_params: int) -> None:
    markers, clusters = mixture.markers, mixture.markers.clusters
    n, n_clusters = len(markers.weight), len(clusters.share)
    _require(n > 0 and n_clusters > 0, "one of its mixtures has no markers")
    _check_shape(markers.theta, (n, n_params), "markers")
    _check_shape(markers.log_p, (n,), "markers' log densities")
    _check_shape(clusters.mean, (n_clusters, n_params), "clusters' means")
    for factor in (clusters.chol, clusters.inv_chol):
        _check_shape(factor, (n_clusters, n_params, n_params), "clusters' factors")
        _require(bool(np.isfinite(factor).all()), "its clusters' factors are not finite")
    finite = np.isfinite(markers.theta).all() and np.isfinite(clusters.mean).all()
    _require(bool(finite), "its markers or clusters are not finite")
    for weights, what in ((markers.weight, "markers"), (clusters.share, "clusters")):
        fine = bool((weights >= 0).all()) and abs(float(weights.sum()) - 1.0) < 1e-6
        _require(fine, f"the weights of its {what} are no probabilities")
    offset = markers.offset
    in_order = (
        offset.shape == (n_clusters + 1,)
        and np.issubdtype(offset.dtype, np.integer)
        and offset[0] == 0
        and offset[-1] == n
        and bool((np.diff(offset) >= 0).all())
    )
    _require(in_order, "its markers are not in order of their clusters")
    spread, kept = mixture.spread, mixture.retained
    _require(_is_number(spread) and spread > 0, f"the spread of a mixture is {spread!r}")
    _require(_is_number(kept) and 0 <= kept <= 1, f"the pull of a mixture is {kept!r}")


def _check_shape(array: Array, shape: tuple[int, ...], what: str) -> None:
    fine = array.shape == shape and array.dtype.kind in "fi"
    _require(fine, f"its {what} have shape {array.shape} where {shape} is expected")
