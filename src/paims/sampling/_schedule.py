"""Which level comes next: down to temperature 1, and on from there as the goal asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from paims.sampling._level import LevelInfo, State, first_state, next_level, renew
from paims.sampling._pareto import RELIABLE_K, pareto_k
from paims.sampling._pool import Recycler
from paims.sampling._scheme import Scheme
from paims.sampling._target import Target

_OPTIMUM = 0.1  # alpha of the stopping rule (paper, eq. stopping_rule)


@dataclass(frozen=True)
class Level:
    """A level of :func:`anneal`: the state that it ended in and what happened."""

    state: State
    info: LevelInfo | None


def levels(
    target: Target,
    size: int,
    goal: str,
    scheme: Scheme,
    seed: int,
    recycler: Recycler,
    state: State | None = None,
    done: Sequence[LevelInfo] = (),
) -> Iterator[Level]:
    """Run levels until the goal is reached.

    Parameters
    ----------
    target, size, goal, scheme, seed
    recycler : Recycler
        Holds the recycled sample of the rounds at temperature 1.
    state, done
        Where an earlier run was after its last whole level, and its levels so far.
    """
    infos = list(done)
    if state is None:
        state = first_state(target, size, seed, scheme)
        yield Level(state, None)
    while state.beta < 1.0:
        state, info = next_level(state, target, scheme)
        infos.append(info)
        yield Level(state, info)
    if goal == "posterior":
        yield from _rounds(state, infos, target, scheme, recycler)
        return
    at_one = next(info for info in infos if info.beta == 1.0)
    wanted = _OPTIMUM * (at_one.sd_log_density if scheme.past_one else state.initial_sd)
    while infos[-1].sd_log_density > wanted:
        state, info = next_level(state, target, scheme, cool=True)
        infos.append(info)
        yield Level(state, info)


def _rounds(
    state: State,
    infos: list[LevelInfo],
    target: Target,
    scheme: Scheme,
    recycler: Recycler,
) -> Iterator[Level]:
    """Go on at temperature 1 until the recycled sample is as large as wanted."""
    wanted = scheme.wanted_share * len(state.points)
    n_done = sum(info.beta == 1.0 for info in infos) - 1
    _catch_up(recycler, state, infos, n_done)
    for _ in range(n_done, scheme.max_rounds):
        recycler.update(state.pool)
        recycled = recycler.recycled()
        reliable = pareto_k(recycled.log_weight) < RELIABLE_K
        if reliable and recycled.effective_size >= wanted:
            return
        state, info = next_level(renew(state, recycled), target, scheme)
        yield Level(state, info)


def _catch_up(recycler: Recycler, state: State, infos: list[LevelInfo], n_rounds: int) -> None:
    """Show a new recycler the pool as it was at the beginning of each round so far.

    What it takes in depends on what it had then.
    """
    size = len(state.pool)
    sizes = []
    for info in reversed(infos[len(infos) - n_rounds :]):
        size -= info.n_sweeps * len(state.islands)
        sizes.append(size)
    for size in reversed(sizes):
        recycler.update(state.pool[:size])
        recycler.recycled()


def reached(goal: str, scheme: Scheme) -> str:
    """In words, what a run that has ended by itself has reached."""
    if goal == "posterior":
        return "temperature 1 reached"
    start = "temperature 1" if scheme.past_one else "level 0"
    return f"the log density varies less than {_OPTIMUM:g} times as much as at {start}"
