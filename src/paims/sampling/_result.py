"""What a run gives back, and how it is made from the levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from paims._arrays import Array
from paims.sampling._level import LevelInfo, Progress, State
from paims.sampling._modes import Mode, find_modes
from paims.sampling._modes import climb as climb_to_tops
from paims.sampling._path import (
    effective_size,
    log_incremental_weights,
    log_sum_exp,
    normalised,
    systematic,
)
from paims.sampling._recycling import RELIABLE_K, SETTLED_K, Recycled, recycle
from paims.sampling._scheme import Plan, Scheme
from paims.sampling._search import SearchInfo
from paims.sampling._target import Counts, LogDensity, Points, Target


class SamplingWarning(UserWarning):
    """Something about a run that its user should know before using the result."""


@dataclass(frozen=True)
class Status:
    """How a run ended: ``name`` is "converged", "stopped" (by a limit) or "interrupted"."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, repr=False)
class SampleResult:
    """Weighted draws of a density, with its evidence and how they were made.

    Attributes
    ----------
    draws : ndarray, shape (n_draws, n_params)
    log_density : ndarray, shape (n_draws,)
        Of the density that was sampled; with a likelihood and a prior, of their product.
    weights : ndarray, shape (n_draws,)
        Sum to 1.
    names : tuple of str
    levels : structured ndarray
        One row for each annealing level; fields as in ``LevelInfo``. ``pandas.DataFrame(levels)``
        makes a table of it.
    log_evidence : float
        Log of the integral of the density (with a likelihood and a prior: the log evidence).
    log_evidence_error : float
        Its estimated standard error.
    island_log_evidence : tuple of float
        Estimates of the islands on their own path; they should agree.
    n_evaluations : int
    n_nan : int
        How often the density was NaN, which counts as zero.
    pareto_k : float
        Shape of the tail of the recycled importance weights; below 0.7 they can be relied on.
    status : Status
    goal : str
    source : str
        "recycled" (all candidates, importance weighted) or "last level".
    warnings : tuple of str
        What the run noticed.
    posterior : SampleResult or None
        For goal="optimum": the draws of the density itself, at temperature 1.
    n_rejected : int
        How often the density raised an exception that counts as zero (``on_error="reject"``).
    random_state : int or None
        Gives the same run again.
    search : SearchInfo or None
        What the search for missed modes did.
    """

    draws: Array
    log_density: Array
    weights: Array
    names: tuple[str, ...]
    levels: Array
    log_evidence: float
    log_evidence_error: float
    island_log_evidence: tuple[float, ...]
    n_evaluations: int
    n_nan: int
    pareto_k: float
    status: Status
    goal: str
    source: str
    warnings: tuple[str, ...] = ()
    posterior: SampleResult | None = None
    n_rejected: int = 0
    random_state: int | None = None
    search: SearchInfo | None = None
    density_fn: LogDensity | None = field(default=None, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the density behind: the user's function need not survive a change of process."""
        return {**self.__dict__, "density_fn": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return (
            f"<SampleResult: {len(self.draws)} draws of {', '.join(self.names)}; "
            f"effective size {self.effective_size:.0f}; log evidence {self.log_evidence:.4f} "
            f"+- {self.log_evidence_error:.4f}; {self.status}>"
        )

    def __str__(self) -> str:
        return self.summary()

    @property
    def effective_size(self) -> float:
        """Effective number of draws, 1 / sum of squared weights."""
        return float(1.0 / np.sum(self.weights**2))

    @property
    def mean(self) -> Array:
        """Weighted mean of the draws, (n_params,)."""
        return np.asarray(self.weights @ self.draws)

    @property
    def sd(self) -> Array:
        """Weighted standard deviation of the draws, (n_params,)."""
        return np.asarray(np.sqrt(self.weights @ (self.draws - self.mean) ** 2))

    @property
    def best(self) -> tuple[Array, float]:
        """The draw with the highest log density, and that density."""
        index = int(np.argmax(self.log_density))
        return self.draws[index].copy(), float(self.log_density[index])

    def quantile(self, q: float | Sequence[float]) -> Array:
        """Weighted quantiles of each parameter, shape ``np.shape(q) + (n_params,)``.

        A quantile is the smallest draw at which the sum of weights reaches q, so that draws of
        next to no weight do not move it.
        """
        levels = np.asarray(q, dtype=float)
        if not np.all((levels >= 0) & (levels <= 1)):
            raise ValueError(f"q must lie between 0 and 1; got {q!r}.")
        return np.asarray(
            np.quantile(self.draws, levels, axis=0, weights=self.weights, method="inverted_cdf")
        )

    def resample(self, n: int, random_state: Any = None) -> Array:
        """Return ``n`` equally weighted draws, ``(n, n_params)``, in random order."""
        if n < 1:
            raise ValueError(f"n must be at least 1; got {n!r}.")
        rng = np.random.default_rng(random_state)
        return np.asarray(self.draws[rng.permutation(systematic(self.weights, n, rng))])

    def modes(
        self, min_mass: float = 0.005, prominence: float | None = None, climb: bool = False
    ) -> list[Mode]:
        """Return the modes of the density, by falling mass.

        Masses are those of the density itself, for goal="optimum" too.

        Parameters
        ----------
        min_mass : float
            Modes with less of the mass are left out.
        prominence : float, optional
            How much log density a peak has to stand out by.
        climb : bool
            Go on from the best draw of each mode to its top, which evaluates the density; those
            that reach the same top are one mode. A small ``prominence`` finds shallow ones.
        """
        if self.posterior is not None:
            return self.posterior.modes(min_mass, prominence, climb)
        if climb and self.density_fn is None:
            raise ValueError(
                "climb=True needs the density, which this result does not have: it was loaded "
                "from a file or sent from another process. Use climb=False."
            )
        modes, _ = find_modes(self.draws, self.log_density, self.weights, min_mass, prominence)
        if climb:
            assert self.density_fn is not None
            modes = climb_to_tops(modes, self.density_fn)
        return modes

    def summary(self) -> str:
        """Return a table of the parameters and a line on how the run went."""
        width = max(9, *(len(name) for name in self.names))
        low, middle, high = self.quantile([0.05, 0.5, 0.95])
        header = f"{'':{width}} {'mean':>10} {'sd':>10} {'5 %':>10} {'median':>10} {'95 %':>10}"
        rows = [
            f"{name:{width}} {m:10.4g} {s:10.4g} {a:10.4g} {b:10.4g} {c:10.4g}"
            for name, m, s, a, b, c in zip(
                self.names, self.mean, self.sd, low, middle, high, strict=True
            )
        ]
        tail = [
            f"log evidence {self.log_evidence:.4f} +- {self.log_evidence_error:.4f}; "
            f"effective size {self.effective_size:.0f} of {len(self.draws)} draws "
            f"({self.source}); {self.n_evaluations} evaluations in {len(self.levels)} levels",
            str(self.status),
            *(f"warning: {text}" for text in self.warnings),
        ]
        return "\n".join([header, *rows, *tail])

    def to_inference_data(self, n_draws: int | None = None, random_state: Any = 0) -> Any:
        """Return equally weighted draws as ArviZ's ``DataTree`` (needs the ``arviz`` extra).

        Parameters
        ----------
        n_draws : int, optional
            Number of draws; by default the effective size.
        random_state : int, Generator or None
        """
        try:
            import arviz_base  # noqa: PLC0415 - an extra, and slow to import
        except ImportError:
            raise ImportError(
                "to_inference_data needs ArviZ: install it with pip install 'paims[arviz]'."
            ) from None
        rng = np.random.default_rng(random_state)
        size = max(1, int(self.effective_size)) if n_draws is None else n_draws
        index = rng.permutation(systematic(self.weights, size, rng))
        attrs = {
            "inference_library": "paims",
            "log_evidence": self.log_evidence,
            "log_evidence_error": self.log_evidence_error,
            "status": str(self.status),
        }
        return arviz_base.from_dict(
            {
                "posterior": {
                    name: self.draws[index, i][None] for i, name in enumerate(self.names)
                },
                "sample_stats": {"lp": self.log_density[index][None]},
            },
            attrs={"/": attrs},
        )


def level_table(infos: Sequence[LevelInfo]) -> Array:
    """Turn the levels' infos into a structured array."""
    fields = [
        "level", "beta", "temperature", "effective_size", "local_acceptance",
        "global_acceptance", "second_acceptance", "spread", "n_clusters", "n_sweeps",
        "correlation", "sd_log_density", "best_log_density", "unique_share", "n_evaluations",
    ]  # fmt: skip
    kinds = {"level": int, "n_clusters": int, "n_sweeps": int, "n_evaluations": int}
    dtype = np.dtype([(name, kinds.get(name, float)) for name in fields])
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
    gap: tuple[float, float] = (0.0, 0.0)


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
        draws=weighted.points.theta,
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
        random_state=state.seed,
        search=state.search,
        density_fn=target.bare().log_pi,
    )
    return result if plan.goal == "posterior" else _as_optimum(result, progress.state.points)


def _as_optimum(result: SampleResult, points: Points) -> SampleResult:
    """Result whose draws are the nearly optimal points of the last level."""
    return replace(
        result,
        draws=points.theta,
        log_density=points.log_pi,
        weights=np.full(len(points), 1.0 / len(points)),
        goal="optimum",
        source="last level",
        posterior=replace(result, warnings=()),
    )


def _weigh(state: State, infos: Sequence[LevelInfo], scheme: Scheme) -> _Weighted:
    """The recycled sample if it can be relied on, or else the points of the last level."""
    recycled = None
    if scheme.recycle and state.level > 0:
        recycled = _recycled(recycle(state.pool))
    if recycled is not None and recycled.pareto_k < RELIABLE_K:
        return recycled
    log_w = log_incremental_weights(state.points, state.beta, 1.0)
    for rows, log_z in zip(state.islands, state.log_z, strict=True):
        log_w[rows] = log_w[rows] - np.log(len(rows)) + log_z
    weight = normalised(log_w)
    alive = weight > 0
    n = len(log_w)
    relative = sum((n / max(info.effective_size, 1.0) - 1) / n for info in infos)
    relative += 1.0 / max(effective_size(log_w), 1.0) - 1.0 / n
    return _Weighted(
        state.points[alive],
        weight[alive],
        log_sum_exp(log_w) - float(np.log(len(state.log_z))),
        float(np.sqrt(max(relative, 0.0))),
        recycled.pareto_k if recycled is not None else float("nan"),
        "last level",
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
    )


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
    moved = [info for info in infos if info.n_sweeps]
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
    if scheme.recycle and weighted.source != "recycled":
        notes.append(
            f"The recycled importance weights are not reliable (Pareto k = "
            f"{weighted.pareto_k:.2f}, should be below {RELIABLE_K}); the draws of the last "
            f"level are used in their place, with a larger error. {_MORE}"
        )
    if len(state.log_z) == 2:
        if weighted.source == "recycled":
            notes += _gap(*weighted.gap) + _heavy_tail(weighted.pareto_k)
        else:
            notes += _paths_disagree(state, infos) + _cluster_shares(state)
    return notes


def _notes_of_counts(counts: Counts) -> list[str]:
    notes = []
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


def _paths_disagree(state: State, infos: Sequence[LevelInfo]) -> list[str]:
    """Compare the evidence that the islands have gathered on their paths."""
    total = len(state.points)
    variance = sum(4 * (total / max(info.effective_size, 1.0) - 1) / total for info in infos)
    gap = abs(state.log_z[0] - state.log_z[1])
    return _gap(gap, float(np.sqrt(max(variance, 0.0))))


def _heavy_tail(k: float) -> list[str]:
    if k < SETTLED_K:
        return []
    return [
        f"The importance weights have a heavy tail (Pareto k = {k:.2f}, should be below "
        f"{SETTLED_K}) that more candidates did not mend: part of the density is hardly covered, "
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
    mixture = state.pool[-1].mixture
    if mixture is None:
        return []
    clusters = mixture.markers.clusters
    mean, place = np.unique(
        clusters.mean, axis=0, return_inverse=True
    )  # widened ones are the same
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
