"""The run: levels one after another until the goal is reached."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from paims._parallel import n_threads
from paims.sampling.assemble import assemble
from paims.sampling.level import LevelInfo, State, first_state, next_level, renew
from paims.sampling.pareto import RELIABLE_K, pareto_k
from paims.sampling.pool import Recycler
from paims.sampling.progress import Progress
from paims.sampling.references import Reference
from paims.sampling.result import SampleResult, SamplingWarning, Status
from paims.sampling.scheme import Scheme, default_scheme, paper_scheme
from paims.sampling.target import LogDensity, StopSampling, Target

_OPTIMUM = 0.1  # alpha of the stopping rule (paper, eq. stopping_rule)


@dataclass(frozen=True)
class Level:
    """A level of :func:`anneal`: the state that it ended in and what happened."""

    state: State
    info: LevelInfo | None


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
    target = _target(log_density, reference, log_likelihood, prior, vectorized)
    chosen = _scheme(scheme, n_jobs)
    _check_goal(goal)
    size = _n_samples(n_samples, target)
    return _levels(target, size, goal, chosen, _seed(random_state), Recycler())


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
) -> SampleResult:
    """Sample a density, all its modes with their masses, and its evidence.

    Parameters
    ----------
    log_density : callable
        Log of the density, not necessarily normalised: takes a batch ``(m, n_params)`` and returns
        ``(m,)``. -inf and NaN mean zero.
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
        The run ends before the batch that would pass the limit, with what it has.
    max_levels : int
        Most annealing levels.
    progress : bool
        Show progress, when standard error is a terminal.

    Returns
    -------
    SampleResult

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
    target = _target(log_density, reference, log_likelihood, prior, vectorized)
    for name, limit in (
        ("max_evaluations", max_evaluations),
        ("max_seconds", max_seconds),
        ("max_levels", max_levels),
    ):
        if limit is not None and limit <= 0:
            raise ValueError(f"{name} must be positive; got {limit!r}.")
    target.max_evaluations = max_evaluations
    target.deadline = None if max_seconds is None else monotonic() + max_seconds
    chosen = _scheme(scheme, n_jobs)
    _check_goal(goal)
    size, labels, seed = _n_samples(n_samples, target), _names(names, target), _seed(random_state)
    level: Level | None = None
    recycler = Recycler()
    infos: list[LevelInfo] = []
    at_one: State | None = None
    status = Status("stopped", f"max_levels={max_levels} reached")
    with Progress(progress) as bar:
        try:
            for level in _levels(target, size, goal, chosen, seed, recycler):
                if level.info is not None:
                    infos.append(level.info)
                    bar.update(level.info, target.n_evaluations)
                if level.state.beta == 1.0:
                    at_one = level.state
                if len(infos) >= max_levels:
                    break
            else:
                status = Status("converged", _reached(goal, chosen))
        except StopSampling as stop:
            status = Status("stopped", str(stop))
        except KeyboardInterrupt:
            status = Status("interrupted", "interrupted from the keyboard")
    if level is None:
        if status.name == "interrupted":
            raise KeyboardInterrupt
        raise ValueError(
            f"The run ended before its first points were evaluated ({status.reason}): raise the "
            "limit or lower n_samples."
        )
    result = assemble(level.state, at_one, infos, target, chosen, goal, status, labels, recycler)
    for text in result.warnings:
        warnings.warn(text, SamplingWarning, stacklevel=2)
    return result


def _levels(
    target: Target,
    size: int,
    goal: str,
    scheme: Scheme,
    seed: int,
    recycler: Recycler,
) -> Iterator[Level]:
    state = first_state(target, size, seed, scheme)
    yield Level(state, None)
    while state.beta < 1.0:
        state, info = next_level(state, target, scheme)
        yield Level(state, info)
    if goal == "posterior":
        yield from _rounds(state, target, scheme, recycler)
        return
    wanted = _OPTIMUM * (info.sd_log_density if scheme.past_one else state.initial_sd)
    while info.sd_log_density > wanted:
        state, info = next_level(state, target, scheme, cool=True)
        yield Level(state, info)


def _rounds(state: State, target: Target, scheme: Scheme, recycler: Recycler) -> Iterator[Level]:
    """Go on at temperature 1 until the recycled sample is as large as wanted."""
    wanted = scheme.wanted_share * len(state.points)
    for _ in range(scheme.max_rounds):
        recycler.update(state.pool)
        recycled = recycler.recycled()
        reliable = pareto_k(recycled.log_weight) < RELIABLE_K
        if reliable and recycled.effective_size >= wanted:
            return
        state, info = next_level(renew(state, recycled), target, scheme)
        yield Level(state, info)


def _reached(goal: str, scheme: Scheme) -> str:
    if goal == "posterior":
        return "temperature 1 reached"
    start = "temperature 1" if scheme.past_one else "level 0"
    return f"the log density varies less than {_OPTIMUM:g} times as much as at {start}"


def _n_params(target: Target) -> int:
    n_params = getattr(target.reference, "n_params", None)
    if n_params is None:
        n_params = np.shape(target.reference.sample(1, np.random.default_rng(0)))[-1]
    return int(n_params)


def _n_samples(n_samples: int | None, target: Target) -> int:
    n_params = _n_params(target)
    if n_samples is None:
        return max(2000, 300 * n_params)
    least = 20 * (n_params + 1)
    if not isinstance(n_samples, (int, np.integer)) or n_samples < least:
        raise ValueError(
            f"n_samples must be an integer of at least {least} for {n_params} parameters; "
            f"got {n_samples!r}."
        )
    return int(n_samples)


def _names(names: Sequence[str] | None, target: Target) -> tuple[str, ...]:
    n_params = _n_params(target)
    if names is None:
        return tuple(f"x{i + 1}" for i in range(n_params))
    if isinstance(names, str) or len(names) != n_params:
        raise ValueError(
            f"names must have one entry for each of {n_params} parameters; got {names!r}."
        )
    return tuple(str(name) for name in names)


def _target(
    log_density: LogDensity | None,
    reference: Reference | None,
    log_likelihood: LogDensity | None,
    prior: Reference | None,
    vectorized: bool,
) -> Target:
    if log_likelihood is not None or prior is not None:
        if log_density is not None or reference is not None:
            raise TypeError(
                "Give either log_density and reference, or log_likelihood and prior; not both."
            )
        if log_likelihood is None or prior is None:
            raise TypeError("log_likelihood and prior go together; one of them is missing.")
        _callable(log_likelihood, "log_likelihood")
        return Target(log_likelihood, _reference(prior, "prior"), vectorized, times_reference=True)
    if log_density is None or reference is None:
        raise TypeError(
            "sample needs log_density and reference (or log_likelihood and prior); got "
            f"log_density={log_density!r}, reference={reference!r}."
        )
    _callable(log_density, "log_density")
    return Target(log_density, _reference(reference, "reference"), vectorized)


def _callable(function: Any, what: str) -> None:
    if not callable(function):
        raise TypeError(f"{what} must be a function of a batch (m, n_params); got {function!r}.")


def _reference(reference: Any, what: str) -> Reference:
    if isinstance(reference, type) or not isinstance(reference, Reference):
        raise TypeError(
            f"{what} must have sample(n, rng) and log_density(x), such as paims.Uniform(lower, "
            f"upper); got {reference!r}."
        )
    return reference


def _scheme(scheme: str | Scheme, n_jobs: int | None) -> Scheme:
    n_threads(n_jobs)  # refuses a bad value before any work
    if isinstance(scheme, Scheme):
        return scheme
    makers = {"default": default_scheme, "paper": paper_scheme}
    if scheme not in makers:
        raise ValueError(f'scheme must be "default" or "paper"; got {scheme!r}.')
    return makers[scheme](n_jobs)


def _check_goal(goal: str) -> None:
    if goal not in ("posterior", "optimum"):
        raise ValueError(f'goal must be "posterior" or "optimum"; got {goal!r}.')


def _seed(random_state: Any) -> int:
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
