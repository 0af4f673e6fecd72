"""From what a user passes as ``executor`` to what evaluates the density."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from paims.sampling._inside import InThisProcess
from paims.sampling._target import Evaluator
from paims.sampling.executors._dask import DaskPool
from paims.sampling.executors._futures import FuturesPool
from paims.sampling.executors._joblib import JoblibPool
from paims.sampling.executors._pooled import Pool, Pooled


@contextmanager
def evaluating(
    executor: Any, every: float | None, batch_timeout: float | None
) -> Iterator[Evaluator]:
    """What evaluates the density, for the length of a run.

    Parameters
    ----------
    executor : None, Executor, callable, joblib.Parallel or distributed.Client
    every : float, optional
        Seconds after which values should be at hand to be saved.
    batch_timeout : float, optional
        Seconds after which a batch is given up.
    """
    if executor is None:
        yield InThisProcess(every, batch_timeout)
        return
    pool = _pool(executor, batch_timeout)
    try:
        yield Pooled(pool, every, batch_timeout)
    finally:
        pool.close()


def _pool(executor: Any, batch_timeout: float | None) -> Pool:
    if isinstance(executor, Executor):
        return FuturesPool(executor)
    # By name: neither package need be installed, nor imported, to find out.
    packages = {cls.__module__.split(".")[0] for cls in type(executor).__mro__}
    if "distributed" in packages and hasattr(executor, "scatter"):
        return DaskPool(executor)
    if "joblib" in packages and hasattr(executor, "n_jobs"):
        if batch_timeout is not None:
            raise ValueError(
                "batch_timeout cannot be kept with joblib: pass "
                f"joblib.Parallel(..., timeout={batch_timeout:g}) in its place."
            )
        return JoblibPool(executor)
    if callable(executor) and not isinstance(executor, type):
        return FuturesPool(None, executor)
    raise TypeError(
        "executor must be None, a concurrent.futures.Executor, a function that makes one such as "
        "lambda: ProcessPoolExecutor(4), a joblib.Parallel or a distributed.Client; got "
        f"{executor!r}."
    )
