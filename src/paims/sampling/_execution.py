"""A run from its first level to its result: limits, interruptions, the checkpoint."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path

from paims.sampling._arguments import as_seed
from paims.sampling._assemble import assemble
from paims.sampling._calls import DensityError
from paims.sampling._checkpoint import Checkpoint
from paims.sampling._level import LevelInfo, State
from paims.sampling._pool import Recycler
from paims.sampling._progress import Progress
from paims.sampling._result import SampleResult, SamplingWarning, Status
from paims.sampling._schedule import levels, reached
from paims.sampling._settings import Plan
from paims.sampling._signals import Terminated, terminable
from paims.sampling._target import StopSampling, Target

_FAILED = Status("stopped", "the density failed")


class Run:
    """A run of a target: where it is, and what it makes of it.

    Parameters
    ----------
    target : Target
    plan : Plan
    checkpoint : Checkpoint, optional
        Begins from there.
    """

    def __init__(self, target: Target, plan: Plan, checkpoint: Checkpoint | None) -> None:
        self._target, self._plan, self._checkpoint = target, plan, checkpoint
        self._recycler = Recycler()
        self._state: State | None = None
        self._at_one: State | None = None
        self._infos: list[LevelInfo] = []
        self._seed = plan.seed
        if checkpoint is not None:
            snapshot = checkpoint.snapshot
            self._state, self._at_one = snapshot.state, snapshot.at_one
            self._infos = list(snapshot.infos)
            self._seed = checkpoint.settings["random_state"]
        if self._seed is None:
            self._seed = as_seed(None)
            if checkpoint is not None:
                checkpoint.settings["random_state"] = self._seed

    def run(self, max_levels: int, progress: bool) -> SampleResult:
        """Run until the goal is reached or something ends it, and return what there is."""
        with terminable(), Progress(progress) as bar:
            try:
                status = self._levels(max_levels, bar)
            except StopSampling as stop:
                status = Status("stopped", str(stop))
            except Terminated:
                status = Status("interrupted", "terminated by a signal")
            except KeyboardInterrupt:
                status = Status("interrupted", "interrupted from the keyboard")
            except DensityError as error:
                if self._state is not None:
                    with suppress(Exception):  # The error matters more than what there is.
                        error.result = self._result(self._state, _FAILED)
                raise
            finally:
                if self._checkpoint is not None:
                    self._checkpoint.save()
        if self._state is None:
            raise self._nothing(status)
        result = self._result(self._state, status)
        for text in result.warnings:
            warnings.warn(text, SamplingWarning, stacklevel=3)
        return result

    def _levels(self, max_levels: int, bar: Progress) -> Status:
        plan, target = self._plan, self._target
        if self._checkpoint is not None:
            self._checkpoint.start(target)
        assert self._seed is not None
        if len(self._infos) >= max_levels:
            return Status("stopped", f"max_levels={max_levels} reached")
        for level in levels(
            target,
            plan.n_samples,
            plan.goal,
            plan.scheme,
            self._seed,
            self._recycler,
            self._state,
            self._infos,
        ):
            self._take(level.state, level.info)
            if level.info is not None:
                bar.update(level.info, target.n_evaluations)
            if len(self._infos) >= max_levels:
                return Status("stopped", f"max_levels={max_levels} reached")
        return Status("converged", reached(plan.goal, plan.scheme))

    def _take(self, state: State, info: LevelInfo | None) -> None:
        self._state = state
        if info is not None:
            self._infos.append(info)
        if state.beta == 1.0:
            self._at_one = state
        if self._checkpoint is not None:
            self._checkpoint.level_done(state, self._at_one, self._infos, self._target)

    def _result(self, last: State, status: Status) -> SampleResult:
        return assemble(
            last,
            self._at_one,
            self._infos,
            self._target,
            self._plan.scheme,
            self._plan.goal,
            status,
            self._plan.names,
            self._recycler,
            "" if self._checkpoint is None else how_to_go_on(self._checkpoint.path),
        )

    def _nothing(self, status: Status) -> BaseException:
        kept = "" if self._checkpoint is None else f" {how_to_go_on(self._checkpoint.path)}"
        if status.name == "interrupted":
            return KeyboardInterrupt(f"The run was {status.reason}.{kept}")
        return ValueError(
            f"The run ended before its first points were evaluated ({status.reason}): raise the "
            f"limit or lower n_samples.{kept}"
        )


def how_to_go_on(path: Path) -> str:
    """In words, how to go on from a checkpoint."""
    return (
        f"Everything so far is in {str(path)!r}: go on with paims.resume({str(path)!r}, "
        "log_density), or with the same call again."
    )
