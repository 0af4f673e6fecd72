"""One annealing level as a pure function: State -> (State, LevelInfo).

State is what the next level needs, LevelInfo what a person wants to see. A level draws from its
own random stream, named by the seed and the level's number, so a level that is run again from the
same State gives the same result to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from paims._arrays import Array
from paims.sampling._clusters import fit_clusters, single_cluster
from paims.sampling._numeric import log_sum_exp, normalised
from paims.sampling._path import (
    effective_size,
    log_incremental_weights,
    log_tempered,
    next_beta,
)
from paims.sampling._pool import Batch, Recycled
from paims.sampling._proposal import MarkerMixture, Markers, choose_spread, sobol
from paims.sampling._resampling import systematic
from paims.sampling._scheme import Scheme
from paims.sampling._target import Points, Target
from paims.sampling._transition import Outcome, Proposed, evaluate_together, step


@dataclass(frozen=True)
class State:
    """Where the annealing is.

    Attributes
    ----------
    level : int
        Number of levels done.
    beta : float
        Inverse temperature of the points.
    islands : tuple of Points
        The populations; two that never exchange a point, or one.
    log_z : tuple of float
        Log evidence of the path so far, for each island.
    seed : int
        Names the random streams.
    initial_sd : float
        Standard deviation of the log density at level 0, which the stopping rule compares with.
    pool : tuple of Batch
        Every first-stage candidate so far with the mixture that it came from.
    """

    level: int
    beta: float
    islands: tuple[Points, ...]
    log_z: tuple[float, ...]
    seed: int
    initial_sd: float
    pool: tuple[Batch, ...]

    @property
    def points(self) -> Points:
        """The points of all islands."""
        return Points.concatenate(list(self.islands))

    def rng(self) -> np.random.Generator:
        """Return the random stream of the next level."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(self.level,)))


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
        second-stage candidates accepted.
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
        In this level.
    log_z : tuple of float
        Log evidence of the path so far, for each island.
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


def first_state(target: Target, n_samples: int, seed: int, scheme: Scheme) -> State:
    """Draw the points of level 0 from the reference."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**32 - 1,)))
    size = -(-n_samples // scheme.n_islands)
    thetas = [_reference_draws(target, size, rng) for _ in range(scheme.n_islands)]
    islands = evaluate_together(target, thetas)
    points = Points.concatenate(islands)
    _require_alive(points, islands)
    alive = np.isfinite(points.log_pi)
    return State(
        level=0,
        beta=0.0,
        islands=tuple(islands),
        log_z=(0.0,) * scheme.n_islands,
        seed=seed,
        initial_sd=float(np.std(points.log_pi[alive])),
        pool=tuple(
            Batch(None, part, part.log_m, i, even=hasattr(target.reference, "quantile"))
            for i, part in enumerate(islands)
        ),
    )


def next_level(
    state: State, target: Target, scheme: Scheme, cool: bool = False
) -> tuple[State, LevelInfo]:
    """Anneal by one level.

    Weights, markers, mixtures, then sweeps of the chains until they have forgotten their starts
    (``scheme.forgotten``). At temperature 1 the level is another round there, with better
    markers; with ``cool`` it goes on towards 0.
    """
    rng = state.rng()
    before = target.n_evaluations
    ceiling = np.inf if cool and state.beta >= 1.0 else 1.0
    beta = next_beta(state.points, state.beta, scheme.effective_share, ceiling)
    log_ws = [log_incremental_weights(island, state.beta, beta) for island in state.islands]
    weights = [normalised(log_w) for log_w in log_ws]
    log_z = tuple(
        log_z + log_sum_exp(log_w) - float(np.log(len(log_w)))
        for log_z, log_w in zip(state.log_z, log_ws, strict=True)
    )
    mixtures = _mixtures(state, beta, weights, scheme, rng)

    chosen = [scheme.chains(w, rng) for w in weights]
    starts = [
        Proposed.of(island[index], beta, mixture)
        for island, (index, _), mixture in zip(state.islands, chosen, mixtures, strict=True)
    ]
    lengths = [length for _, length in chosen]
    states, batches, outcomes = starts, list(state.pool), []
    n_sweeps, correlation = 0, np.inf
    n_params = state.points.theta.shape[1]
    while n_sweeps < scheme.max_sweeps and not scheme.enough(correlation, n_params):
        states, new, outcome = _sweep(states, lengths, mixtures, target, beta, scheme, rng)
        batches += new
        outcomes += outcome
        n_sweeps += 1
        correlation = _correlation(starts, states) if scheme.equal_chains else np.nan
    islands = tuple(s.points for s in states)
    after = replace(
        state,
        level=state.level + 1,
        beta=beta,
        islands=islands,
        log_z=log_z,
        pool=tuple(batches) if beta <= 1.0 else state.pool,
    )
    points = after.points
    n_clusters = sum(len(m.markers.clusters) for m in mixtures)
    info = LevelInfo(
        level=after.level,
        beta=beta,
        temperature=1.0 / beta,
        effective_size=effective_size(np.concatenate(log_ws)),
        **_acceptance(outcomes),
        spread=float(np.mean([mixture.spread for mixture in mixtures])),
        n_clusters=n_clusters,
        n_sweeps=n_sweeps,
        correlation=correlation,
        sd_log_density=float(np.std(points.log_pi)),
        best_log_density=float(np.max(points.log_pi)),
        unique_share=len(np.unique(points.theta, axis=0)) / len(points),
        n_evaluations=target.n_evaluations - before,
        log_z=log_z,
    )
    return after, info


def renew(state: State, recycled: Recycled) -> State:
    """Draw half of each island anew from its own recycled points.

    These are more than the chains' last states, and a mode that the chains have lost on the way is
    still among them. Weights are truncated (Ionides 2008) so that no point takes over. The other
    half are the chains' states: around a point that no mixture covers, only chains make others.
    """
    rng = np.random.default_rng(np.random.SeedSequence(state.seed, spawn_key=(state.level, 1)))
    islands = []
    for i, island in enumerate(state.islands):
        own = np.flatnonzero(recycled.island == i)
        weight = np.exp(recycled.log_weight[own] - np.max(recycled.log_weight[own]))
        weight = np.minimum(weight, np.mean(weight) * np.sqrt(len(weight)))
        half = len(island) // 2
        fresh = recycled.points[own[systematic(weight, half, rng)]]
        stay = island[rng.permutation(len(island))[half:]]
        islands.append(Points.concatenate([fresh, stay]))
    return replace(state, islands=tuple(islands))


def _sweep(
    states: list[Proposed],
    lengths: list[Array],
    mixtures: list[MarkerMixture],
    target: Target,
    beta: float,
    scheme: Scheme,
    rng: np.random.Generator,
) -> tuple[list[Proposed], list[Batch], list[Outcome]]:
    """Run every chain for its length; return every state after a transition.

    Candidates do not depend on the chains, so those of all steps are one batch.
    """
    drawn = [
        mixture.sample(int(length.sum()), rng)
        for mixture, length in zip(mixtures, lengths, strict=True)
    ]
    evaluated = evaluate_together(target, [theta for theta, _ in drawn])
    batches, candidates, local = [], [], []
    for i, (mixture, (_, marker), points) in enumerate(
        zip(mixtures, drawn, evaluated, strict=True)
    ):
        log_p = log_tempered(points, beta)
        log_q, log_p_hat = mixture.log_densities(points.theta, log_p)
        batches.append(Batch(mixture, points, log_q, i))
        candidate = Proposed(points, log_p, log_p_hat)
        log_local = candidate.log_p - mixture.markers.log_p[marker]
        local.append(np.log(rng.random(len(points))) < log_local)
        candidates.append(candidate)

    recorded: list[list[Proposed]] = [[] for _ in states]
    outcomes: list[Outcome] = []
    taken = [0] * len(states)
    scale = scheme.second_stage(states[0].points.theta.shape[1])
    for t in range(max(int(length.max()) for length in lengths)):
        active = [np.flatnonzero(length > t) for length in lengths]
        rows = [np.arange(k, k + len(a)) for k, a in zip(taken, active, strict=True)]
        moved, outcome = step(
            [s[a] for s, a in zip(states, active, strict=True)],
            [c[r] for c, r in zip(candidates, rows, strict=True)],
            [accepted[r] for accepted, r in zip(local, rows, strict=True)],
            mixtures,
            target,
            beta,
            scale,
            rng,
        )
        states = [s.replaced(a, m) for s, a, m in zip(states, active, moved, strict=True)]
        for record, m in zip(recorded, moved, strict=True):
            record.append(m)
        outcomes += outcome
        taken = [k + len(a) for k, a in zip(taken, active, strict=True)]
    return [_joined(record) for record in recorded], batches, outcomes


def _mixtures(
    state: State, beta: float, weights: list[Array], scheme: Scheme, rng: np.random.Generator
) -> list[MarkerMixture]:
    """The proposal mixture of each island, from the markers of the island that it may see."""
    markers = [
        _markers(island, beta, w, scheme, rng)
        for island, w in zip(state.islands, weights, strict=True)
    ]
    others = markers[::-1]  # with one island: its own
    if not scheme.shrinking:
        spread = scheme.decayed_spread(state.islands[0].theta.shape[1], state.level)
        return [MarkerMixture(other, spread, 1.0, scheme.n_jobs) for other in others]
    mixtures = []
    for island, w, other in zip(state.islands, weights, others, strict=True):
        index = systematic(w, scheme.n_judges, rng)
        judges = island[index]
        mixtures.append(
            choose_spread(
                other,
                judges.theta,
                np.full(len(index), 1.0 / len(index)),
                log_tempered(judges, beta),
                scheme.n_jobs,
            )
        )
    return mixtures


def _markers(
    island: Points, beta: float, weight: Array, scheme: Scheme, rng: np.random.Generator
) -> Markers:
    """Weighted, distinct markers, thinned to the scheme's limit, with their clusters."""
    _, first, inverse = np.unique(island.theta, axis=0, return_index=True, return_inverse=True)
    joint = np.bincount(inverse.ravel(), weights=weight)
    kept = joint > 1e-12 / len(joint)
    first, joint = first[kept], joint[kept]
    if len(first) > scheme.max_markers:
        index = systematic(joint / joint.sum(), scheme.max_markers, rng)
        index, count = np.unique(index, return_counts=True)
        first, joint = first[index], count.astype(float)
    joint = joint / joint.sum()
    points = island[first]
    if scheme.shrinking:
        clusters, label = fit_clusters(points.theta, joint)
    else:
        clusters = single_cluster(np.ascontiguousarray(points.theta), joint)
        label = np.zeros(len(points), dtype=np.int64)
    return Markers.of(points.theta, joint, log_tempered(points, beta), clusters, label)


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


def _require_alive(points: Points, islands: list[Points]) -> None:
    needed = 2 * (points.theta.shape[1] + 1)
    alive = min(int(np.count_nonzero(np.isfinite(island.log_pi))) for island in islands)
    if alive < needed:
        total = int(np.count_nonzero(np.isfinite(points.log_pi)))
        raise ValueError(
            f"The density is zero at {len(points) - total} of the {len(points)} points drawn from "
            f"the reference; at least {needed * len(islands)} with a density are needed to start. "
            "Give a reference that covers the density more closely, return finite log densities "
            "in place of -inf where you can (a smooth penalty), or raise n_samples."
        )


def _correlation(starts: list[Proposed], ends: list[Proposed]) -> float:
    """Largest correlation of a coordinate or of log p between the chains' starts and ends."""
    a = np.concatenate([np.column_stack([s.points.theta, s.log_p]) for s in starts])
    b = np.concatenate([np.column_stack([e.points.theta, e.log_p]) for e in ends])
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    scale = np.sqrt(np.sum(a**2, axis=0) * np.sum(b**2, axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.sum(a * b, axis=0) / scale
    return float(np.max(np.where(scale > 0, value, 0.0)))


def _acceptance(outcomes: list[Outcome]) -> dict[str, float]:
    local = np.concatenate([o.locally_accepted for o in outcomes])
    moved = np.concatenate([o.globally_accepted for o in outcomes])
    second = np.concatenate([o.second_accepted for o in outcomes])
    return {
        "local_acceptance": float(np.mean(local)),
        "global_acceptance": float(np.sum(moved) / max(np.sum(local), 1)),
        "second_acceptance": float(np.sum(second) / max(np.sum(~moved), 1)),
    }


def _joined(parts: list[Proposed]) -> Proposed:
    return Proposed(
        Points.concatenate([part.points for part in parts]),
        np.concatenate([part.log_p for part in parts]),
        np.concatenate([part.log_p_hat for part in parts]),
    )
