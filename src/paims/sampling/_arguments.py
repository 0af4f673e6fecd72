"""What a user may pass to the sampler, checked before any work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paims._parallel import n_threads
from paims.sampling._calls import LogDensity
from paims.sampling._references import Reference
from paims.sampling._scheme import Scheme, default_scheme, paper_scheme
from paims.sampling._target import Target


def check_positive(**limits: float | None) -> None:
    """Refuse limits that are not positive; None is no limit."""
    for name, limit in limits.items():
        if limit is not None and not limit > 0:
            raise ValueError(f"{name} must be positive; got {limit!r}.")


def check_on_error(on_error: str) -> None:
    """Refuse an unknown treatment of exceptions."""
    if on_error not in ("raise", "reject"):
        raise ValueError(f'on_error must be "raise" or "reject"; got {on_error!r}.')


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


def as_n_samples(n_samples: int | None, target: Target) -> int:
    """Points at each level."""
    n_params = _n_params(target)
    if n_samples is None:
        return default_n_samples(n_params)
    least = least_n_samples(n_params)
    if not isinstance(n_samples, (int, np.integer)) or n_samples < least:
        raise ValueError(
            f"n_samples must be an integer of at least {least} for {n_params} parameters; "
            f"got {n_samples!r}."
        )
    return int(n_samples)


def as_names(names: Sequence[str] | None, target: Target) -> tuple[str, ...]:
    """Names of the parameters."""
    n_params = _n_params(target)
    if names is None:
        return tuple(f"x{i + 1}" for i in range(n_params))
    if isinstance(names, str) or len(names) != n_params:
        raise ValueError(
            f"names must have one entry for each of {n_params} parameters; got {names!r}."
        )
    return tuple(str(name) for name in names)


def as_target(
    log_density: LogDensity | None,
    reference: Reference | None,
    log_likelihood: LogDensity | None,
    prior: Reference | None,
    vectorized: bool,
) -> Target:
    """The density in either form."""
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


def as_scheme(scheme: str | Scheme, n_jobs: int | None) -> Scheme:
    """A scheme, by its name or as it is."""
    n_threads(n_jobs)  # refuses a bad value before any work
    if isinstance(scheme, Scheme):
        return scheme
    makers = {"default": default_scheme, "paper": paper_scheme}
    if scheme not in makers:
        raise ValueError(f'scheme must be "default" or "paper"; got {scheme!r}.')
    return makers[scheme](n_jobs)


def check_goal(goal: str) -> None:
    """Refuse an unknown goal."""
    if goal not in ("posterior", "optimum"):
        raise ValueError(f'goal must be "posterior" or "optimum"; got {goal!r}.')


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
