"""Sample a density: the functions that users call, and the checks of what they pass."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paims._arrays import Array
from paims._parallel import n_threads
from paims.sampling._checkpoint import (
    Checkpoint,
    CheckpointError,
    open_checkpoint,
    read_checkpoint,
    whole_path,
)
from paims.sampling._density import Density, LogDensity
from paims.sampling._lock import only_run
from paims.sampling._periodic import as_circles
from paims.sampling._references import as_reference
from paims.sampling._result import Derived, SampleResult, SamplingWarning, derive
from paims.sampling._run import Execution, Level, levels, run
from paims.sampling._scheme import (
    Plan,
    Scheme,
    as_settings,
    default_scheme,
    paper_scheme,
    plan_of,
    stored_reference,
)
from paims.sampling._state import Progress
from paims.sampling._target import Target

# Cheap densities, and what gives values with their gradients.
Lead = LogDensity | Sequence[LogDensity] | None
Gradient = Callable[[Array], Any]


def anneal(
    log_density: LogDensity | None = None,
    reference: Any = None,
    n_samples: int | None = None,
    *,
    goal: str = "posterior",
    scheme: str | Scheme = "default",
    log_likelihood: LogDensity | None = None,
    prior: Any = None,
    lead: Lead = None,
    gradient: Gradient | None = None,
    search: bool | float = True,
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
    target, names = as_target(log_density, reference, log_likelihood, prior, vectorized)
    target = with_leads(target, lead, gradient)
    how = as_scheme(scheme, n_jobs, search)
    plan = as_plan(target, n_samples, goal, how, names, random_state)
    return levels(target, plan, Progress())


def sample(
    log_density: LogDensity | None = None,
    reference: Any = None,
    n_samples: int | None = None,
    *,
    goal: str = "posterior",
    scheme: str | Scheme = "default",
    log_likelihood: LogDensity | None = None,
    prior: Any = None,
    lead: Lead = None,
    gradient: Gradient | None = None,
    names: Sequence[str] | None = None,
    periodic: Sequence[str | int] | None = None,
    derived: Derived | None = None,
    search: bool | float = True,
    vectorized: bool = True,
    random_state: Any = None,
    n_jobs: int | None = None,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    max_levels: int = 500,
    progress: bool | str = True,
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
    reference : Reference, or SciPy distributions
        Where the annealing starts: a normalised distribution that covers the density, such as
        :class:`Uniform`, :class:`SoftUniform`, :class:`Normal`, :class:`Product`, or any object
        with ``sample(n, rng)`` and ``log_density(x)``. Or a frozen SciPy distribution for each
        parameter, in a list, or in a dictionary by name: ``{"a": stats.norm(0, 1), "b":
        stats.uniform(0, 2)}``, from which the names are taken. The density is taken as zero
        outside its support. Its tails must be at least as heavy as the density's: what it hardly
        ever draws is hardly ever found.
    n_samples : int, optional
        Points at each level; by default max(2000, 300 n_params).
    goal : {"posterior", "optimum"}
        Stop at temperature 1, or go on towards 0 until the standard deviation of the log density
        is a tenth of what it was at temperature 1 (with the paper's scheme: at level 0): nearly
        optimal points.
    scheme : {"default", "paper"} or Scheme
        The paper's own choices, or those that measurement favours.
    log_likelihood, prior : callable, and as ``reference``
        The engineers' form, in place of ``log_density`` and ``reference``: the density is prior
        times likelihood and the annealing starts at the prior. The result has the two apart.
    lead : callable or sequence of them, optional
        Cheap approximations of ``log_density`` (or of ``log_likelihood``), called as it is: the
        annealing goes over these first, the cheapest first, and from the last one to the density
        itself. The result is exact whatever they are; what it costs depends on them. They have to
        be positive wherever the density is. One that raises, or is NaN, counts as zero there.
    gradient : callable, optional
        Takes what ``log_density`` takes and returns its values ``(m,)`` and their gradients
        ``(m, n_params)``. By default an attribute ``value_and_gradient`` of the density, and of
        each lead, is used if there is one. In many dimensions, where mixtures of the points no
        longer cover the density, the chains then make Hamiltonian moves. A gradient that
        disagrees with differences of the values is refused.
    names : sequence of str, optional
        Names of the parameters; by default those of the dictionary, or x1, x2, ...
    periodic : sequence of str or int, optional
        Names or numbers of parameters that wrap round, such as angles. The reference of each has
        to be uniform over exactly one period. The circle is cut open where the density at the
        first points is lowest, and sampled as an interval.
    derived : callable, optional
        Takes a batch ``(m, n_params)`` and returns a dictionary of names to ``(m,)`` arrays. It
        is called for the draws of the result, at the end; see ``SampleResult.derived``.
    search : bool or float
        Whether to search for missed modes at temperature 1, or the share of further evaluations
        to spend on it. True for the scheme's own share; the paper's scheme has none.
    vectorized : bool
        False for a function of a single point ``(n_params,)`` that returns a number (and for
        ``derived``, a dictionary of names to numbers).
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
        Show progress, when standard error is a terminal; a text is what the line begins with.
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
    execution = Execution(
        n_jobs=n_jobs,
        max_evaluations=max_evaluations,
        max_seconds=max_seconds,
        max_levels=max_levels,
        progress=progress,
        checkpoint_every=checkpoint_every,
        executor=executor,
        on_error=on_error,
        batch_timeout=batch_timeout,
    )
    target, of_prior = as_target(
        log_density, reference, log_likelihood, prior, vectorized, on_error
    )
    target = with_leads(target, lead, gradient)
    how = as_scheme(scheme, n_jobs, search)
    names = of_prior if names is None else names
    plan = as_plan(target, n_samples, goal, how, names, random_state)
    circles = as_circles(periodic, plan.names, target.reference)
    if circles is not None:
        target, plan = replace(target, circles=circles), replace(plan, periodic=circles.index)
    if derived is not None:  # what is wrong with it is found out before the run
        first = target.reference.sample(2, np.random.default_rng(0))
        derive(derived, np.asarray(first, dtype=float), plan.names, vectorized)
    if checkpoint is None:
        return with_derived(run(target, plan, execution), derived, vectorized)
    path = whole_path(checkpoint)
    with only_run(path):
        opened = open_checkpoint(
            path,
            checkpoint_every,
            as_settings(plan, target),
            any_seed=random_state is None,
            n_jobs=n_jobs,
        )
        plan = replace(plan, seed=opened.settings["random_state"])
        result = run(target, plan, execution, opened)
    return with_derived(result, derived, vectorized)


def with_derived(result: SampleResult, derived: Derived | None, vectorized: bool) -> SampleResult:
    """Result with its derived quantities; a run is not lost because of them."""
    if derived is None:
        return result
    if result.origin is not None:
        result = replace(result, origin=replace(result.origin, derived=derived))
    try:
        return result.with_derived(derived, vectorized)
    except Exception as error:
        warnings.warn(
            f"derived raised {type(error).__name__}: {error}. The result is without derived "
            "quantities; correct the function and call result.with_derived(function).",
            SamplingWarning,
            stacklevel=3,
        )
        return result


def resume(
    path: str | os.PathLike[str],
    log_density: LogDensity,
    *,
    reference: Any = None,
    lead: Lead = None,
    gradient: Gradient | None = None,
    derived: Derived | None = None,
    n_jobs: int | None = None,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    max_levels: int = 500,
    progress: bool | str = True,
    checkpoint_every: float = 60.0,
    executor: Any = None,
    on_error: str = "raise",
    batch_timeout: float | None = None,
) -> SampleResult:
    """Go on with a run of :func:`paims.sample` from its checkpoint.

    The result is that of a run that was never interrupted, to the bit. The file goes on being
    written; that of a finished run gives its result again.

    Parameters
    ----------
    path : str or path
        File that was passed to :func:`paims.sample` as ``checkpoint``.
    log_density : callable
        The density that the run began with (or its log likelihood, if it began with a likelihood
        and a prior): functions are not stored. It is compared with two stored values.
    reference : Reference, optional
        Needed if the run began with a reference, or prior, that is not
        :class:`~paims.Uniform`, :class:`~paims.SoftUniform` or :class:`~paims.Normal`.
    lead, gradient, derived : callable, optional
        As in :func:`paims.sample`; functions are not stored.
    n_jobs, max_evaluations, max_seconds, max_levels, progress
        As in :func:`paims.sample`.
    checkpoint_every, executor, on_error, batch_timeout
        As there too. None of these need be as it was when the run began.

    Returns
    -------
    SampleResult

    Raises
    ------
    CheckpointError
        If the file is no checkpoint, is damaged, or is of another version, density or reference.

    Examples
    --------
    >>> import numpy as np, paims, tempfile, warnings
    >>> density = lambda x: -0.5 * np.sum((x / 0.1) ** 2, axis=1)
    >>> box = paims.Uniform([-2, -2], [2, 2])
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", paims.SamplingWarning)
    ...     path = f"{folder}/run.h5"
    ...     part = paims.sample(density, box, 500, random_state=1, max_levels=2, checkpoint=path)
    ...     whole = paims.resume(path, density)
    >>> part.status.name, whole.status.name
    ('stopped', 'converged')
    """
    execution = Execution(
        n_jobs=n_jobs,
        max_evaluations=max_evaluations,
        max_seconds=max_seconds,
        max_levels=max_levels,
        progress=progress,
        checkpoint_every=checkpoint_every,
        executor=executor,
        on_error=on_error,
        batch_timeout=batch_timeout,
    )
    path = whole_path(path)
    with only_run(path):
        opened = read_checkpoint(path, checkpoint_every, n_jobs)
        target, plan = _of_checkpoint(opened, log_density, reference, on_error, n_jobs)
        target = with_leads(target, lead, gradient)
        if len(target.leads) != len(opened.settings["leads"]):
            raise CheckpointError(
                f"The run in {str(path)!r} has {len(opened.settings['leads'])} lead(s); got "
                f"{len(target.leads)}. Pass those that it began with, paims.resume(path, "
                "log_density, lead=...)."
            )
        result = run(target, plan, execution, opened)
    return with_derived(result, derived, opened.settings["vectorized"])


def _of_checkpoint(
    opened: Checkpoint,
    log_density: LogDensity,
    reference: Any,
    on_error: str,
    n_jobs: int | None,
) -> tuple[Target, Plan]:
    """Density and plan of the run that a checkpoint is of."""
    settings = opened.settings
    where = stored_reference(settings) if reference is None else reference
    if where is None:
        raise CheckpointError(
            f"The run in {str(opened.path)!r} began with a reference of class "
            f"{settings['reference']['class']}, which files cannot hold: pass it again, "
            "paims.resume(path, log_density, reference=...)."
        )
    vectorized = settings["vectorized"]
    if settings["times_reference"]:
        target, _ = as_target(None, None, log_density, where, vectorized, on_error)
    else:
        target, _ = as_target(log_density, where, None, None, vectorized, on_error)
    plan = plan_of(settings, n_jobs)
    target = replace(target, circles=as_circles(plan.periodic, plan.names, target.reference))
    return target, plan


def as_plan(
    target: Target,
    n_samples: int | None,
    goal: str,
    scheme: Scheme,
    names: Sequence[str] | None,
    random_state: Any,
) -> Plan:
    """What the run is asked for; without a random state the seed is a new one."""
    if goal not in ("posterior", "optimum"):
        raise ValueError(f'goal must be "posterior" or "optimum"; got {goal!r}.')
    n_params = _n_params(target)
    return Plan(
        as_n_samples(n_samples, n_params),
        goal,
        scheme,
        as_names(names, n_params),
        as_seed(random_state),
    )


def _n_params(target: Target) -> int:
    n_params = getattr(target.reference, "n_params", None)
    if n_params is None:
        n_params = np.shape(target.reference.sample(1, np.random.default_rng(0)))[-1]
    return int(n_params)


def default_n_samples(n_params: int) -> int:
    """Points at each level, if no number is asked for."""
    return max(2000, 300 * n_params)


def least_n_samples(n_params: int) -> int:
    """Fewest points at each level."""
    return 20 * (n_params + 1)


def as_n_samples(n_samples: int | None, n_params: int) -> int:
    """Points at each level."""
    if n_samples is None:
        return default_n_samples(n_params)
    least = least_n_samples(n_params)
    if not isinstance(n_samples, (int, np.integer)) or n_samples < least:
        raise ValueError(
            f"n_samples must be an integer of at least {least} for {n_params} parameters; "
            f"got {n_samples!r}."
        )
    return int(n_samples)


def as_names(names: Sequence[str] | None, n_params: int) -> tuple[str, ...]:
    """Names of the parameters."""
    if names is None:
        return tuple(f"x{i + 1}" for i in range(n_params))
    if isinstance(names, str) or len(names) != n_params:
        raise ValueError(
            f"names must have one entry for each of {n_params} parameters; got {names!r}."
        )
    return tuple(str(name) for name in names)


def as_target(
    log_density: LogDensity | None,
    reference: Any,
    log_likelihood: LogDensity | None,
    prior: Any,
    vectorized: bool,
    on_error: str = "raise",
) -> tuple[Target, tuple[str, ...] | None]:
    """The density in either form, and the names of the parameters if the reference has them."""
    if log_likelihood is not None or prior is not None:
        if log_density is not None or reference is not None:
            raise TypeError(
                "Give either log_density and reference, or log_likelihood and prior; not both."
            )
        if log_likelihood is None or prior is None:
            raise TypeError("log_likelihood and prior go together; one of them is missing.")
        _callable(log_likelihood, "log_likelihood")
        density = Density(log_likelihood, vectorized, on_error)
        where, names = as_reference(prior, "prior")
        return Target(density, where, times_reference=True), names
    if log_density is None or reference is None:
        raise TypeError(
            "sample needs log_density and reference (or log_likelihood and prior); got "
            f"log_density={log_density!r}, reference={reference!r}."
        )
    _callable(log_density, "log_density")
    where, names = as_reference(reference, "reference")
    return Target(Density(log_density, vectorized, on_error), where), names


def with_leads(target: Target, lead: Lead, gradient: Gradient | None) -> Target:
    """Target with its gradient, and the cheap densities that lead to it."""
    density = target.density
    if gradient is not None:
        _callable(gradient, "gradient")
    else:
        gradient = getattr(density.log_density, "value_and_gradient", None)
    given = [] if lead is None else [lead] if callable(lead) else list(lead)
    for function in given:
        _callable(function, "lead")
    leads = tuple(
        Density(
            function,
            density.vectorized,
            "reject",
            getattr(function, "value_and_gradient", None),
        )
        for function in given
    )
    target = replace(target, density=replace(density, gradient=gradient), leads=leads)
    target.leg = target.first_leg
    for place in range(-len(leads), 1):
        check_gradient(target, place)
    return target


def check_gradient(target: Target, place: int) -> None:
    """Compare a gradient with central differences at draws of the reference."""
    density = target.density_of(place)
    if density.gradient is None:
        return
    theta = np.asarray(target.reference.sample(8, np.random.default_rng(0)), dtype=float)
    sloped = replace(density, sloped=True, on_error="reject")
    values = sloped(theta).values
    good = np.flatnonzero(np.isfinite(values[:, 0]))
    if not len(good):
        return  # nothing to compare; a run that has no more than this says so
    # The most curved points are the hardest for differences: the flattest of them will do.
    row = good[np.argmin(np.abs(values[good, 1:]).max(axis=1))]
    point, slope = theta[row], values[row, 1:]
    what = "The gradient of log_density" if place == 0 else "The gradient of the lead"
    step = 1e-4 * np.maximum(np.abs(theta - theta.mean(axis=0)).mean(axis=0), 1e-12)
    steps = np.concatenate([k * np.diag(step) for k in (-2.0, -1.0, 1.0, 2.0)])
    around = replace(density, on_error="reject")(point + steps).values.reshape(4, -1)
    fine, coarse = (around[2] - around[1]) / (2 * step), (around[3] - around[0]) / (4 * step)
    difference = (4.0 * fine - coarse) / 3.0
    noise = 1e-10 * np.maximum(np.abs(around).max(axis=0), 1.0) / step
    doubt = 10.0 * np.abs(fine - coarse) + noise + 1e-4 * (np.abs(slope).max() + 1.0)
    off = np.flatnonzero(np.abs(difference - slope) > doubt)
    if off.size:
        i = int(off[0])
        raise ValueError(
            f"{what} is wrong in coordinate {i}: at {point.tolist()} it is {slope[i]:.6g}, where "
            f"differences of the values give {difference[i]:.6g}. Correct it, or leave it out."
        )


def _callable(function: Any, what: str) -> None:
    if not callable(function):
        raise TypeError(f"{what} must be a function of a batch (m, n_params); got {function!r}.")


def as_scheme(scheme: str | Scheme, n_jobs: int | None, search: bool | float = True) -> Scheme:
    """A scheme, by its name or as it is, with the search that is asked for."""
    n_threads(n_jobs)  # refuses a bad value before any work
    if not isinstance(scheme, Scheme):
        makers = {"default": default_scheme, "paper": paper_scheme}
        if scheme not in makers:
            raise ValueError(f'scheme must be "default" or "paper"; got {scheme!r}.')
        scheme = makers[scheme](n_jobs)
    if search is True:
        return scheme
    if not isinstance(search, bool | int | float) or not 0.0 <= search < np.inf:
        raise ValueError(
            "search must be True, False, or the share of evaluations to spend on it, such as "
            f"0.1; got {search!r}."
        )
    return replace(scheme, search_share=float(search))


def as_seed(random_state: Any) -> int:
    """One integer that names all random streams of the run."""
    if isinstance(random_state, (int, np.integer)):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative; got {random_state}.")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int.from_bytes(random_state.bytes(16), "little")
    if random_state is not None and not isinstance(random_state, np.random.Generator):
        raise TypeError(
            "random_state must be an integer, a numpy Generator or RandomState, or None; got "
            f"{random_state!r}."
        )
    return int.from_bytes(np.random.default_rng(random_state).bytes(16), "little")
