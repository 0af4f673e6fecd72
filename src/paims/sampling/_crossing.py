"""From one leg of the path to the next: what a lead has led to, under the density after it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paims._arrays import Array
from paims.sampling._level import TooFewAliveError, require_alive
from paims.sampling._path import normalised, systematic
from paims.sampling._recycling import Batch
from paims.sampling._scheme import Scheme
from paims.sampling._state import State
from paims.sampling._target import Points, Target

# Chains of Hamiltonian moves that go on after a lead. Of those of an island two fifths, at the
# next level, have a start of their own, and the metric needs more of these than parameters.
_N_AFTER_LEAD = 75
_N_PER_PARAM = 3
_N_ZEROS = 64  # points at which the lead is zero where the target is looked at


def cross_over(state: State, target: Target, scheme: Scheme) -> State:
    """Go on from a lead to the density after it: the next leg's points at its beginning.

    Fresh candidates of the last mixtures, whose densities are known, are the first batches of the
    leg's pool and, resampled by the lead, its points. Some come from mixtures of higher
    temperature, in case the tails of the next density are heavier than the lead's. Where they
    hardly hit the lead, the points of the lead go on themselves.
    """
    rng = state.rng(3)
    fresh: list[Batch] = []
    wider: list[Batch] = []
    for i, rows in enumerate(state.islands if not state.leapt else []):
        own = [batch.mixture for batch in state.pool if batch.points.island[0] == i]
        mixtures = [mixture for mixture in dict.fromkeys(own) if mixture is not None]
        n_wider = len(rows) // 4 if len(mixtures) > 2 else 0
        sizes = [(fresh, -1, len(rows) - n_wider), (wider, -3, n_wider)]
        for batches, place, size in sizes if mixtures else []:
            if size:
                theta, _ = mixtures[place].sample(size, rng)
                points = target.evaluate(theta, np.full(size, i))
                log_q = mixtures[place].log_density(theta)
                batches.append(Batch(mixtures[place], points, log_q))
    if state.leg[0] is None:
        _check_support(state, target)
    begun = replace(
        state,
        beta=0.0,
        leg=(state.leg[1], state.leg[1] + 1),
        pool=(),
        search=None,
        slopes=None,
    )
    if fresh and min(batch.efficiency for batch in fresh) > scheme.hopeless:
        pool = tuple(
            Batch(batch.mixture, target.at_next(batch.points), batch.log_q)
            for batch in [*fresh, *wider]
        )
        parts = [
            here.points[systematic(normalised(before.log_weight), len(rows), rng)]
            for before, here, rows in zip(fresh, pool, state.islands, strict=False)
        ]
        begun = replace(begun, points=Points.concatenate(parts), pool=pool)
    else:
        kept = np.concatenate([_thinned(state, rows) for rows in state.islands])
        begun = replace(begun, points=target.at_next(state.points[kept]))
    target.leg = begun.leg
    require_alive(begun.points, len(begun.log_z))
    return begun


def kept_after_lead(n_points: int, n_params: int) -> int:
    """How many of an island's chains of Hamiltonian moves go on: as many as are enough.

    Each density costs more than the one before.
    """
    return min(n_points, max(_N_AFTER_LEAD, _N_PER_PARAM * n_params))


def _thinned(state: State, rows: Array) -> Array:
    if not state.leapt:
        return rows
    n_kept = kept_after_lead(len(rows), state.points.theta.shape[1])
    return rows[np.linspace(0, len(rows) - 1, n_kept).round().astype(np.int64)]


def _check_support(state: State, target: Target) -> None:
    """Look at the target where the reference has drawn points and the first lead is zero."""
    zeros = [
        batch.points[np.isneginf(batch.points.log_pi) & np.isfinite(batch.points.log_m)]
        for batch in state.pool
        if batch.mixture is None
    ]
    points = Points.concatenate(zeros) if zeros else state.points[:0]
    if not len(points):
        return
    some = points[:: -(-len(points) // _N_ZEROS)]
    if np.any(np.isfinite(target.at(0, some.theta))):
        raise TooFewAliveError("The lead is zero where the density is not")
