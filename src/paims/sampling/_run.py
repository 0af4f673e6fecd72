"""A run from its first level to its result: which level comes next, limits, interruptions."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

from paims._names import shortened, visible
from paims._parallel import n_threads
from paims.sampling._assembly import assemble
from paims.sampling._checkpoint import Checkpoint
from paims.sampling._crossing import cross_over
from paims.sampling._density import DensityError
from paims.sampling._interruptions import Interruptions, Terminated
from paims.sampling._level import (
    TooFewAliveError,
    find_missed,
    first_state,
    next_level,
    renew,
)
from paims.sampling._recycling import recycle
from paims.sampling._result import SampleResult, SamplingWarning, Status
from paims.sampling._scheme import Plan, Scheme
from paims.sampling._state import LevelInfo, Progress, State
from paims.sampling._target import Limits, Points, StopSampling, Target
from paims.sampling._workers import evaluating

_OPTIMUM = 0.1  # alpha of the stopping rule (paper, eq. stopping_rule)
_FAILED = Status("stopped", "the density failed")


@dataclass(frozen=True)
class Execution:
    """How a run is carried out; parameters as in :func:`paims.sample`. No draw depends on it."""

    n_jobs: int | None = None
    max_evaluations: int | None = None
    max_seconds: float | None = None
    max_levels: int = 500
    progress: bool | str = True
    checkpoint_every: float = 60.0
    executor: Any = None
    on_error: str = "raise"
    batch_timeout: float | None = None

    def __post_init__(self) -> None:
        for name in (
            "max_evaluations", "max_seconds", "max_levels", "checkpoint_every", "batch_timeout",
        ):  # fmt: skip
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise ValueError(f"{name} must be positive; got {limit!r}.")
        n_threads(self.n_jobs)  # refuses a bad value
        if self.on_error not in ("raise", "reject"):
            raise ValueError(f'on_error must be "raise" or "reject"; got {self.on_error!r}.')

    def limits(self) -> Limits:
        """Limits of a run that begins now."""
        seconds = self.max_seconds
        return Limits(self.max_evaluations, None if seconds is None else monotonic() + seconds)


@dataclass(frozen=True)
class Level:
    """A level of :func:`anneal`: the state that it ended in and what happened."""

    state: State
    info: LevelInfo | None


def run(
    target: Target,
    plan: Plan,
    execution: Execution,
    checkpoint: Checkpoint | None = None,
    start: Points | None = None,
) -> SampleResult:
    """Run until the goal is reached or something ends it, and return what there is.

    ``start`` is a population of temperature 1 to begin with, in place of the annealing.
    """
    progress = Progress() if checkpoint is None else checkpoint.progress
    every = None if checkpoint is None else execution.checkpoint_every
    go_on = "" if checkpoint is None else _how_to_go_on(checkpoint.path)
    with (
        Interruptions() as interruptions,
        evaluating(execution.executor, every, execution.batch_timeout, interruptions) as evaluator,
        ProgressLine(execution.progress) as line,
    ):
        target = replace(
            target,
            evaluator=evaluator,
            limits=execution.limits(),
            recorder=checkpoint,
            counts=progress.counts,
            circles=target.circles if progress.state is None else progress.state.circles,
            leg=target.first_leg if progress.state is None else progress.state.leg,
        )
        status = Status("converged", _reached(plan))
        try:
            steps = _steps(target, plan, progress, checkpoint, execution.max_levels, start)
            for progress in steps:
                line.update(progress)
                interruptions.check()
            interruptions.check()
        except StopSampling as stop:
            status = Status("stopped", str(stop))
        except KeyboardInterrupt as interruption:
            status = _interrupted(interruption)
        except DensityError as error:
            if progress.state is not None:
                with suppress(Exception):  # The error matters more than what there is.
                    error.result = assemble(progress, plan, target, _FAILED, go_on)
            error.advice = go_on
            raise
        finally:
            if checkpoint is not None:
                checkpoint.save()
        if progress.state is None:
            raise _nothing(status, go_on)
        result = assemble(progress, plan, target, status, go_on)
    if interruptions.arrived is not None:
        result = replace(result, status=_interrupted(interruptions.arrived))
    for text in result.warnings:
        warnings.warn(text, SamplingWarning, stacklevel=3)
    return result


def _steps(
    target: Target,
    plan: Plan,
    progress: Progress,
    checkpoint: Checkpoint | None,
    max_levels: int,
    start: Points | None,
) -> Iterator[Progress]:
    """Progress after each level, which is on the disk by then."""
    if checkpoint is not None:
        checkpoint.start(target)
    _check_levels(progress, max_levels)
    try:
        for level in levels(target, plan, progress, start):
            progress = progress.after(level.state, level.info, target.counts)
            if checkpoint is not None:
                checkpoint.level_done(progress)
            yield progress
            _check_levels(progress, max_levels)
    except TooFewAliveError:
        if checkpoint is not None:  # It would only be in the way of better settings.
            checkpoint.discard()
        raise


def _check_levels(progress: Progress, max_levels: int) -> None:
    if len(progress.infos) >= max_levels:
        raise StopSampling(f"max_levels={max_levels} reached")


def levels(
    target: Target, plan: Plan, progress: Progress, start: Points | None = None
) -> Iterator[Level]:
    """Run levels until the goal is reached: down to temperature 1, and on as the goal asks."""
    state, infos, scheme = progress.state, list(progress.infos), plan.scheme
    if state is None:
        state = _begun(target, plan)
        yield Level(state, None)
    while state.leg[1] != 0:
        if state.beta < 1.0:
            state, info = next_level(state, target, scheme)
            infos.append(info)
            yield Level(state, info)
            continue
        if state.search is None and scheme.search_share > 0.0:
            state = find_missed(state, target, scheme)
            yield Level(state, None)
        state = _crossed(state, target, plan)
        yield Level(state, None)
    if start is not None:
        state = replace(state, beta=1.0, points=target.laid_out(start))
        state, info = next_level(state, target, scheme)
        infos.append(info)
        yield Level(state, info)
    while state.beta < 1.0:
        state, info = next_level(state, target, scheme)
        infos.append(info)
        yield Level(state, info)
    at_end = [info for info in infos if info.beta == 1.0 and info.leg == 0]
    if plan.goal == "posterior":
        yield from _rounds(state, at_end, target, scheme)
        return
    at_one = at_end[0]
    wanted = _OPTIMUM * (at_one.sd_log_density if scheme.past_one else state.initial_sd)
    while infos[-1].sd_log_density > wanted:
        state, info = next_level(state, target, scheme, cool=True)
        infos.append(info)
        yield Level(state, info)


def _begun(target: Target, plan: Plan) -> State:
    """Level 0; without the leads if the first of them is zero nearly everywhere."""
    try:
        return first_state(target, plan.n_samples, plan.seed, plan.scheme)
    except TooFewAliveError as nothing:
        if not target.leads:
            raise
        note = f"{nothing}".split(";", maxsplit=1)[0]
    return _without_leads(target, plan, f"{note.replace('The density', 'The lead')}")


def _crossed(state: State, target: Target, plan: Plan) -> State:
    """Points of the next leg, or the run begun anew if the next density is zero there."""
    try:
        return cross_over(state, target, plan.scheme)
    except TooFewAliveError as nothing:
        found = str(nothing)
        if found.startswith("The density"):
            found = "The density is zero at nearly all points that the lead has led to"
        return _without_leads(target, plan, found)


def _without_leads(target: Target, plan: Plan, why: str) -> State:
    target.leg = (None, 0)
    begun = first_state(target, plan.n_samples, plan.seed, plan.scheme)
    return replace(begun, lead_note=why)


def _rounds(
    state: State, done: list[LevelInfo], target: Target, scheme: Scheme
) -> Iterator[Level]:
    """Go on at temperature 1 until the recycled sample is as large as wanted, and whole.

    Chains of Hamiltonian moves make one more round: no mixture covers the density, and their
    states are the sample.
    """
    if state.search is None and scheme.search_share > 0.0:
        state = find_missed(state, target, scheme)
        yield Level(state, None)
    wanted = scheme.wanted_share * len(state.points)
    last = done[-1]
    for number in range(len(done) - 1, scheme.max_rounds):
        if last.n_leaps:
            if number >= 1:
                return
            state, last = next_level(state, target, scheme)
            yield Level(state, last)
            continue
        recycled = recycle(state.pool)
        if recycled.settled(wanted):
            return
        start = state if recycled.reliable else renew(state, recycled)
        state, last = next_level(start, target, scheme)
        yield Level(state, last)


def _reached(plan: Plan) -> str:
    """In words, what a run that has ended by itself has reached."""
    if plan.goal == "posterior":
        return "temperature 1 reached"
    start = "temperature 1" if plan.scheme.past_one else "level 0"
    return f"the log density varies less than {_OPTIMUM:g} times as much as at {start}"


def _how_to_go_on(path: Path) -> str:
    return (
        f"Everything so far is in {str(path)!r}: go on with paims.resume({str(path)!r}, "
        "log_density), or with the same call again."
    )


def _nothing(status: Status, go_on: str) -> BaseException:
    """Build the error of a run that ended before level 0."""
    kept = f" {go_on}" if go_on else ""
    if status.name == "interrupted":
        return KeyboardInterrupt(f"The run was {status.reason}.{kept}")
    return ValueError(
        f"The run ended before its first points were evaluated ({status.reason}): raise the "
        f"limit or lower n_samples.{kept}"
    )


def _interrupted(interruption: KeyboardInterrupt) -> Status:
    if isinstance(interruption, Terminated):
        return Status("interrupted", "terminated by a signal")
    return Status("interrupted", "interrupted from the keyboard")


class ProgressLine:
    """One line on the terminal while a run goes on; silent off a terminal.

    Parameters
    ----------
    wanted : bool or str
        A text is what the line begins with.
    first : str
        What it says until there is news.
    """

    def __init__(
        self, wanted: bool | str, first: str = "level 0: drawing from the reference"
    ) -> None:
        self._first = first
        self._wanted = bool(wanted) and sys.stderr is not None and sys.stderr.isatty()
        self._begin = f"{shortened(visible(wanted), 40)}: " if isinstance(wanted, str) else ""
        self._status: Any = None
        self._start = monotonic()

    def __enter__(self) -> ProgressLine:
        if self._wanted:
            from rich.console import Console  # noqa: PLC0415 - only when there is a terminal

            self._status = Console(stderr=True).status(self._line(self._first))
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def update(self, progress: Progress) -> None:
        """Show level, temperature, effective size, acceptance and speed."""
        if self._status is None or not progress.infos:
            return
        info, counts = progress.infos[-1], progress.counts
        n_evaluations = counts.n_evaluations + counts.n_lead
        speed = n_evaluations / max(monotonic() - self._start, 1e-9)
        self.show(
            f"level {info.level}{_of_leg(info)}: beta {info.beta:.3g}, effective size "
            f"{info.effective_size:.0f}, {_accepted(info)}, {n_evaluations} evaluations, "
            f"{speed:.0f}/s"
        )

    def show(self, text: str) -> None:
        """Show a text after what the line begins with."""
        if self._status is not None:
            self._status.update(self._line(text))

    def _line(self, text: str) -> Any:
        """A text of rich's, to which a name is no markup."""
        from rich.text import Text  # noqa: PLC0415 - only when there is a terminal

        return Text(self._begin + text)


def _of_leg(info: LevelInfo) -> str:
    return "" if info.leg == 0 else " (lead)"


def _accepted(info: LevelInfo) -> str:
    if info.n_leaps:
        return f"accepted {info.second_acceptance:.0%} of the Hamiltonian moves"
    return (
        f"accepted {info.local_acceptance * info.global_acceptance:.0%} globally and "
        f"{info.second_acceptance:.0%} in the second stage"
    )
