"""One annealing level as a pure function: State -> (State, LevelInfo).

State is what the next level needs, LevelInfo what a person wants to see. A level draws from its
own random stream, named by the seed and the level's number, so a level that is run again from the
same State gives the same result to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from paims._arrays import Array
from paims.sampling._hamiltonian import Flow, Leaps, move, unguided
from paims.sampling._markers import marker_mixtures
from paims.sampling._path import (
    effective_size,
    log_incremental_weights,
    log_sum_exp,
    next_beta,
    normalised,
    systematic,
)
from paims.sampling._proposal import MarkerMixture, sobol
from paims.sampling._recycling import Batch, Recycled, recycle
from paims.sampling._references import box_of
from paims.sampling._scheme import Scheme
from paims.sampling._search import SearchInfo, search
from paims.sampling._state import LevelInfo, State
from paims.sampling._sweeps import (
    Candidates,
    Sweep,
    correlation_of,
    draw_candidates,
    islands_in_turn,
    sweep_until_moved,
)
from paims.sampling._target import Points, Slopes, Target
from paims.sampling._transition import Kernel, Outcome, Proposed

# A sweep of Hamiltonian moves that leaves more than this of a correlation is the last.
_STALLED = 0.93


class TooFewAliveError(ValueError):
    """The density is zero at nearly all points from which it should be annealed to."""


def first_state(target: Target, n_samples: int, seed: int, scheme: Scheme) -> State:
    """Draw the points of level 0 from the reference."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**32 - 1,)))
    size = -(-n_samples // scheme.n_islands)
    theta = [_reference_draws(target, size, rng) for _ in range(scheme.n_islands)]
    island = np.repeat(np.arange(scheme.n_islands), size)
    points = target.cut_circles(target.evaluate(np.concatenate(theta), island))
    require_alive(points, scheme.n_islands)
    state = State(
        level=0,
        beta=0.0,
        points=points,
        log_z=(0.0,) * scheme.n_islands,
        seed=seed,
        initial_sd=float(np.std(points.log_pi[np.isfinite(points.log_pi)])),
        pool=(),
        circles=target.circles,
        leg=target.leg,
    )
    quasi_random = hasattr(target.reference, "quantile")
    parts = [points[rows] for rows in state.islands]
    return replace(
        state, pool=tuple(Batch(None, part, part.log_m, quasi_random) for part in parts)
    )


def next_level(
    state: State, target: Target, scheme: Scheme, cool: bool = False
) -> tuple[State, LevelInfo]:
    """Anneal by one level.

    Weights, markers, mixtures, then sweeps of the chains until they have moved enough
    (``scheme.enough``). At temperature 1 the level is another round there, with better markers,
    and where the recycled sample is reliable the points come from it in place of the chains.
    With ``cool`` the level goes on towards temperature 0.
    """
    rng = state.rng()
    before = target.n_spent
    ceiling = np.inf if cool and state.beta >= 1.0 else 1.0
    beta = next_beta(state.points, state.beta, scheme.effective_share, ceiling)
    log_w = log_incremental_weights(state.points, state.beta, beta)
    weight = np.empty(len(log_w))
    for rows in state.islands:
        weight[rows] = normalised(log_w[rows])
    n_params = state.points.theta.shape[1]
    box = box_of(target.reference, n_params)
    mixtures, metrics, efficiency = marker_mixtures(state, beta, weight, scheme, rng, box)
    kernel = Kernel(target, beta, mixtures, scheme.second_stage(n_params, efficiency))

    def renewed(points: Points) -> Kernel:
        even = np.full(len(points), len(state.log_z) / len(points))
        now = replace(state, points=points)
        mixtures, _, efficiency = marker_mixtures(now, beta, even, scheme, rng, box)
        return Kernel(target, beta, mixtures, scheme.second_stage(n_params, efficiency))

    starts, lengths = _chains(state, weight, scheme, rng)
    after = replace(
        state,
        level=state.level + 1,
        beta=beta,
        leapt=False,
        slopes=None,
        log_z=tuple(
            log_z + log_sum_exp(log_w[rows]) - float(np.log(len(rows)))
            for log_z, rows in zip(state.log_z, state.islands, strict=True)
        ),
    )
    size = effective_size(log_w)
    if target.has_gradient and scheme.leaps(n_params, efficiency):
        flow = Flow(target, beta, metrics)
        slopes = None if state.slopes is None else state.slopes[starts]
        after, tour, n_leaps = _leap(after, state.points[starts], slopes, flow, scheme, rng)
        return after, _info(after, size, mixtures, None, tour, target.n_spent - before, n_leaps)
    first = draw_candidates(islands_in_turn(state.points.island[starts], lengths), kernel, rng)
    sweeps: list[Sweep] = []
    if scheme.recycle and beta == 1.0:
        after = replace(after, pool=(*state.pool, *first.batches))
        recycled = recycle(after.pool)
    if scheme.recycle and beta == 1.0 and recycled.reliable:
        after = renew(after, recycled, share=1.0)
    else:
        chains = Proposed.of(state.points[starts], beta, mixtures)
        sweeps = sweep_until_moved(chains, lengths, first, kernel, renewed, scheme, rng)
        batches = [b for sweep in sweeps if sweep.candidates for b in sweep.candidates.batches]
        after = replace(
            after,
            points=sweeps[-1].chains.points,
            pool=(*state.pool, *batches) if beta <= 1.0 else state.pool,
        )
    return after, _info(after, size, mixtures, first, sweeps, target.n_spent - before)


def _leap(
    after: State,
    starts: Points,
    slopes: Slopes | None,
    flow: Flow,
    scheme: Scheme,
    rng: np.random.Generator,
) -> tuple[State, list[Sweep], int]:
    """Move the chains by Hamiltonian moves alone, until they have moved enough.

    Or until they hardly move on: between modes they do not, however long. Also the number of steps
    of the last move.
    """
    leaps = Leaps(after.stride) if after.stride > 0.0 else Leaps.first(starts.theta.shape[1])
    chains = now = unguided(starts, flow.beta)
    sweeps: list[Sweep] = []
    none = np.zeros(len(starts), dtype=bool)
    if slopes is None:
        _, slopes = flow.target.evaluate_slopes(starts.theta, starts.island)
    flow = flow.sharpened(starts, slopes)
    while not sweeps or not (
        len(sweeps) == scheme.max_sweeps
        or scheme.enough(sweeps[-1].correlation)
        or (len(sweeps) > 1 and sweeps[-1].correlation > _STALLED * sweeps[-2].correlation)
    ):
        n_leaps = leaps.number
        now, slopes, took = move(now, slopes, flow, leaps, rng)
        leaps = leaps.adapted(float(np.mean(took)))
        sweeps.append(Sweep(now, None, [Outcome(none, none, took)], correlation_of(chains, now)))
    order = np.argsort(now.points.island, kind="stable")
    after = replace(
        after, points=now.points[order], slopes=slopes[order], stride=leaps.stride, leapt=True
    )
    return after, sweeps, n_leaps


def renew(state: State, recycled: Recycled, share: float = 0.5) -> State:
    """Draw points of each island anew from its own recycled points.

    These are more than the chains' last states, and a mode that the chains have lost on the way is
    still among them. Weights are truncated (Ionides 2008) so that no point takes over. Where the
    recycled sample is not reliable, half are the chains' states: around a point that no mixture
    covers, only chains make others.
    """
    rng = state.rng(1)
    parts = []
    for i, rows in enumerate(state.islands):
        own = np.flatnonzero(recycled.points.island == i)
        weight = np.exp(recycled.log_weight[own] - np.max(recycled.log_weight[own]))
        weight = np.minimum(weight, np.mean(weight) * np.sqrt(len(weight)))
        n_fresh = int(share * len(rows))
        fresh = recycled.points[own[systematic(weight, n_fresh, rng)]]
        parts += [fresh, state.points[rows[rng.permutation(len(rows))[n_fresh:]]]]
    return replace(state, points=Points.concatenate(parts), slopes=None)


def find_missed(state: State, target: Target, scheme: Scheme) -> State:
    """Search for modes that the sample at temperature 1 has missed, and take them in."""
    if state.leapt or not state.pool:  # no mixture covers the density: nothing to compare
        return replace(state, search=SearchInfo(0, 0, 0, 0))
    recycled = recycle(state.pool)
    batches, info = search(state.pool, recycled, target, scheme.search_share, state.rng(2))
    state = replace(state, pool=(*state.pool, *batches), search=info)
    if not batches:
        return state
    recycled = recycle(state.pool)
    return renew(state, recycled, share=1.0 if recycled.reliable else 0.5)


def _chains(
    state: State, weight: Array, scheme: Scheme, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Rows that the chains start from, and the chains' lengths."""
    starts, lengths = [], []
    for rows in state.islands:
        index, length = scheme.chains(weight[rows], rng)
        starts.append(rows[index])
        lengths.append(length)
    return np.concatenate(starts), np.concatenate(lengths)


def _reference_draws(target: Target, size: int, rng: np.random.Generator) -> Array:
    reference = target.reference
    quantile = getattr(reference, "quantile", None)
    if quantile is not None:
        return np.asarray(quantile(sobol(size, reference.n_params, rng)), dtype=float)  # type: ignore[attr-defined]
    theta = np.asarray(reference.sample(size, rng), dtype=float)
    if theta.ndim != 2 or len(theta) != size:
        raise ValueError(
            f"reference.sample({size}, rng) must return shape ({size}, n_params); "
            f"got {theta.shape}."
        )
    return theta


def require_alive(points: Points, n_islands: int) -> None:
    needed = 2 * (points.theta.shape[1] + 1)
    alive = np.bincount(points.island[np.isfinite(points.log_pi)], minlength=n_islands)
    if np.min(alive) < needed:
        raise TooFewAliveError(
            f"The density is zero at {len(points) - alive.sum()} of the {len(points)} points "
            f"drawn from the reference; at least {needed * n_islands} with a density are needed "
            "to start. Give a reference that covers the density more closely, return finite log "
            "densities in place of -inf where you can (a smooth penalty), or raise n_samples."
        )


def _info(
    after: State,
    size: float,
    mixtures: Sequence[MarkerMixture],
    first: Candidates | None,
    sweeps: list[Sweep],
    n_evaluations: int,
    n_leaps: int = 0,
) -> LevelInfo:
    outcomes = [outcome for sweep in sweeps for outcome in sweep.outcomes]
    if first is None:
        rates = (np.nan, np.nan, _acceptance(outcomes)[2])
    else:
        local = float(np.mean(first.local))
        rates = _acceptance(outcomes) if outcomes else (local, np.nan, np.nan)
    points = after.points
    return LevelInfo(
        level=after.level,
        beta=after.beta,
        temperature=1.0 / after.beta,
        effective_size=size,
        local_acceptance=rates[0],
        global_acceptance=rates[1],
        second_acceptance=rates[2],
        spread=float(np.mean([mixture.spread for mixture in mixtures])),
        n_clusters=sum(len(mixture.markers.clusters) for mixture in mixtures),
        n_sweeps=len(sweeps),
        correlation=sweeps[-1].correlation if sweeps else np.nan,
        sd_log_density=float(np.std(points.log_pi)),
        best_log_density=float(np.max(points.log_pi)),
        unique_share=len(np.unique(points.theta, axis=0)) / len(points),
        n_evaluations=n_evaluations,
        log_z=after.log_z,
        leg=after.leg[1],
        n_leaps=n_leaps,
    )


def _acceptance(outcomes: list[Outcome]) -> tuple[float, float, float]:
    """Shares accepted locally, of those globally, and of the rest in the second stage."""
    local = np.concatenate([o.locally_accepted for o in outcomes])
    moved = np.concatenate([o.globally_accepted for o in outcomes])
    second = np.concatenate([o.second_accepted for o in outcomes])
    return (
        float(np.mean(local)),
        float(np.sum(moved) / max(np.sum(local), 1)),
        float(np.sum(second) / max(np.sum(~moved), 1)),
    )
