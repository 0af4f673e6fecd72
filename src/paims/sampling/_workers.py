"""Where the density is evaluated: in this process, or by workers behind an executor.

All workers are behind a ``concurrent.futures.Executor``: the user's own (threads, processes, MPI
by ``mpi4py.futures.MPIPoolExecutor``), one that a function of the user's makes, that of a Dask
client, or ``joblib.Parallel`` in the form of one. Values are put back in the order of the points,
so draws do not depend on the choice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from math import ceil
from time import monotonic
from typing import Any, TypeVar

import numpy as np

from paims._arrays import Array
from paims._parallel import n_threads
from paims.sampling._cluster import Cluster
from paims.sampling._density import Answer, Density, DensityError, listed
from paims.sampling._interruptions import Interruptions
from paims.sampling._shipping import (
    Shipment,
    evaluate_shipped,
    keyboard_held,
    tied_to_this_process,
)
from paims.sampling._target import Evaluator

T = TypeVar("T")
Function = Callable[[Array], T]

_FIRST = 32  # points by which the cost of a point is measured in this process
_PIECES = 4  # for each worker, so that none waits long for the last
_SECONDS = 0.05  # that a piece should take at least, to be worth its way
_MAX_DEATHS = 3  # workers that a piece may take down
_POLL = 0.1  # seconds between two looks for an interruption


@contextmanager
def evaluating(
    executor: Any,
    every: float | None,
    batch_timeout: float | None,
    interruptions: Interruptions | None = None,
) -> Iterator[Evaluator]:
    """What evaluates the density, for the length of a run.

    Parameters
    ----------
    executor : None, Executor, callable, joblib.Parallel or distributed.Client
    every : float, optional
        Seconds after which values should be at hand to be saved.
    batch_timeout : float, optional
        Seconds after which a batch is given up.
    interruptions : Interruptions, optional
        Of the run.
    """
    interruptions = interruptions or Interruptions()
    if executor is None:
        yield InThisProcess(every, batch_timeout, interruptions)
        return
    pool = pool_of(executor, interruptions, batch_timeout)
    try:
        yield Workers(pool, every, batch_timeout)
    finally:
        pool.close()


def pool_of(
    executor: Any, interruptions: Interruptions, batch_timeout: float | None = None
) -> Pool:
    """The workers behind what a user calls an executor."""
    if isinstance(executor, Executor):
        return Pool(executor, interruptions)
    # By name: neither package need be installed, nor imported, to find out.
    packages = {cls.__module__.split(".")[0] for cls in type(executor).__mro__}
    if "distributed" in packages and hasattr(executor, "get_executor"):
        cluster = Cluster(executor)
        return Pool(cluster.executor(), interruptions, cluster=cluster)
    if "joblib" in packages and hasattr(executor, "n_jobs"):
        if batch_timeout is not None:
            raise ValueError(
                "batch_timeout cannot be kept with joblib: pass "
                f"joblib.Parallel(..., timeout={batch_timeout:g}) in its place."
            )
        return Pool(JoblibExecutor(executor), interruptions)
    if callable(executor) and not isinstance(executor, type):
        return Pool(_made(executor), interruptions, factory=executor)
    raise TypeError(
        "executor must be None, a concurrent.futures.Executor, a function that makes one such as "
        "lambda: ProcessPoolExecutor(4), a joblib.Parallel or a distributed.Client; got "
        f"{executor!r}."
    )


def _made(factory: Callable[[], Any]) -> Executor:
    made = factory()
    if not isinstance(made, Executor):
        raise TypeError(
            "executor is a function: it must return a concurrent.futures.Executor; "
            f"it returned {made!r}."
        )
    return tied_to_this_process(made)


@dataclass
class _Cost:
    """What the points of one density have taken so far."""

    seconds: float = 0.0
    n_points: int = 0

    @property
    def of_a_point(self) -> float:
        """Seconds."""
        return self.seconds / self.n_points

    def include(self, seconds: float, n_points: int) -> None:
        """Take in a piece."""
        self.seconds += seconds
        self.n_points += n_points


def _cost_of(density: Density, costs: dict[int, _Cost]) -> _Cost:
    """Costs of a density; a lead and its target, or a value and a gradient, cost differently."""
    return costs.setdefault(hash((id(density.log_density), density.sloped)), _Cost())


class InThisProcess:
    """Calls the density here, in pieces that take no longer than it takes to want them saved.

    Parameters
    ----------
    every : float, optional
        Seconds that a piece may take; None for one call for each batch.
    timeout : float, optional
        Seconds after which a batch is given up.
    interruptions : Interruptions, optional
        Of the run: they are raised in the density.
    """

    def __init__(
        self,
        every: float | None = None,
        timeout: float | None = None,
        interruptions: Interruptions | None = None,
    ) -> None:
        self._every, self._timeout = every, timeout
        self._interruptions = interruptions or Interruptions()
        self._costs: dict[int, _Cost] = {}

    def __call__(
        self, density: Density, theta: Array
    ) -> Generator[tuple[Array, Answer], None, None]:
        """Evaluate a batch; give rows with their values."""
        end = None if self._timeout is None else monotonic() + self._timeout
        start = 0
        cost = _cost_of(density, self._costs)
        while start < len(theta):
            rows = np.arange(start, start + self._size(len(theta) - start, cost))
            piece = theta[rows]
            if end is None:
                answer = self._interruptions.let_into(density, piece)
            else:
                answer = self._timed(density, piece, end)
            cost.include(answer.seconds, len(rows))
            start += len(rows)
            yield rows, answer

    def _size(self, n_left: int, cost: _Cost) -> int:
        if self._every is None:
            return n_left
        if cost.n_points < _FIRST:
            return min(_FIRST, n_left)
        return max(1, int(min(self._every / max(cost.of_a_point, 1e-12), n_left)))

    def _timed(self, density: Density, theta: Array, end: float) -> Answer:
        """Call in a thread of its own, which is left behind if it does not return."""
        outcome: list[Answer | BaseException] = []

        def work() -> None:
            try:
                outcome.append(density(theta))
            except BaseException as error:
                outcome.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while thread.is_alive() and monotonic() < end:
            self._interruptions.check()
            thread.join(min(_POLL, max(0.0, end - monotonic())))
        if not outcome:
            raise _timed_out(theta, self._timeout)
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]


class Workers:
    """Evaluates batches by a pool of workers, in pieces sized by what a point costs.

    Parameters
    ----------
    pool : Pool
    every : float, optional
        Seconds that a piece may take.
    timeout : float, optional
        Seconds after which a batch is given up.
    """

    def __init__(self, pool: Pool, every: float | None, timeout: float | None) -> None:
        self._pool, self._every, self._timeout = pool, every, timeout
        self._costs: dict[int, _Cost] = {}

    def __call__(
        self, density: Density, theta: Array
    ) -> Generator[tuple[Array, Answer], None, None]:
        """Evaluate a batch; give rows with their values as they come."""
        cost = _cost_of(density, self._costs)
        n = len(theta)
        parts = np.array_split(np.arange(n), ceil(n / self._size(n, cost)))
        pieces = [theta[part] for part in parts]
        with closing(self._pool.run(density, pieces, self._timeout)) as answers:
            for i, answer in answers:
                cost.include(answer.seconds, len(parts[i]))
                yield parts[i], answer

    def _size(self, n: int, cost: _Cost) -> int:
        """Points in a piece."""
        workers = max(1, self._pool.n_workers)
        size = ceil(n / (_PIECES * workers))
        if cost.n_points:
            each = max(cost.of_a_point, 1e-9)
            size = min(max(size, ceil(_SECONDS / each)), ceil(n / workers))
            if self._every is not None:
                size = min(size, max(1, int(self._every / each)))
        return size


class Pool:
    """Workers behind an executor.

    Parameters
    ----------
    executor : Executor
        The user's, who also shuts it down, unless there is a factory.
    interruptions : Interruptions, optional
        Of the run: they are taken while the workers work, never inside the executor's own code.
    factory : callable, optional
        Makes the executor again when a worker has died.
    cluster : Cluster, optional
        That the executor is of.
    """

    def __init__(
        self,
        executor: Executor,
        interruptions: Interruptions | None = None,
        factory: Callable[[], Executor] | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self._executor, self._factory, self._cluster = executor, factory, cluster
        self._interruptions = interruptions or Interruptions()
        self._shipment: Shipment | None = None
        self._left_behind = False

    @property
    def of_threads(self) -> bool:
        """Whether the workers are threads of this process."""
        return isinstance(self._executor, ThreadPoolExecutor)

    @property
    def n_workers(self) -> int:
        """Workers of the executor, or cores of this machine if it does not say."""
        if self._cluster is not None:
            return self._cluster.n_workers()
        for name in ("_max_workers", "num_workers"):  # Python's own, that of MPI
            if getattr(self._executor, name, None):
                return int(getattr(self._executor, name))
        return n_threads(None)

    def run(
        self, function: Function[T], pieces: list[Array], timeout: float | None = None
    ) -> Generator[tuple[int, T], None, None]:
        """Call a density, or another function, for each piece; give each answer with its number.

        As soon as it is there.
        """
        end = None if timeout is None else monotonic() + timeout
        try:
            yield from with_retries(
                pieces, lambda group: self._once(function, pieces, group, end), self._renew
            )
        except _TimedOut as late:
            if isinstance(self._executor, JoblibExecutor):
                timeout = self._executor.timeout
            raise _timed_out(np.concatenate([pieces[i] for i in late.pieces]), timeout) from None

    def close(self) -> None:
        """Shut down an executor that was made here, at once if it works on what nobody wants."""
        if self._factory is not None:
            if self._left_behind:
                self._kill_workers()
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _once(
        self, function: Function[T], pieces: list[Array], group: list[int], end: float | None
    ) -> Iterator[tuple[int, T]]:
        if self._cluster is not None:
            self._cluster.wait_for_workers(self._interruptions.check)
        futures: dict[Future[Any], int] = {}
        try:
            for i in group:
                futures[self._submit(function, pieces[i], False)] = i
            while futures:
                if isinstance(self._executor, JoblibExecutor):
                    self._interruptions.let_into(self._executor.run_submitted)
                # What is there first, then what was lost.
                for future in sorted(self._done(futures, end), key=_failed):
                    answer = self._answer(future, pieces[futures[future]], futures)
                    i = futures.pop(future)
                    if answer is None:
                        futures[self._submit(function, pieces[i], True)] = i
                    else:
                        yield i, answer
        finally:
            for future in futures:
                self._left_behind |= not (future.cancel() or future.done())

    def _done(self, futures: dict[Future[Any], int], end: float | None) -> set[Future[Any]]:
        """Tasks that are done, as soon as there are any."""
        while True:
            self._interruptions.check()
            left = _POLL if end is None else min(_POLL, max(0.0, end - monotonic()))
            done, _ = wait(futures, timeout=left, return_when=FIRST_COMPLETED)
            if done:
                return done
            if end is not None and monotonic() >= end:
                self._kill_workers()
                raise _TimedOut(list(futures.values()))
            if self._cluster is not None:
                self._cluster.look(self._interruptions.check)

    def _answer(self, future: Future[Any], piece: Array, futures: dict[Future[Any], int]) -> Any:
        """What a task gave; None if its worker does not have the function."""
        try:
            answer = future.result()
        except TimeoutError:  # of joblib
            raise _TimedOut(list(futures.values())) from None
        except (KeyboardInterrupt, SystemExit):  # of the worker, and not of the run
            raise CancelledError from None
        except Exception as error:
            if type(error).__name__ == "KilledWorker":  # of Dask
                raise _killed(piece, "as many workers as the scheduler allows") from None
            if self._cluster is not None and not self._cluster.n_workers():
                raise CancelledError from None
            raise
        return answer

    def _submit(self, function: Function[T], piece: Array, whole: bool) -> Future[Any]:
        if self.of_threads:
            return self._executor.submit(function, piece)
        if self._shipment is None or self._shipment.function is not function:
            self._shipment = Shipment(function)
        content = self._shipment.content if whole else None
        # Only workers that were made here let go of what is held.
        ours = self._factory is not None and isinstance(self._executor, ProcessPoolExecutor)
        try:
            with keyboard_held() if ours else nullcontext():
                return self._executor.submit(evaluate_shipped, self._shipment.name, content, piece)
        except Exception:
            if self._cluster is not None and not self._cluster.n_workers():
                raise CancelledError from None
            raise

    def _renew(self) -> None:
        """Replace an executor that a dead worker has broken."""
        if isinstance(self._executor, JoblibExecutor):
            return  # joblib itself replaces dead workers
        if self._factory is None:
            raise DensityError.at(
                np.empty((0, 0)),
                "A worker process died, and the executor that you passed cannot be used again. "
                "Pass a function that makes one, such as executor=lambda: ProcessPoolExecutor(4): "
                "its workers are replaced when they die.",
            ) from None
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = _made(self._factory)

    def _kill_workers(self) -> None:
        """End the processes of an executor that was made here, one of which does not return.

        Python waits for them when it ends, so nothing else would let it.
        """
        if self._factory is not None:
            for process in list((getattr(self._executor, "_processes", None) or {}).values()):
                process.kill()


class _TimedOut(Exception):
    """Pieces that were not there in time."""

    def __init__(self, pieces: list[int]) -> None:
        self.pieces = pieces


def _failed(future: Future[Any]) -> bool:
    return future.cancelled() or future.exception() is not None


class JoblibExecutor(Executor):
    """``joblib.Parallel``, with any of its backends, in the form of an executor.

    It takes all its tasks at once: they wait until :meth:`run_submitted`.

    Parameters
    ----------
    parallel : joblib.Parallel
    """

    def __init__(self, parallel: Any) -> None:
        from joblib import effective_n_jobs  # noqa: PLC0415 - only for those who use it

        self._parallel = parallel
        self._max_workers = int(effective_n_jobs(parallel.n_jobs))
        self._submitted: list[tuple[Future[Any], Any]] = []
        self.timeout = parallel.timeout

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Take a task; see :class:`concurrent.futures.Executor`."""
        from joblib import delayed  # noqa: PLC0415 - only for those who use it

        future: Future[Any] = Future()
        self._submitted.append((future, delayed(fn)(*args, **kwargs)))
        return future

    def run_submitted(self) -> None:
        """Run the tasks that wait, to their end."""
        submitted, self._submitted = self._submitted, []
        if not submitted:
            return
        try:
            answers = list(self._parallel([task for _, task in submitted]))
        except Exception as error:
            for future, _ in submitted:
                future.set_exception(error)
            return
        for (future, _), answer in zip(submitted, answers, strict=True):
            future.set_result(answer)


def with_retries(
    pieces: list[Array],
    run: Callable[[list[int]], Iterator[tuple[int, T]]],
    renew: Callable[[], None],
) -> Generator[tuple[int, T], None, None]:
    """Evaluate pieces until all are there.

    A pool that breaks does not say which piece broke it. All that were missing go into the next
    pool; after that one has broken too they go one at a time, and the one that is alone when a
    third worker dies is reported.

    Parameters
    ----------
    pieces : list of ndarray
    run : callable
        Evaluates the pieces of some numbers; raises BrokenExecutor when a worker dies, and
        CancelledError when a cluster has lost a piece.
    renew : callable
        Makes a broken pool usable again, or raises if that cannot be done.
    """
    todo = list(range(len(pieces)))
    deaths = [0] * len(pieces)
    while todo:
        alone = max(deaths[i] for i in todo) >= _MAX_DEATHS - 1
        group = todo[:1] if alone else list(todo)
        try:
            for i, answer in run(group):
                todo.remove(i)
                yield i, answer
        except (BrokenExecutor, CancelledError) as error:
            broken = isinstance(error, BrokenExecutor)
            for i in group:
                deaths[i] += i in todo
            for i in group:
                if i in todo and deaths[i] >= _MAX_DEATHS:
                    how = f"{_MAX_DEATHS} workers"
                    raise (_killed(pieces[i], how) if broken else _lost(pieces[i])) from None
            if broken:
                renew()


class WorkersLostError(DensityError):
    """Pieces whose workers died, or that a cluster has lost, again and again."""


def _killed(points: Array, workers: str) -> WorkersLostError:
    """Build the error of points that take their workers down."""
    return WorkersLostError.at(
        points,
        f"{workers} died while evaluating the same {len(points)} point(s): {listed(points)}. "
        "Evaluate log_density there by hand: a crash of compiled code, or more memory than a "
        "worker has, are what usually ends a process.",
    )


def _lost(points: Array) -> WorkersLostError:
    return WorkersLostError.at(
        points,
        f"{len(points)} point(s) were lost by the workers {_MAX_DEATHS} times: {listed(points)}. "
        "See whether the workers, and the scheduler if there is one, are running; log_density "
        "must not end its process (sys.exit).",
    )


def _timed_out(points: Array, timeout: float | None) -> DensityError:
    """Build the error of a batch that did not come back in time."""
    return DensityError.at(
        points,
        f"log_density did not return within batch_timeout={timeout:g} seconds for "
        f"{len(points)} point(s): {listed(points)}. Call it there by hand to see why; return "
        "-inf where it cannot be evaluated, or raise batch_timeout.",
    )
