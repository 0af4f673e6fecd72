"""What a fit will take, in time and memory, said within seconds and before it begins.

An evaluation is measured, with all the runs if they are few and with some of them otherwise: the
time grows with a power of their number (:func:`_growth`). How many evaluations a fit makes is
known from experience, and only here (:func:`expected_evaluations`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from time import perf_counter

import numpy as np

from paims._memory import available, demand, in_words
from paims._parallel import n_threads
from paims.gp import Posterior
from paims.inference import density, leads, points_of_a_fit, reference
from paims.sampling import Scheme
from paims.sampling._crossing import kept_after_lead
from paims.sampling._scheme import default_scheme

# Evaluations of a run for each point of the population: for each parameter on the way from the
# reference, and after a lead; gradients where the chains make Hamiltonian moves, on the way and
# after a lead, each worth so many values; and seconds that the sampler itself takes for one.
_ON_THE_WAY = 5.0
_AFTER_LEAD = 8.0
_LEAPS = (45.0, 50.0)
_GRADIENT = 2.5
_MANY_PARAMS = default_scheme().many_params
OVERHEAD = 4e-5
# Seconds from which on a fit is long, very long, and short enough to be advised.
_LONG = 60.0
VERY_LONG = 3600.0
_ADVISED = 500.0
# Runs that an evaluation is measured with at most: more would take the seconds that are forecast.
_MEASURED = 400
# Points of the sampler below which there is little to trust.
_FEWEST_SAMPLES = 500
# Matrices of all pairs of runs on each thread, without those of the information matrix.
_N_MATRICES = 3.0


#: What a forecast ends with, for those who call the library.
INTERRUPTIBLE = "With checkpoint='fit.h5' it can be interrupted."


class LongFitWarning(UserWarning):
    """A fit that will take more than a minute."""


class VeryLongFitWarning(LongFitWarning):
    """A fit that will take more than an hour."""


def expected_evaluations(
    posterior: Posterior, n_samples: int | None, scheme: str | Scheme = "default"
) -> list[tuple[Posterior, float]]:
    """About how often the posterior, and what leads to it, is evaluated in a fit.

    A gradient counts as the values that it costs. In the order in which they come.
    """
    n_params = posterior.n_params
    size = points_of_a_fit(n_params, scheme) if n_samples is None else n_samples
    ahead = [] if isinstance(scheme, str) and scheme == "paper" else leads(posterior)
    found = []
    leaping = size
    for number, one in enumerate([*ahead, posterior]):
        if n_params >= _MANY_PARAMS and one.has_gradient:
            leaping = 2 * kept_after_lead(leaping // 2, n_params) if number else leaping
            found.append((one, _GRADIENT * _LEAPS[number > 0] * leaping))
        else:
            each = _AFTER_LEAD if number else _ON_THE_WAY * n_params
            found.append((one, each * size))
    return found


def bytes_of_evaluation(posterior: Posterior, n_runs: int | None = None) -> float:
    """Memory that a fit takes at its peak: the matrices of one evaluation on each thread."""
    n = posterior.n_runs if n_runs is None else n_runs
    information = posterior.prior.uses_information
    matrices = _N_MATRICES + 0.5 * information * posterior.n_params
    return float(8.0 * n**2 * matrices * n_threads(posterior.n_jobs))


def check_memory(posterior: Posterior) -> None:
    """Raise MemoryError if a fit has no room, and say how many runs would have it."""
    needed = bytes_of_evaluation(posterior)
    fitting = posterior.n_runs * np.sqrt(available() / needed)
    advice = f"About {_round(fitting)} runs have room"
    if n_threads(posterior.n_jobs) > 1:
        advice += ", more with n_jobs=1"
    if posterior.prior.uses_information:
        advice += " or prior='jointly_robust'"
    demand(
        needed,
        f"A fit of {posterior.n_runs:,} runs",
        f"{advice}: take an even choice of the runs, they teach nearly as much.",
    )


def seconds_per_evaluation(posterior: Posterior, scheme: str | Scheme = "default") -> float:
    """Measure a small batch, as many points as there are threads."""
    measured: Posterior = copy(posterior) if posterior.n_runs <= _MEASURED else _smaller(posterior)
    growth = _growth(measured, posterior.n_runs)
    evaluate = density(measured)  # of a copy, whose counts are not those of the fit
    size = n_threads(posterior.n_jobs)
    u = reference(posterior, scheme).sample(8 * size, np.random.default_rng(0))
    evaluate(u[:size])  # the first call may compile
    once = _timed(evaluate, u[:size])
    if once < 0.05:
        return growth * min(_timed(evaluate, u) for _ in range(3)) / len(u)
    # The least of several: what is above it is other programs.
    again = [_timed(evaluate, u[:size]) for _ in range(3 if once < 1.0 else 0)]
    return growth * min([once, *again]) / size


def _growth(measured: Posterior, n_runs: int) -> float:
    """How many times longer an evaluation takes with so many runs.

    Products of matrices grow with the third power; factorisations of larger ones are the more
    efficient, so that from 400 to 2,000 runs their time grows with a power of 2.5.
    """
    return float((n_runs / measured.n_runs) ** _power(measured))


def _power(posterior: Posterior) -> float:
    """Of the number of runs, with which the time of an evaluation grows."""
    return 3.0 if posterior.prior.uses_information else 2.5


def _smaller(posterior: Posterior, prior: object = None) -> Posterior:
    """The posterior of an even choice of the runs, whose outputs do not matter for the time."""
    n = min(posterior.n_runs, _MEASURED)
    chosen = np.linspace(0, posterior.n_runs - 1, n).astype(int)
    y = np.random.default_rng(0).standard_normal(n)
    return Posterior(
        posterior.X[chosen],
        y,
        posterior.kernel,
        posterior.mean,
        posterior.prior if prior is None else prior,
        posterior.nugget,
        n_jobs=posterior.n_jobs,
    )


def _timed(evaluate: Callable[[np.ndarray], object], u: np.ndarray) -> float:
    start = perf_counter()
    evaluate(u)
    return perf_counter() - start


def announce(
    posterior: Posterior, sizes: Sequence[int | None], scheme: str | Scheme, progress: bool
) -> float:
    """Say how long the fit will take, if that is more than a minute; return the seconds.

    With progress it is a line on standard error, otherwise, and from an hour on, a
    :class:`LongFitWarning`. There is one run of the sampler for each of the ``sizes``, its number
    of points.

    Raises
    ------
    MemoryError
        If there is no room for it.
    """
    check_memory(posterior)
    seconds, each, n_evaluations = expected_seconds(posterior, sizes, scheme)
    if seconds < _LONG:
        return seconds
    memory = in_words(bytes_of_evaluation(posterior))
    text = (
        f"The fit will take about {_worded(seconds)} and {memory} of memory: some "
        f"{n_evaluations:.1g} evaluations of {each * 1e3:.2g} ms. "
        f"{_advice(posterior, seconds, sizes, scheme)} {INTERRUPTIBLE}"
    )
    if seconds >= VERY_LONG:
        warnings.warn(text, VeryLongFitWarning, stacklevel=5)
    elif not progress:
        warnings.warn(text, LongFitWarning, stacklevel=5)
    elif sys.stderr is not None:
        print(text, file=sys.stderr)
    return seconds


def expected_seconds(
    posterior: Posterior, sizes: Sequence[int | None], scheme: str | Scheme
) -> tuple[float, float, float]:
    """Seconds of all runs of the sampler, of an evaluation, and the number of these."""
    plans = [expected_evaluations(posterior, size, scheme) for size in sizes]
    seconds, each, total = 0.0, 0.0, 0.0
    for i, (one, _) in enumerate(plans[0]):
        each = seconds_per_evaluation(one, scheme)
        total = sum(plan[i][1] for plan in plans)
        seconds += total * (each + OVERHEAD)
    return seconds, each, total


def _advice(
    posterior: Posterior, seconds: float, sizes: Sequence[int | None], scheme: str | Scheme
) -> str:
    """Settings that take less; of a very long fit those that bring it below ten minutes."""
    informed = posterior.prior.uses_information
    if seconds < VERY_LONG:
        advice = "Fewer n_samples take less"
        return advice + (", prior='jointly_robust' a good deal less." if informed else ".")
    settings, power = [], _power(posterior)
    if informed and seconds > _ADVISED:
        quick = _smaller(posterior, "jointly_robust")
        if not posterior.nugget.uses_information:
            faster = seconds_per_evaluation(quick, scheme)
            faster *= _growth(quick, posterior.n_runs)
            n_values = sum(n for s in sizes for _, n in expected_evaluations(quick, s, scheme))
            if n_values * (faster + OVERHEAD) < 0.8 * seconds:
                settings.append("prior='jointly_robust'")
                power = _power(quick)
                seconds = n_values * (faster + OVERHEAD)
    if seconds > _ADVISED:
        size = min(points_of_a_fit(posterior.n_params) if s is None else s for s in sizes)
        fewer = max(_round(size * _ADVISED / seconds), _FEWEST_SAMPLES)
        if fewer < size:
            settings.append(f"n_samples={fewer}")
            seconds *= fewer / size
    if seconds > _ADVISED:
        runs = posterior.n_runs * (_ADVISED / seconds) ** (1.0 / power)
        if runs < posterior.n_basis + 3:
            return "There are no settings that would bring it below ten minutes."
        settings.append(f"an even choice of {_round(runs)} of the runs")
    return f"Less than ten minutes: {', '.join(settings)}."


def _round(value: float) -> int:
    """A number to two digits, downwards."""
    unit = 10.0 ** max(np.floor(np.log10(max(value, 1.0))) - 1.0, 0.0)
    return int(np.floor(value / unit) * unit)


def _worded(seconds: float) -> str:
    for name, length in (("days", 86400.0), ("hours", 3600.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:.0f} {name}"
    return f"{seconds / 60.0:.0f} minute(s)"
