"""The result of a run, made from its levels: weights, evidence, and notes on what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paims._arrays import Array, IntArray
from paims.sampling._path import (
    effective_size,
    log_incremental_weights,
    log_sum_exp,
    normalised,
)
from paims.sampling._recycling import HEAVY_K, RELIABLE_K, Recycled, recycle
from paims.sampling._result import Origin, SampleResult, Status
from paims.sampling._scheme import Plan, Scheme
from paims.sampling._state import LevelInfo, Progress, State
from paims.sampling._target import Counts, Points, Target

# Share of the points below which Hamiltonian moves have left more than a recycled sample.
_SMALL = 0.25


def level_table(infos: Sequence[LevelInfo]) -> Array:
    """Turn the levels' infos into a structured array."""
    fields = [
        "level", "beta", "temperature", "effective_size", "local_acceptance",
        "global_acceptance", "second_acceptance", "spread", "n_clusters", "n_sweeps",
        "correlation", "sd_log_density", "best_log_density", "unique_share", "n_evaluations",
        "leg", "n_leaps",
    ]  # fmt: skip
    whole = {"level", "n_clusters", "n_sweeps", "n_evaluations", "leg", "n_leaps"}
    dtype = np.dtype([(name, int if name in whole else float) for name in fields])
    return np.array([tuple(getattr(info, name) for name in fields) for info in infos], dtype=dtype)


@dataclass(frozen=True)
class _Weighted:
    """Points with weights for the target, and the evidence that comes with them."""

    points: Points
    weight: Array
    log_evidence: float
    log_evidence_error: float
    pareto_k: float
    source: str
    gap: tuple[float, float]
    replicate: IntArray | None = None

    @property
    def size(self) -> float:
        """Effective number of points."""
        return 1.0 / float(np.sum(self.weight**2))


def assemble(
    progress: Progress, plan: Plan, target: Target, status: Status, go_on: str = ""
) -> SampleResult:
    """Build the result from the state at temperature 1, or as near to it as the run came.

    Parameters
    ----------
    progress : Progress
        With a state.
    plan : Plan
    target : Target
    status : Status
    go_on : str
        How to go on with a run that has not reached its goal.
    """
    assert progress.state is not None
    state = progress.state if progress.at_one is None else progress.at_one
    weighted = _weigh(state, progress.infos, plan.scheme)
    notes = _notes_of_run(state, progress.infos, status, go_on)
    notes += _notes_of_weights(state, progress.infos, weighted, plan.scheme)
    result = SampleResult(
        draws=target.closed(weighted.points.theta),
        log_density=weighted.points.log_pi,
        weights=weighted.weight,
        names=plan.names,
        levels=level_table(progress.infos),
        log_evidence=weighted.log_evidence,
        log_evidence_error=weighted.log_evidence_error,
        island_log_evidence=state.log_z,
        n_evaluations=target.counts.n_evaluations,
        n_nan=target.counts.n_nan,
        pareto_k=weighted.pareto_k,
        status=status,
        goal="posterior",
        source=weighted.source,
        warnings=(*notes, *_notes_of_counts(target.counts)),
        n_rejected=target.counts.n_rejected,
        n_lead_evaluations=target.counts.n_lead,
        n_gradients=target.counts.n_gradients,
        random_state=state.seed,
        search=state.search,
        n_samples=plan.n_samples,
        wanted_size=plan.scheme.wanted_share * len(state.points),
        island_gap=weighted.gap,
        island=weighted.points.island,
        replicate=weighted.replicate,
        log_prior=_log_prior(weighted.points, target),
        circles=target.circles,
        density_fn=target.bare().log_pi,
        origin=Origin(target.bare(), plan),
    )
    if plan.goal == "posterior":
        return result
    return _as_optimum(result, progress.state.points, target)


def _log_prior(points: Points, target: Target) -> Array | None:
    """Log density of the prior, if the density is its product with a likelihood."""
    if not target.times_reference or target.leg[0] is None:
        return points.log_m if target.times_reference else None
    return np.asarray(target.reference.log_density(points.theta), dtype=float)


def _as_optimum(result: SampleResult, points: Points, target: Target) -> SampleResult:
    """Result whose draws are the nearly optimal points of the last level."""
    return replace(
        result,
        draws=target.closed(points.theta),
        log_density=points.log_pi,
        weights=np.full(len(points), 1.0 / len(points)),
        island=points.island,
        replicate=None,
        log_prior=_log_prior(points, target),
        goal="optimum",
        source="last level",
        posterior=replace(result, warnings=()),
    )


def _weigh(state: State, infos: Sequence[LevelInfo], scheme: Scheme) -> _Weighted:
    """The recycled sample if it can be relied on, or else the points of the last level.

    These also where they come from Hamiltonian moves and the recycled sample is much smaller; its
    evidence, a mean over all mixtures, is still better than that of the path.
    """
    recycled = None
    if scheme.recycle and state.level > 0 and state.pool:
        recycled = _recycled(recycle(state.pool))
    reliable = recycled if recycled is not None and recycled.pareto_k < RELIABLE_K else None
    if reliable and not (state.leapt and reliable.size < _SMALL * len(state.points)):
        return reliable
    log_w = log_incremental_weights(state.points, state.beta, 1.0)
    for rows, log_z in zip(state.islands, state.log_z, strict=True):
        log_w[rows] = log_w[rows] - np.log(len(rows)) + log_z
    weight = normalised(log_w)
    alive = weight > 0
    n = len(log_w)
    relative = sum(_relative_variance(info, n) for info in infos)
    relative += 1.0 / max(effective_size(log_w), 1.0) - 1.0 / n
    gap = _gap_of_paths(state, infos)
    error = float(np.nanmax([np.sqrt(max(relative, 0.0)), 0.5 * gap[0]]))
    log_evidence = log_sum_exp(log_w) - float(np.log(len(state.log_z)))
    if reliable:
        log_evidence, error = reliable.log_evidence, reliable.log_evidence_error
    return _Weighted(
        state.points[alive],
        weight[alive],
        log_evidence,
        error,
        recycled.pareto_k if recycled is not None else float("nan"),
        "last level",
        gap,
    )


def _recycled(pool: Recycled) -> _Weighted:
    log_evidence = pool.log_evidence
    weight = np.exp(pool.log_weight - log_evidence)
    kept = weight > 1e-14 / len(weight)
    return _Weighted(
        pool.points[kept],
        weight[kept] / weight[kept].sum(),
        log_evidence,
        pool.log_evidence_error,
        pool.pareto_k,
        "recycled",
        pool.gap,
        pool.replicate[kept],
    )


_BEYOND_LEAD = 1e-3
# What a user should know: each note says what was seen and what to do.
_MORE = "Run again with more n_samples (twice as many is a good start)."


def _notes_of_run(
    state: State, infos: Sequence[LevelInfo], status: Status, go_on: str
) -> list[str]:
    notes = []
    if status.name != "converged":
        notes.append(
            f"The run ended before its goal ({status.reason}) at beta={state.beta:.3g}: the draws "
            f"are importance weighted from there and the rest may be rough. {go_on}".rstrip()
        )
    if state.leg[1] != 0:
        notes.append(
            "The run ended while it still followed the lead: draws, weights and evidence are "
            "those of the lead, not of the density."
        )
    if state.lead_note:
        notes.append(
            f"{state.lead_note}: the run began anew without the lead. Give one that is positive "
            "wherever the density is, or none."
        )
    moved = [info for info in infos if info.n_sweeps and not info.n_leaps]
    rates = [info.local_acceptance * info.global_acceptance for info in moved]
    if moved and min(rates) < 0.02:
        worst = moved[int(np.argmin(rates))]
        notes.append(
            f"Global acceptance fell to {min(rates):.1%} at level {worst.level}: the chains "
            "hardly left the neighbourhood of their starts, so mode masses are not reliable. "
            f"{_MORE}"
        )
    return notes


def _notes_of_weights(
    state: State, infos: Sequence[LevelInfo], weighted: _Weighted, scheme: Scheme
) -> list[str]:
    notes: list[str] = []
    if not infos:
        return notes
    leapt = infos[-1].n_leaps > 0
    if leapt and not scheme.enough(infos[-1].correlation):
        notes.append(
            f"The Hamiltonian moves hardly left their starts: correlation "
            f"{infos[-1].correlation:.2f} after {infos[-1].n_sweeps} of them, should be below "
            f"{scheme.max_correlation}. {_MORE}"
        )
    if scheme.recycle and weighted.source != "recycled" and not leapt:
        notes.append(
            f"The recycled importance weights are not reliable (Pareto k = "
            f"{weighted.pareto_k:.2f}, should be below {RELIABLE_K}); the draws of the last "
            f"level are used in their place, with a larger error. {_MORE}"
        )
    if len(state.log_z) == 2:
        notes += _gap(*weighted.gap)
        recycled = weighted.source == "recycled"
        notes += _heavy_tail(weighted.pareto_k) if recycled else _cluster_shares(state)
    if state.leg[0] is not None:
        beyond = float(np.sum(weighted.weight[np.isneginf(weighted.points.log_m)]))
        if beyond > _BEYOND_LEAD:
            notes.append(
                f"The lead is zero where the density has {beyond:.1%} of its mass or more; what "
                "lies far from the rest there may be missing. Give a lead that is positive "
                "wherever the density is, or none."
            )
    return notes


def _notes_of_counts(counts: Counts) -> list[str]:
    notes = []
    if counts.n_lead_failed:
        why = f"; the first exception was {counts.why_lead_failed}" * bool(counts.why_lead_failed)
        notes.append(
            f"The lead was NaN or raised at {counts.n_lead_failed} of {counts.n_lead} points, "
            f"which count as zero there{why}. The result is exact all the same."
        )
    if counts.n_nan:
        notes.append(
            f"log_density was NaN at {counts.n_nan} of {counts.n_evaluations} points; these count "
            "as zero density. Return -inf where that is meant."
        )
    if counts.n_rejected:
        notes.append(
            f"log_density raised at {counts.n_rejected} of {counts.n_evaluations} points, which "
            f"count as zero density; the first exception was {counts.why_rejected}."
        )
    return notes


def _gap_of_paths(state: State, infos: Sequence[LevelInfo]) -> tuple[float, float]:
    """How far the evidences that the islands gathered on their paths are apart, and should be."""
    if len(state.log_z) != 2:
        return float("nan"), float("nan")
    total = len(state.points)
    variance = sum(4 * _relative_variance(info, total) for info in infos)
    return abs(state.log_z[0] - state.log_z[1]), float(np.sqrt(max(variance, 0.0)))


def _relative_variance(info: LevelInfo, n_points: int) -> float:
    """Relative variance of a level's mean weight over the points.

    The chains remember where they started, and carry what a level before had too much or too
    little of into this one: as for any chain with correlation r, (1 + r) / (1 - r) times that of
    independent points.
    """
    variance = (n_points / max(info.effective_size, 1.0) - 1) / n_points
    memory = float(np.clip(np.nan_to_num(info.correlation), 0.0, 0.95))
    return variance * (1 + memory) / (1 - memory)


def _heavy_tail(k: float) -> list[str]:
    if k < HEAVY_K:
        return []
    return [
        f"The importance weights have a heavy tail (Pareto k = {k:.2f}, should be below "
        f"{HEAVY_K}) that more candidates did not mend: part of the density is hardly covered, "
        f"and the log evidence may be too low by more than its error. {_MORE}"
    ]


def _gap(gap: float, expected: float) -> list[str]:
    if gap <= 4 * expected + 0.05:
        return []
    return [
        f"The two islands disagree: their log evidences are {gap:.2f} apart where about "
        f"{expected:.2f} is expected. {_MORE}"
    ]


def _cluster_shares(state: State) -> list[str]:
    """Compare the islands' shares of the clusters that the last mixture has found."""
    mixture = state.pool[-1].mixture if state.pool else None
    if mixture is None:
        return []
    clusters = mixture.markers.clusters
    mean, place = np.unique(clusters.centre, axis=0, return_inverse=True)  # widened or not
    shares, sizes = [], []
    for rows in state.islands:
        nearest = np.argmax(clusters.log_responsibilities(state.points.theta[rows])[1], axis=1)
        label = place.ravel()[nearest]
        shares.append(np.bincount(label, minlength=len(mean)) / len(label))
        sizes.append(len(label))
    middle = (shares[0] + shares[1]) / 2
    noise = np.sqrt(middle * (1 - middle) * sum(4 / size for size in sizes))
    excess = np.abs(shares[0] - shares[1]) - 5 * noise - 0.02
    worst = int(np.argmax(excess))
    if excess[worst] <= 0:
        return []
    return [
        "The two islands disagree about the mass near "
        f"{np.round(mean[worst], 3).tolist()}: {shares[0][worst]:.3f} and "
        f"{shares[1][worst]:.3f}. {_MORE}"
    ]
