"""How long a fit will take, said before it starts if that is long."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from time import perf_counter

import numpy as np

from paims._parallel import n_threads
from paims.gp import Posterior
from paims.inference import density, reference
from paims.sampling import Scheme
from paims.sampling._sample import default_n_samples

# Evaluations of a run for each point of the population and each parameter (2.2 for Branin, 4.7
# for Friedman; 4 is the median of `python -m benchmarks.scaling`, where one run makes 12), and
# seconds that the sampler itself takes for an evaluation.
_EVALUATIONS = 4.0
OVERHEAD = 4e-5
_LONG = 60.0


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
        warnings.warn(text, LongFitWarning, stacklevel=3)
    return seconds


def _worded(seconds: float) -> str:
    for name, length in (("days", 86400.0), ("hours", 3600.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:.0f} {name}"
    return f"{seconds / 60.0:.0f} minute(s)"
