"""What an annealing run hands from one level to the next: values, no work."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from paims._arrays import Array
from paims.sampling._periodic import Circles
from paims.sampling._recycling import Batch
from paims.sampling._search import SearchInfo
from paims.sampling._target import Counts, Leg, Points, Slopes


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
