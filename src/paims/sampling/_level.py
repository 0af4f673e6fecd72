"""One annealing level as a pure function: State -> (State, LevelInfo).

State is what the next level needs, LevelInfo what a person wants to see. A level draws from its
own random stream, named by the seed and the level's number, so a level that is run again from the
same State gives the same result to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from paims._arrays import Array
from paims.sampling._clusters import Clusters, fit_clusters, single_cluster
from paims.sampling._hamiltonian import Flow, Leaps, move, unguided
from paims.sampling._path import (
    effective_size,
    log_incremental_weights,
    log_sum_exp,
    log_tempered,
    next_beta,
    normalised,
    systematic,
)
from paims.sampling._periodic import Circles
from paims.sampling._proposal import MarkerMixture, Markers, by_island, choose_spread, sobol
from paims.sampling._recycling import Batch, Recycled, recycle
from paims.sampling._references import box_of
from paims.sampling._scheme import Scheme
from paims.sampling._search import SearchInfo, search
from paims.sampling._target import Counts, Leg, Points, Slopes, Target
from paims.sampling._transition import Kernel, Outcome, Proposed, step

# A sweep of Hamiltonian moves that leaves more than this of a correlation is the last.
_STALLED = 0.93
# Sweeps with the same mixtures.
_WITH_ONE = 2


class TooFewAliveError(ValueError):
    """The density is zero at nearly all points from which it should be annealed to."""


@dataclass(frozen=True)
class State:
    """Where the annealing is.

    Attributes
    ----------
    level : int
        Number of levels done.
    beta : float
        Inverse temperature of the points.
    points : Points
        The population, in order of its islands: two that never exchange a point, or one.
    log_z : tuple of float
        Log evidence of the path so far, for each island.
    seed : int
        Names the random streams.
    initial_sd : float
        Standard deviation of the log density at level 0, which the stopping rule compares with.
    pool : tuple of Batch
        Every first-stage candidate so far with the mixture that it came from.
    search : SearchInfo or None
        What the search for missed modes did; None before it.
    circles : Circles or None
        Periodic parameters, and where they are cut.
    leg : Leg
        Between which densities the points are.
    stride : float
        Size of the Hamiltonian moves' steps, in units of the clusters; 0 before there were any.
    leapt : bool
        Whether the points come from Hamiltonian moves: no mixture covers them.
    slopes : Slopes or None
        At the points, if they come from such moves on this leg.
    lead_note : str
        Why the lead was given up, if it was.
    """

    level: int
    beta: float
    points: Points
    log_z: tuple[float, ...]
    seed: int
    initial_sd: float
    pool: tuple[Batch, ...]
    search: SearchInfo | None = None
    circles: Circles | None = None
    leg: Leg = (None, 0)
    stride: float = 0.0
    leapt: bool = False
    slopes: Slopes | None = None
    lead_note: str = ""

    @property
    def arrived(self) -> bool:
        """Whether the points are at temperature 1 of the target itself, not of a lead."""
        return self.beta >= 1.0 and self.leg[1] == 0

    @property
    def islands(self) -> list[Array]:
        """Rows of the points of each island."""
        return [np.flatnonzero(self.points.island == i) for i in range(len(self.log_z))]

    def rng(self, *purpose: int) -> np.random.Generator:
        """Return the random stream of the next level, or one of its own for another purpose."""
        key = (self.level, *purpose)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))


@dataclass(frozen=True)
class LevelInfo:
    """What a level did; a row of ``SampleResult.levels``.

    Attributes
    ----------
    level, beta, temperature
    effective_size : float
        Of the importance weights with which the level began.
    local_acceptance, global_acceptance, second_acceptance : float
        Shares of the candidates accepted locally, of those accepted globally, and of the
        second-stage candidates (or Hamiltonian moves) accepted; NaN where there were none, as
        when the recycled sample took the chains' place.
    spread : float
        c of the kernels, mean over islands.
    n_clusters : int
        Clusters of the markers, all islands together.
    n_sweeps : int
        Transitions of each chain.
    correlation : float
        Largest correlation of a coordinate, or of log p, between the chains' starts and ends.
    sd_log_density : float
        Standard deviation of log pi over the level's points.
    best_log_density : float
    unique_share : float
        Share of distinct points.
    n_evaluations : int
        In this level, of the leg's end.
    log_z : tuple of float
        Log evidence of the path so far, for each island.
    leg : int
        The leg's end: 0 for the target, -1 for the last lead, -2 for the one before.
    n_leaps : int
        Steps of each Hamiltonian move; 0 for the second stage of random steps.
    """

    level: int
    beta: float
    temperature: float
    effective_size: float
    local_acceptance: float
    global_acceptance: float
    second_acceptance: float
    spread: float
    n_clusters: int
    n_sweeps: int
    correlation: float
    sd_log_density: float
    best_log_density: float
    unique_share: float
    n_evaluations: int
    log_z: tuple[float, ...]
    leg: int = 0
    n_leaps: int = 0


@dataclass(frozen=True)
class Progress:
    """How far a run has come: what it would go on from, and what its result is made of.

    Replaced as a whole after each level, so that an interruption at any moment leaves one that
    fits together.

    Attributes
    ----------
    state : State or None
        After the last whole level; None before level 0 is done.
    at_one : State or None
        The last one at temperature 1.
    infos : tuple of LevelInfo
    counts : Counts
        At the end of the last whole level.
    """

    state: State | None = None
    at_one: State | None = None
    infos: tuple[LevelInfo, ...] = ()
    counts: Counts = field(default_factory=Counts)

    def after(self, state: State, info: LevelInfo | None, counts: Counts) -> Progress:
        """Progress with one more level."""
        at_one = state if state.arrived and state.beta == 1.0 else self.at_one
        return Progress(state, at_one, (*self.infos, *([] if info is None else [info])), counts)


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
    mixtures, metrics, efficiency = _mixtures(state, beta, weight, scheme, rng, box)
    kernel = Kernel(target, beta, mixtures, scheme.second_stage(n_params, efficiency))

    def renewed(points: Points) -> Kernel:
        even = np.full(len(points), len(state.log_z) / len(points))
        now = replace(state, points=points)
        mixtures, _, efficiency = _mixtures(now, beta, even, scheme, rng, box)
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
    first = _candidates(_islands_in_turn(state.points.island[starts], lengths), kernel, rng)
    sweeps: list[_Sweep] = []
    if scheme.recycle and beta == 1.0:
        after = replace(after, pool=(*state.pool, *first.batches))
        recycled = recycle(after.pool)
    if scheme.recycle and beta == 1.0 and recycled.reliable:
        after = renew(after, recycled, share=1.0)
    else:
        chains = Proposed.of(state.points[starts], beta, mixtures)
        sweeps = _sweeps(chains, lengths, first, kernel, renewed, scheme, rng)
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
) -> tuple[State, list[_Sweep], int]:
    """Move the chains by Hamiltonian moves alone, until they have moved enough.

    Or until they hardly move on: between modes they do not, however long. Also the number of steps
    of the last move.
    """
    leaps = Leaps(after.stride) if after.stride > 0.0 else Leaps.first(starts.theta.shape[1])
    chains = now = unguided(starts, flow.beta)
    sweeps: list[_Sweep] = []
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
        sweeps.append(_Sweep(now, None, [Outcome(none, none, took)], _correlation(chains, now)))
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


@dataclass(frozen=True)
class _Candidates:
    """First-stage candidates, which of them are accepted locally, and the same as batches."""

    proposed: Proposed
    local: Array
    batches: list[Batch]


@dataclass(frozen=True)
class _Sweep:
    """The chains after one sweep of them all, and what came up on the way."""

    chains: Proposed
    candidates: _Candidates | None
    outcomes: list[Outcome]
    correlation: float


def _sweeps(
    chains: Proposed,
    lengths: Array,
    candidates: _Candidates,
    kernel: Kernel,
    renewed: Callable[[Points], Kernel],
    scheme: Scheme,
    rng: np.random.Generator,
) -> list[_Sweep]:
    """Sweep until the chains have moved enough; ``candidates`` are those of the first sweep.

    Where that takes more than a few sweeps, the mixtures may be to blame: one that has a cluster
    across two modes hardly moves a chain however often. They are made anew from the chains'
    states.
    """
    n_params = chains.points.theta.shape[1]
    sweeps: list[_Sweep] = []
    now = chains
    while True:
        now, outcomes = _sweep(now, lengths, candidates, kernel, rng)
        correlation = _correlation(chains, now) if scheme.equal_chains else np.nan
        sweeps.append(_Sweep(now, candidates, outcomes, correlation))
        if len(sweeps) == scheme.max_sweeps or scheme.enough(correlation, n_params):
            return sweeps
        lengths = np.ones(len(now), dtype=np.int64)  # every state that was recorded goes on
        if len(sweeps) % _WITH_ONE == 0:
            kernel = renewed(now.points)
            now = Proposed.of(now.points, kernel.beta, kernel.mixtures)
        candidates = _candidates(now.points.island, kernel, rng)


def _sweep(
    chains: Proposed,
    lengths: Array,
    candidates: _Candidates,
    kernel: Kernel,
    rng: np.random.Generator,
) -> tuple[Proposed, list[Outcome]]:
    """Run every chain for its length; return every state after a transition."""
    recorded: list[Proposed] = []
    outcomes: list[Outcome] = []
    start = 0
    for t in range(int(lengths.max())):
        rows = np.flatnonzero(lengths > t)
        own = np.arange(start, start + len(rows))
        moved, outcome = step(
            chains[rows], candidates.proposed[own], candidates.local[own], kernel, rng
        )
        chains = chains.replaced(rows, moved)
        recorded.append(moved)
        outcomes.append(outcome)
        start += len(rows)
    every = Proposed.concatenate(recorded)
    return every[np.argsort(every.points.island, kind="stable")], outcomes


def _islands_in_turn(island: Array, lengths: Array) -> Array:
    """Islands of the chains that take each step of a sweep, one step after the other."""
    active = [np.flatnonzero(lengths > t) for t in range(int(lengths.max()))]
    return np.asarray(island[np.concatenate(active)])


def _candidates(island: Array, kernel: Kernel, rng: np.random.Generator) -> _Candidates:
    """Draw first-stage candidates for chains of these islands.

    They do not depend on the chains, so those of all steps of a sweep are one batch.
    """
    theta = np.empty((len(island), kernel.mixtures[0].markers.theta.shape[1]))
    log_p_marker, log_q, log_p_hat = np.empty((3, len(island)))
    for mixture, rows in by_island(kernel.mixtures, island):
        theta[rows], marker = mixture.sample(len(rows), rng)
        log_p_marker[rows] = mixture.markers.log_p[marker]
    points = kernel.target.evaluate(theta, island)
    log_p = log_tempered(points, kernel.beta)
    batches = []
    for mixture, rows in by_island(kernel.mixtures, island):
        log_q[rows], log_p_hat[rows] = mixture.log_densities(theta[rows], log_p[rows])
        batches.append(Batch(mixture, points[rows], log_q[rows]))
    local = np.log(rng.random(len(points))) < log_p - log_p_marker
    return _Candidates(Proposed(points, log_p, log_p_hat), local, batches)


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


def _mixtures(
    state: State,
    beta: float,
    weight: Array,
    scheme: Scheme,
    rng: np.random.Generator,
    box: tuple[Array, Array] | None = None,
) -> tuple[list[MarkerMixture], list[Clusters], float]:
    """The proposal mixture of each island, from the markers of the island that it may see.

    Also the clusters of these markers, without maps and tails, and the least importance efficiency
    of a mixture; 0 with the paper's kernels. Where it is low, clusters with maps that straighten
    them are tried, within ``box``, and taken if the points of the chains' own island are described
    better by them.
    """
    others = state.islands[::-1]  # with one island: its own
    described = [_described(state.points[rows], weight[rows], scheme) for rows in others]
    metrics = [one.clusters for one in described]
    markers = [_markers(one, beta, scheme, rng) for one in described]
    if not scheme.shrinking:
        spread = scheme.decayed_spread(state.points.theta.shape[1], state.level)
        mixtures = [MarkerMixture(other, spread, 1.0, scheme.n_jobs) for other in markers]
        return mixtures, metrics, 0.0
    chosen = []
    for rows, other, plain in zip(state.islands, others, markers, strict=True):
        judges = state.points[rows[systematic(weight[rows], scheme.n_judges, rng)]]
        log_p = log_tempered(judges, beta)
        best = choose_spread(plain, judges.theta, log_p, scheme.n_jobs)
        if box is not None and best.efficiency < scheme.bending:
            mapped = _described(state.points[other], weight[other], scheme, box)
            bent = _markers(mapped, beta, scheme, rng)
            if any(bent.clusters.bends):
                new = choose_spread(bent, judges.theta, log_p, scheme.n_jobs)
                best = min(best, new, key=lambda one: one.cost)
        chosen.append(best)
    return [one.mixture for one in chosen], metrics, min(one.efficiency for one in chosen)


class _Described(NamedTuple):
    """Weighted, distinct points, their clusters, and the cluster of each."""

    points: Points
    weight: Array
    clusters: Clusters
    label: Array


def _described(
    points: Points, weight: Array, scheme: Scheme, box: tuple[Array, Array] | None = None
) -> _Described:
    """Find the clusters of an island's points.

    None is proposed from less than ``scheme.least_share``: a cluster that has hardly any points
    left is not lost, and can win back what it should have.
    """
    _, first, inverse = np.unique(points.theta, axis=0, return_index=True, return_inverse=True)
    joint = np.bincount(inverse.ravel(), weights=weight)
    kept = joint > 1e-12 / len(joint)
    points, joint = points[first[kept]], joint[kept] / joint[kept].sum()
    if not scheme.shrinking:
        clusters = single_cluster(np.ascontiguousarray(points.theta), joint)
        return _Described(points, joint, clusters, np.zeros(len(points), dtype=np.int64))
    clusters, label = fit_clusters(points.theta, joint, box=box)
    share = np.bincount(label, weights=joint)
    clusters = clusters.steadied(share**2 / np.bincount(label, weights=joint**2))
    least = min(scheme.least_share, 0.5 / len(share))
    joint = joint * (np.maximum(share, least) / share)[label]
    return _Described(points, joint, clusters, label)


def _markers(
    described: _Described, beta: float, scheme: Scheme, rng: np.random.Generator
) -> Markers:
    """Markers, thinned to the scheme's limit; their clusters are those of all points."""
    points, joint, clusters, label = described
    if len(points) > scheme.max_markers:
        order = np.argsort(label, kind="stable")
        index = order[systematic(joint[order], scheme.max_markers, rng)]
        index, count = np.unique(index, return_counts=True)
        alive, label = np.unique(label[index], return_inverse=True)
        points, joint, clusters = points[index], count.astype(float), clusters[alive]
    if scheme.wide_share > 0.0:
        clusters, label = _with_tails(clusters, label, scheme.wide_share)
    return Markers.of(points.theta, joint, log_tempered(points, beta), clusters, label)


def _with_tails(clusters: Clusters, label: Array, share: float) -> tuple[Clusters, Array]:
    """Give some of each cluster's markers wider kernels, so that the mixture has heavier tails.

    The widened clusters follow the others, 1 + 2/sqrt(d) times as wide.
    """
    order = np.argsort(label, kind="stable")
    rank = np.empty(len(label), dtype=np.int64)  # of each marker within its cluster
    first = np.searchsorted(label[order], label[order])
    rank[order] = np.arange(len(label)) - first
    every = round(1.0 / share)
    wide = rank % every == every // 2
    label = np.where(wide, label + len(clusters), label)
    kept, label = np.unique(label, return_inverse=True)
    return clusters.widened(1.0 + 2.0 / np.sqrt(clusters.mean.shape[1]))[kept], label


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


def _correlation(starts: Proposed, ends: Proposed) -> float:
    """Largest correlation of a coordinate or of log p between the chains' starts and ends."""
    a = np.column_stack([starts.points.theta, starts.log_p])
    b = np.column_stack([ends.points.theta, ends.log_p])
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    scale = np.sqrt(np.sum(a**2, axis=0) * np.sum(b**2, axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.sum(a * b, axis=0) / scale
    return float(np.max(np.where(scale > 0, value, 0.0)))


def _info(
    after: State,
    size: float,
    mixtures: Sequence[MarkerMixture],
    first: _Candidates | None,
    sweeps: list[_Sweep],
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
