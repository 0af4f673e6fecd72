"""Go on with a run from its checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from paims._parallel import n_threads
from paims.sampling._arguments import as_target, check_on_error, check_positive
from paims.sampling._calls import LogDensity
from paims.sampling._checkpoint import Checkpoint, CheckpointError, read_checkpoint
from paims.sampling._execution import Run
from paims.sampling._references import Reference
from paims.sampling._result import SampleResult
from paims.sampling._settings import plan_of, stored_reference
from paims.sampling.executors import evaluating


def resume(
    path: str | os.PathLike[str],
    log_density: LogDensity,
    *,
    reference: Reference | None = None,
    n_jobs: int | None = None,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    max_levels: int = 500,
    progress: bool = True,
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
    check_positive(
        max_evaluations=max_evaluations,
        max_seconds=max_seconds,
        max_levels=max_levels,
        checkpoint_every=checkpoint_every,
        batch_timeout=batch_timeout,
    )
    check_on_error(on_error)
    n_threads(n_jobs)  # refuses a bad value before any work
    settings, snapshot = read_checkpoint(Path(path), n_jobs)
    where = stored_reference(settings) if reference is None else reference
    if where is None:
        raise CheckpointError(
            f"The run in {str(Path(path))!r} began with a reference of class "
            f"{settings['reference']['class']}, which files cannot hold: pass it again, "
            "paims.resume(path, log_density, reference=...)."
        )
    if settings["times_reference"]:
        target = as_target(None, None, log_density, where, settings["vectorized"])
    else:
        target = as_target(log_density, where, None, None, settings["vectorized"])
    target.limit(max_evaluations, max_seconds, on_error)
    checkpoint = Checkpoint(Path(path), checkpoint_every, settings, snapshot)
    with evaluating(executor, checkpoint_every, batch_timeout) as target.evaluator:
        return Run(target, plan_of(settings, n_jobs), checkpoint).run(max_levels, progress)
