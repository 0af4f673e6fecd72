"""Outputs that are fitted apart: one after the other here, or each by a worker of its own."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from threadpoolctl import (  # type: ignore[import-untyped, unused-ignore]
    threadpool_limits,
)

from paims._arrays import Array, FloatArray
from paims.emulator._checks import named
from paims.emulator._execution import Execution, FitInterrupted, how_to_go_on
from paims.emulator._fit import Fit, announce_fits, fit_runs, scaled_posteriors
from paims.emulator._shared_fit import fewer_points
from paims.sampling import CheckpointError, DensityError
from paims.sampling._interruptions import Interruptions
from paims.sampling._run import ProgressLine
from paims.sampling._shipping import pickled
from paims.sampling._workers import Pool, WorkersLostError, pool_of

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

T = TypeVar("T")
Fits = Generator[tuple[int, Fit], None, None]

#: Gives what is stored of a finished process, or None; and stores one.
Finished = Callable[[int], Any]
Store = Callable[[int, "Emulator"], None]


@dataclass(frozen=True, eq=False)
class Column:
    """An output or a component, which one process of its own describes.

    Attributes
    ----------
    name : str
    y : (n,) ndarray
        NaN where a run has none.
    """

    name: str
    y: FloatArray


@dataclass(frozen=True, eq=False)
class FitApart:
    """Fit columns apart, or take what an interrupted fit has left of them.

    Attributes
    ----------
    X : (n, n_features) ndarray
    names : sequence of str
        Of the features.
    asked : Emulator
    execution_of : callable
        How to run the i-th of n fits, which has a name.
    finished, store : callable
    """

    X: FloatArray
    names: Sequence[str]
    asked: Emulator
    execution_of: Callable[[int, int, str], Execution]
    finished: Finished
    store: Store

    def __call__(self, columns: Sequence[Column]) -> tuple[Emulator, ...]:
        """An emulator of each column."""
        n = len(columns)
        made = {i: fit for i in range(n) if (fit := self.finished(i)) is not None}
        for i, fit in made.items():
            self._check(fit, columns[i])
        fits = {i: self._kept(i, n, columns[i].name, fit, new=False) for i, fit in made.items()}
        left = [i for i in range(n) if i not in fits]
        self._refuse(columns, left)
        with closing(self._fitted(columns, left)) as new:
            for i, fit in new:
                fits[i] = self._kept(i, n, columns[i].name, fit, new=True)
        return tuple(fits[i] for i in range(n))

    def _check(self, fit: Fit, column: Column) -> None:
        """Raise if a fit that was kept is not of the runs that are given now."""
        rows = ~np.isnan(column.y)
        found = fit.posterior
        here = fit.inputs.runs(self.X[rows]), fit.output.runs(column.y[rows])
        if not (np.array_equal(here[0], found.X) and np.array_equal(here[1], found.y)):
            raise CheckpointError(
                f"The checkpoint {str(self.execution_of(0, 1, '').given)!r} has a fit of "
                f"{column.name} to other runs. Give another file, or remove this one to begin "
                "anew."
            )

    def _refuse(self, columns: Sequence[Column], left: list[int]) -> None:
        """Raise what any of the fits would raise, before the first of them has taken its time."""
        runs = ColumnRuns(self.X, tuple(columns), tuple(self.names), self.asked)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in left:
                runs.put_into(scaled_posteriors, i)

    def _fitted(self, columns: Sequence[Column], left: list[int]) -> Fits:
        """Fits of the columns that are left, as soon as each is done."""
        execution = self.execution_of(0, len(columns), "all outputs")
        if execution.executor is None or len(left) < 2:
            return self._here(columns, left)
        interruptions = Interruptions()
        pool = pool_of(execution.executor, interruptions)
        if pool.of_threads:  # which share the work on one output as well, and can leave it
            pool.close()
            return self._here(columns, left)
        return self._by_workers(columns, left, execution, pool, interruptions)

    def _here(self, columns: Sequence[Column], left: list[int]) -> Fits:
        """One after the other, each with all threads, or all workers."""
        runs = ColumnRuns(self.X, tuple(columns), tuple(self.names), self.asked)
        for i in left:
            execution = self.execution_of(i, len(columns), columns[i].name)
            yield i, runs.put_into(partial(fit_runs, execution=execution), i)

    def _by_workers(
        self,
        columns: Sequence[Column],
        left: list[int],
        execution: Execution,
        pool: Pool,
        interruptions: Interruptions,
    ) -> Fits:
        """Each whole, by one worker with one thread, in the order in which they are done."""
        n, n_done = len(columns), len(columns) - len(left)
        runs = ColumnRuns(self.X, tuple(columns), tuple(self.names), _with_one_thread(self.asked))
        line = ProgressLine(execution.progress and f"{n} outputs", f"{n_done} are done")
        try:
            with interruptions, line:
                if not n_done:
                    alike = replace(execution, alike=-(-n // max(pool.n_workers, 1)))
                    runs.put_into(partial(announce_fits, execution=alike), 0)
                pieces = [np.array([i]) for i in left]
                with closing(pool.run(FitOne(runs), pieces)) as answers:
                    for turn, answer in answers:
                        yield left[turn], answer.fit(self.asked.n_jobs)
                        n_done += 1
                        line.show(f"{n_done} are done")
                interruptions.check()  # one that came while the last was stored
        except WorkersLostError as error:
            lost = ", ".join(columns[i].name for i in error.points.ravel().astype(int))
            error.args = (
                f"The workers that fitted {lost} died, or were lost, several times. More "
                "memory than a worker has is what usually ends one; outputs='shared' and "
                "fewer runs take less.",
            )
            error.advice = how_to_go_on(execution.given)
            raise
        except DensityError as error:  # a cluster without workers, or a pool that broke
            error.advice = how_to_go_on(execution.given)
            raise
        except KeyboardInterrupt:
            raise FitInterrupted.among(n_done, n, execution.given) from None
        finally:
            pool.close()

    def _kept(self, i: int, n: int, name: str, fit: Fit, *, new: bool) -> Emulator:
        one = emulator_of(self.asked, fit)
        if new:
            self.store(i, one)
        # Of a fit that is not new too: it may have been killed before it could.
        self.execution_of(i, n, name).remove_all(len(one.kernel_evidence_))
        return one


def emulator_of(asked: Emulator, fit: Fit) -> Emulator:
    """An emulator of one output with the settings and inputs of one of several."""
    one = copy(asked)
    one._forget()
    one._set_fit(fit)
    return one


@dataclass(frozen=True, eq=False)
class ColumnRuns:
    """The runs of each of several columns, and what is asked of their fits."""

    X: FloatArray
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    asked: Emulator

    def put_into(self, work: Callable[..., T], i: int) -> T:
        """Call ``work(X, y, names, asked)`` with the runs that the i-th column has."""
        column = self.columns[i]
        rows = ~np.isnan(column.y)
        n_inputs = self.X.shape[1]
        asked = fewer_points(self.asked, len(self.columns), int(rows.sum()), n_inputs)
        with named(column.name):
            return work(self.X[rows], column.y[rows], self.names, asked)


@dataclass(frozen=True, eq=False)
class FitOne:
    """Fits the column of a number, in whatever process it is called.

    What it makes is packed there: functions of the user's, such as a trend, may have no name in a
    module. Warnings go with it, from a process whose only thread it runs in: elsewhere recording
    would meddle with the warnings of others, and they are heard where they come up. There it takes
    one thread of OpenMP's, too: one that was forked would wait for ever for those that its parent
    had.
    """

    runs: ColumnRuns

    def __call__(self, piece: Array) -> Packed:
        """Fit; ``piece`` has the number only."""
        alone = threading.current_thread() is threading.main_thread()
        limit = threadpool_limits(1, user_api="openmp") if alone else nullcontext()
        recorder = warnings.catch_warnings(record=True) if alone else nullcontext()
        with limit, recorder as caught:
            if alone:
                warnings.simplefilter("always")
            fit = self.runs.put_into(
                partial(fit_runs, execution=Execution(alike=0)), int(piece[0])
            )
        said = tuple((one.category, str(one.message)) for one in caught or ())
        return Packed(pickled(fit), said)


@dataclass(frozen=True, eq=False)
class Packed:
    """A fit on its way from a worker, and the warnings that came with it."""

    content: bytes
    warnings: tuple[tuple[type[Warning], str], ...]

    def fit(self, n_jobs: int | None) -> Fit:
        """Unpack, for so many threads, and repeat the warnings here."""
        fit: Fit = pickle.loads(self.content)
        for one in fit.kernels:
            one.posterior.n_jobs = n_jobs
        for category, text in self.warnings:
            warnings.warn(text, category, stacklevel=8)
        return fit


def _with_one_thread(asked: Emulator) -> Emulator:
    """The settings for a worker."""
    one = copy(asked)
    one._forget()
    one.n_jobs, one.progress = 1, False
    return one
