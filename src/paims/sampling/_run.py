"""Sample a density: the functions that users call."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from paims.sampling._arguments import (
    as_n_samples,
    as_names,
    as_scheme,
    as_seed,
    as_target,
    check_goal,
    check_on_error,
    check_positive,
)
from paims.sampling._calls import LogDensity
from paims.sampling._checkpoint import open_checkpoint
from paims.sampling._execution import Run
from paims.sampling._pool import Recycler
from paims.sampling._references import Reference
from paims.sampling._result import SampleResult
from paims.sampling._schedule import Level, levels
from paims.sampling._scheme import Scheme
from paims.sampling._settings import Plan, as_settings
from paims.sampling.executors import evaluating

__all__ = ["Level", "anneal", "sample"]


def anneal(
    log_density: LogDensity | None = None,
    reference: Reference | None = None,
    n_samples: int | None = None,
    *,
    goal: str = "posterior",
    scheme: str | Scheme = "default",
    log_likelihood: LogDensity | None = None,
    prior: Reference | None = None,
    vectorized: bool = True,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Iterator[Level]:
    """Step through the annealing by hand.

    Parameters are those of :func:`sample`. The first item is level 0, the draws from the
    reference; the last is the one that reaches the goal.

    Examples
    --------
    >>> import numpy as np, paims
    >>> density = lambda x: -0.5 * np.sum((x / 0.1) ** 2, axis=1)
    >>> box = paims.Uniform([-2, -2], [2, 2])
    >>> for level in paims.anneal(density, box, n_samples=500, random_state=1):
    ...     pass
    >>> level.state.beta
    1.0
    """
    target = as_target(log_density, reference, log_likelihood, prior, vectorized)
    chosen = as_scheme(scheme, n_jobs)
    check_goal(goal)
    size = as_n_samples(n_samples, target)
    return levels(target, size, goal, chosen, as_seed(random_state), Recycler())


def sample(
    log_density: LogDensity | None = None,
    reference: Reference | None = None,
    n_samples: int | None = None,
    *,
    goal: str = "posterior",
    scheme: str | Scheme = "default",
    log_likelihood: LogDensity | None = None,
    prior: Reference | None = None,
    names: Sequence[str] | None = None,
    vectorized: bool = True,
    random_state: Any = None,
    n_jobs: int | None = None,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    max_levels: int = 500,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    executor: Any = None,
    on_error: str = "raise",
    batch_timeout: float | None = None,
) -> SampleResult:
    """Sample a density, all its modes with their masses, and its evidence.

    Parameters
    ----------
    log_density : callable
        Log of the density, not necessarily normalised: takes a batch ``(m, n_params)`` and returns
        ``(m,)``. -inf and NaN mean zero. The value at a point must not depend on the batch that
        it comes in: batches are split as it suits (see ``executor`` and ``checkpoint``).
    reference : Reference
        Where the annealing starts: a normalised distribution that covers the density, such as
        :class:`Uniform`, :class:`SoftUniform`, :class:`Normal`, :class:`Product`, or any object
        with ``sample(n, rng)`` and ``log_density(x)``. The density is taken as zero outside its
        support. Its tails must be at least as heavy as the density's: what it hardly ever draws
        is hardly ever found.
    n_samples : int, optional
        Points at each level; by default max(2000, 300 n_params).
    goal : {"posterior", "optimum"}
        Stop at temperature 1, or go on towards 0 until the standard deviation of the log density
        is a tenth of what it was at temperature 1 (with the paper's scheme: at level 0): nearly
        optimal points.
    scheme : {"default", "paper"} or Scheme
        The paper's own choices, or those that measurement favours.
    log_likelihood, prior : callable and Reference
        The engineers' form, in place of ``log_density`` and ``reference``: the density is prior
        times likelihood and the annealing starts at the prior.
    names : sequence of str, optional
        Names of the parameters.
    vectorized : bool
        False for a function of a single point ``(n_params,)`` that returns a number.
    random_state : int, Generator or None
        Same value, same draws, to the bit, for any ``n_jobs``.
    n_jobs : int, optional
        Threads of the sampler's own sums; None for all cores.
    max_evaluations, max_seconds : optional
        The run ends before the batch that would pass the limit, with what it has. Evaluations
        are counted from the beginning of the run, seconds from this call.
    max_levels : int
        Most annealing levels.
    progress : bool
        Show progress, when standard error is a terminal.
    checkpoint : str or path, optional
        File that the run is written to after each level. If it is there and holds the same run,
        the run goes on from it and ends with the same draws, to the bit; so does
        :func:`paims.resume`. A file of another run is refused. ``random_state=None`` takes that
        of the file. A density may have an attribute ``description``, a dictionary of strings and
        numbers such as hashes of its data, which has to be the same too.
    checkpoint_every : float
        Seconds after which the file is written inside a level too.
    executor : optional
        Where the density is evaluated; by default in this process. A
        ``concurrent.futures.Executor`` (threads, processes, MPI); a function that makes one, such
        as ``lambda: ProcessPoolExecutor(4)``, which is called again when a worker has died; a
        ``joblib.Parallel``; or a ``distributed.Client`` of a Dask cluster. Batches are split by
        what a point is seen to cost. The draws are the same to the bit for every choice.
    on_error : {"raise", "reject"}
        What to do if the density raises an exception: end the run with a
        :class:`~paims.sampling.DensityError` that says where it did, or count the point as zero
        density.
    batch_timeout : float, optional
        Seconds after which a batch of points that has not returned ends the run, with a
        :class:`~paims.sampling.DensityError` that has the points.

    Returns
    -------
    SampleResult
        ``status`` says whether the goal was reached. Ctrl-C and SIGTERM (unless the program
        handles it) end the run too, within one batch, with what it has.

    Examples
    --------
    >>> import numpy as np, paims
    >>> def log_density(x):
    ...     left = -0.5 * np.sum((x + 0.5) ** 2, axis=1) / 0.01
    ...     right = -0.5 * np.sum((x - 0.5) ** 2, axis=1) / 0.01
    ...     return np.logaddexp(left + np.log(0.1), right + np.log(0.9))
    >>> result = paims.sample(log_density, paims.Uniform([-2, -2], [2, 2]), random_state=0)
    >>> [round(mode.mass, 1) for mode in result.modes()]
    [0.9, 0.1]
    """
    target = as_target(log_density, reference, log_likelihood, prior, vectorized)
    check_positive(
        max_evaluations=max_evaluations,
        max_seconds=max_seconds,
        max_levels=max_levels,
        checkpoint_every=checkpoint_every,
        batch_timeout=batch_timeout,
    )
    check_on_error(on_error)
    target.limit(max_evaluations, max_seconds, on_error)
    chosen = as_scheme(scheme, n_jobs)
    check_goal(goal)
    plan = Plan(
        as_n_samples(n_samples, target),
        goal,
        chosen,
        as_names(names, target),
        None if random_state is None else as_seed(random_state),
    )
    opened = None
    if checkpoint is not None:
        settings = as_settings(plan, target)
        opened = open_checkpoint(Path(checkpoint), checkpoint_every, settings, n_jobs)
    every = None if opened is None else checkpoint_every
    with evaluating(executor, every, batch_timeout) as target.evaluator:
        return Run(target, plan, opened).run(max_levels, progress)
