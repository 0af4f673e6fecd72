"""What is found before the work starts: data that cannot be right, and a fit that takes long."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from time import perf_counter
from typing import Any

import numpy as np

from paims._arrays import BoolArray, FloatArray
from paims._parallel import n_threads
from paims.gp import Posterior
from paims.inference import density, reference
from paims.sampling import Scheme
from paims.sampling._sample import default_n_samples

# Outputs of equal inputs may differ by this much more than a fixed nugget allows for.
_TOLERATED = 1e4
_LARGEST = 4e307
# Evaluations of a run for each point of the population and each parameter (2.2 for Branin, 4.7
# for Friedman; 4 is the median of `python -m benchmarks.scaling`, where one run makes 12), and
# seconds that the sampler itself takes for an evaluation.
_EVALUATIONS = 4.0
OVERHEAD = 4e-5
_LONG = 60.0


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless ``value`` is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}.")


def refuse_text(name: str, values: Any) -> None:
    """Raise if there are strings: numbers in quotes are more often a mistake than data."""
    try:
        array = np.asarray(values)
    except ValueError:
        return  # Ragged: the next check says so.
    if array.dtype.kind in "US" or (
        array.dtype.kind == "O" and any(isinstance(item, str | bytes) for item in array.flat)
    ):
        raise ValueError(
            f"{name} holds text where numbers are needed. Read numbers as numbers, and encode "
            "categories as numbers."
        )


def check_enough_runs(n_runs: int, n_basis: int, mean: object) -> None:
    """Raise unless n > q + 2, which the variance S2/(n - q - 2) needs."""
    if n_runs > n_basis + 2:
        return
    raise ValueError(
        f"Found n_samples={n_runs} run(s), too few: with mean={mean!r}, which has q = {n_basis} "
        f"basis functions, at least q + 3 = {n_basis + 3} are needed, and ten for each input are "
        "a good start. Add runs"
        + (" or take a smaller basis (mean='constant')." if n_basis > 1 else ".")
    )


def check_constant_columns(constant: BoolArray, names: Sequence[str]) -> None:
    """Warn of columns that never vary, raise if none does."""
    if not constant.any():
        return
    listed = ", ".join(name for name, fixed in zip(names, constant, strict=True) if fixed)
    if constant.all():
        raise ValueError(
            f"Every column of X takes one value only ({listed}): there is nothing to learn from. "
            "Give runs at different inputs."
        )
    warnings.warn(
        f"Column(s) {listed} of X take one value only. Nothing can be learnt about them, so they "
        "are left out: predictions hold for that value.",
        UserWarning,
        stacklevel=5,
    )


def check_varying_output(y: FloatArray, *, centred: bool) -> None:
    """Raise if there is nothing to emulate, or predictions could not be represented."""
    largest = float(np.abs(y).max())
    if largest > _LARGEST:
        raise ValueError(
            f"y holds numbers up to {largest:.3g}, so near the largest that a double can hold "
            f"that predictions would pass it. Give y in larger units, below {_LARGEST:g}."
        )
    if (y == y[0]).all() and (centred or y[0] == 0.0):  # their difference might overflow
        raise ValueError(
            f"y takes one value only ({y[0]:g}): there is no variation to emulate. If the "
            "simulator really is constant there, no emulator is needed."
        )


def check_repeats(X: FloatArray, y: FloatArray, nugget: float) -> None:
    """Raise if a fixed nugget cannot explain the outputs of repeated inputs.

    Parameters
    ----------
    X : (n, p) ndarray
    y : (n,) ndarray
        Standardised.
    nugget : float
    """
    _, inverse, count = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    inverse = inverse.ravel()
    if (count == 1).all():
        return
    mean = np.bincount(inverse, weights=y) / count
    scatter = float(np.sum((y - mean[inverse]) ** 2) / (len(y) - len(count)))
    repeated = np.flatnonzero(count[inverse] > 1)[0]
    first, second = np.flatnonzero(inverse == inverse[repeated])[:2]
    if nugget == 0.0:
        raise ValueError(
            f"X has repeated rows, such as {first} and {second}: with nugget=0 the correlation "
            "matrix is singular. Use nugget='estimate' or drop the repetitions."
        )
    if scatter > _TOLERATED * nugget:
        raise ValueError(
            f"Repeated rows of X, such as {first} and {second}, have different outputs (their "
            f"standard deviation is {np.sqrt(scatter):.2g} of that of y), which a nugget fixed at "
            f"{nugget:g} cannot explain. Use nugget='estimate'."
        )


class LongFitWarning(UserWarning):
    """A fit that will take more than a minute."""


def expected_evaluations(n_samples: int | None, n_params: int) -> float:
    """About how often the posterior is evaluated in a fit."""
    size = default_n_samples(n_params) if n_samples is None else n_samples
    return _EVALUATIONS * size * n_params


def seconds_per_evaluation(posterior: Posterior, scheme: str | Scheme = "default") -> float:
    """Measure a small batch, as many points as there are threads."""
    posterior = copy(posterior)  # whose counts are not those of the fit
    evaluate = density(posterior)
    size = n_threads(posterior.n_jobs)
    u = reference(posterior, scheme).sample(8 * size, np.random.default_rng(0))
    evaluate(u[:size])  # the first call may compile
    each = _timed(evaluate, u[:size]) / size
    if each * size > 0.05:
        return each
    return min(_timed(evaluate, u) for _ in range(3)) / len(u)  # the rest is other programs


def _timed(evaluate: Callable[[np.ndarray], object], u: np.ndarray) -> float:
    start = perf_counter()
    evaluate(u)
    return perf_counter() - start


def announce(
    posterior: Posterior, sizes: Sequence[int | None], scheme: str | Scheme, progress: bool
) -> float:
    """Say how long the fit will take, if that is more than a minute; return the seconds.

    With progress it is a line on standard error, otherwise a :class:`LongFitWarning`. There is
    one run of the sampler for each of the ``sizes``, its number of points.
    """
    n_evaluations = sum(expected_evaluations(size, posterior.n_params) for size in sizes)
    each = seconds_per_evaluation(posterior, scheme)
    seconds = n_evaluations * (each + OVERHEAD)
    if seconds < _LONG:
        return seconds
    advice = "Fewer n_samples take less"
    if posterior.prior.uses_information:
        advice += ", prior='jointly_robust' a good deal less"
    text = (
        f"The fit will take about {_worded(seconds)}: some {n_evaluations:.1g} evaluations of "
        f"{each * 1e3:.2g} ms. {advice}; with checkpoint='fit.h5' it can be interrupted."
    )
    if progress:
        print(text, file=sys.stderr)
    else:
        warnings.warn(text, LongFitWarning, stacklevel=5)
    return seconds


def _worded(seconds: float) -> str:
    for name, length in (("days", 86400.0), ("hours", 3600.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:.0f} {name}"
    return f"{seconds / 60.0:.0f} minute(s)"
