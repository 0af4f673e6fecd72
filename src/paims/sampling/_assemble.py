"""From the last state of a run to its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paims._arrays import Array
from paims.sampling._level import LevelInfo, State
from paims.sampling._numeric import log_sum_exp, normalised
from paims.sampling._pareto import RELIABLE_K, pareto_k
from paims.sampling._path import effective_size, log_incremental_weights
from paims.sampling._pool import Recycled, Recycler
from paims.sampling._result import SampleResult, Status, level_table
from paims.sampling._scheme import Scheme
from paims.sampling._target import Points, Target


@dataclass(frozen=True)
class _Weighted:
    """Points with weights for the target, and the evidence that comes with them."""

    points: Points
    weight: Array
    log_evidence: float
    log_evidence_error: float
    pareto_k: float
    source: str


def assemble(
    last: State,
    at_one: State | None,
    infos: Sequence[LevelInfo],
    target: Target,
    scheme: Scheme,
    goal: str,
    status: Status,
    names: tuple[str, ...],
    recycler: Recycler,
    go_on: str = "",
) -> SampleResult:
    """Build the result from the state at temperature 1, or as near to it as the run came."""
    state = last if at_one is None else at_one
    weighted = _weigh(state, infos, scheme, recycler)
    notes = _notes(state, infos, weighted, target, scheme, status, go_on)
    result = SampleResult(
        draws=weighted.points.theta,
        log_density=weighted.points.log_pi,
        weights=weighted.weight,
        names=names,
        levels=level_table(infos),
        log_evidence=weighted.log_evidence,
        log_evidence_error=weighted.log_evidence_error,
        island_log_evidence=state.log_z,
        n_evaluations=target.n_evaluations,
        n_nan=target.n_nan,
        pareto_k=weighted.pareto_k,
        status=status,
        goal="posterior",
        source=weighted.source,
        warnings=tuple(notes),
        n_rejected=target.n_rejected,
        random_state=state.seed,
        density_fn=target.bare().log_pi,
    )
    if goal == "posterior":
        return result
    points = last.points
    return replace(
        result,
        draws=points.theta,
        log_density=points.log_pi,
        weights=np.full(len(points), 1.0 / len(points)),
        goal="optimum",
        source="last level",
        posterior=replace(result, warnings=()),
    )


def _weigh(
    state: State, infos: Sequence[LevelInfo], scheme: Scheme, recycler: Recycler
) -> _Weighted:
    recycled = None
    if scheme.recycle and state.level > 0:
        recycler.update(state.pool)
        recycled = _recycled(recycler.recycled())
    if recycled is not None and recycled.pareto_k < RELIABLE_K:
        return recycled
    log_ws = [
        log_incremental_weights(island, state.beta, 1.0) - np.log(len(island)) + log_z
        for island, log_z in zip(state.islands, state.log_z, strict=True)
    ]
    log_w = np.concatenate(log_ws)
    log_evidence = log_sum_exp(log_w) - float(np.log(len(log_ws)))
    weight = normalised(log_w)
    alive = weight > 0
    n = len(log_w)
    relative = sum((n / max(info.effective_size, 1.0) - 1) / n for info in infos)
    relative += 1.0 / max(effective_size(log_w), 1.0) - 1.0 / n
    tail = recycled.pareto_k if recycled is not None else float("nan")
    return _Weighted(
        state.points[alive],
        weight[alive],
        log_evidence,
        float(np.sqrt(max(relative, 0.0))),
        tail,
        "last level",
    )


def _recycled(pool: Recycled) -> _Weighted:
    log_evidence = pool.log_evidence
    weight = np.exp(pool.log_weight - log_evidence)
    kept = weight > 1e-14 / len(weight)
    relative = float(np.sum(weight**2)) - 1.0 / pool.n_drawn
    return _Weighted(
        pool.points[kept],
        weight[kept] / weight[kept].sum(),
        log_evidence,
        float(np.sqrt(max(relative, 0.0))),
        pareto_k(pool.log_weight),
        "recycled",
    )


def _notes(
    state: State,
    infos: Sequence[LevelInfo],
    weighted: _Weighted,
    target: Target,
    scheme: Scheme,
    status: Status,
    go_on: str,
) -> list[str]:
    """What a user should know: each says what was seen and what to do."""
    notes = []
    more = "Run again with more n_samples (twice as many is a good start)."
    if status.name != "converged":
        notes.append(
            f"The run ended before its goal ({status.reason}) at beta={state.beta:.3g}: the draws "
            f"are importance weighted from there and the rest may be rough. {go_on}".rstrip()
        )
    rates = [info.local_acceptance * info.global_acceptance for info in infos]
    if infos and min(rates) < 0.02:
        worst = infos[int(np.argmin(rates))]
        notes.append(
            f"Global acceptance fell to {min(rates):.1%} at level {worst.level}: the chains "
            "hardly left the neighbourhood of their starts, so mode masses are not reliable. "
            f"{more}"
        )
    if scheme.recycle and infos and weighted.source != "recycled":
        notes.append(
            f"The recycled importance weights are not reliable (Pareto k = "
            f"{weighted.pareto_k:.2f}, should be below {RELIABLE_K}); the draws of the last "
            f"level are used in their place, with a larger error. {more}"
        )
    if len(state.islands) == 2 and infos:
        if weighted.source == "recycled":
            notes += _batches_disagree(state, more)
        else:
            notes += _paths_disagree(state, infos, more) + _cluster_shares(state, more)
    if target.n_nan:
        notes.append(
            f"log_density was NaN at {target.n_nan} of {target.n_evaluations} points; these count "
            "as zero density. Return -inf where that is meant."
        )
    if target.n_rejected:
        notes.append(
            f"log_density raised at {target.n_rejected} of {target.n_evaluations} points, which "
            f"count as zero density; the first exception was {target.why_rejected}."
        )
    return notes


def _batches_disagree(state: State, more: str) -> list[str]:
    """Compare the evidence that the last candidates of each island give on their own."""
    log_ws = [batch.log_weight for batch in state.pool[-2:]]
    log_z = [log_sum_exp(log_w) - float(np.log(len(log_w))) for log_w in log_ws]
    expected = float(np.sqrt(sum(1 / max(effective_size(log_w), 1.0) for log_w in log_ws)))
    return _gap(log_z, expected, more)


def _paths_disagree(state: State, infos: Sequence[LevelInfo], more: str) -> list[str]:
    """Compare the evidence that the islands have gathered on their paths."""
    total = sum(len(island) for island in state.islands)
    variance = sum(4 * (total / max(info.effective_size, 1.0) - 1) / total for info in infos)
    return _gap(list(state.log_z), float(np.sqrt(max(variance, 0.0))), more)


def _gap(log_z: list[float], expected: float, more: str) -> list[str]:
    gap = abs(log_z[0] - log_z[1])
    if gap <= 5 * expected + 0.1:
        return []
    return [
        f"The two islands disagree: their log evidences are {log_z[0]:.2f} and {log_z[1]:.2f}, "
        f"{gap:.2f} apart where about {expected:.2f} is expected. {more}"
    ]


def _cluster_shares(state: State, more: str) -> list[str]:
    """Compare the islands' shares of the clusters that the last mixture has found."""
    mixture = state.pool[-1].mixture
    if mixture is None:
        return []
    clusters = mixture.markers.clusters
    shares, sizes = [], []
    for island in state.islands:
        label = np.argmax(clusters.log_responsibilities(island.theta)[1], axis=1)
        shares.append(np.bincount(label, minlength=len(clusters)) / len(label))
        sizes.append(len(label))
    middle = (shares[0] + shares[1]) / 2
    noise = np.sqrt(middle * (1 - middle) * sum(4 / size for size in sizes))
    excess = np.abs(shares[0] - shares[1]) - 5 * noise - 0.02
    worst = int(np.argmax(excess))
    if excess[worst] <= 0:
        return []
    return [
        "The two islands disagree about the mass near "
        f"{np.round(clusters.mean[worst], 3).tolist()}: {shares[0][worst]:.3f} and "
        f"{shares[1][worst]:.3f}. {more}"
    ]
