"""Which kernel: of several, the one under which the runs are the most probable."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paims.emulator._fitting import FitInterrupted, Problem, log_evidence
from paims.gp import Kernel
from paims.gp._kernels import as_kernel
from paims.inference import sample_posterior
from paims.sampling import Scheme
from paims.sampling._sample import default_n_samples, least_n_samples

#: What "auto" stands for: infinitely, three times and twice differentiable.
AUTO = ("squared_exponential", "matern72", "matern52")

# A quarter of the points of a fit: the evidence is then known to about 0.03, and kernels differ by
# more where the choice matters.
_SHARE = 4
_LEAST = 500
_STRONG = 3.0  # difference in log evidence that is strong: odds of twenty to one
_SEED = 0  # of every comparison: the choice depends on the runs only


@dataclass(frozen=True)
class Choice:
    """A problem with the kernel that was chosen.

    Attributes
    ----------
    problem : Problem
    evidences : dict of str to float
        Log evidences of the kernels that were compared, by name; empty if there was no choice.
    """

    problem: Problem
    evidences: dict[str, float]


def candidates(kernel: str | Kernel | Sequence[str | Kernel]) -> list[Kernel]:
    """Kernels to choose from, by the estimator's argument."""
    if isinstance(kernel, str) and kernel == "auto":
        kernel = AUTO
    if isinstance(kernel, str | Kernel) or not isinstance(kernel, Sequence):
        kernel = [kernel]
    try:
        found = [as_kernel(one) for one in kernel]
    except ValueError as error:
        raise ValueError(f'{error} An emulator takes "auto", or several of them, too.') from None
    if not found:
        raise ValueError("kernel must name at least one kernel; got an empty sequence.")
    names = [label(one) for one in found]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"kernel names {twice[0]!r} twice.")
    return found


def label(kernel: Kernel) -> str:
    """Name of a kernel, with its parameters if it has any."""
    return repr(kernel) if vars(kernel) or kernel.name == Kernel.name else kernel.name


def comparison_sizes(kernels: Sequence[Kernel], n_samples: int | None, n_params: int) -> list[int]:
    """Points of the sampler for each comparison; none where there is no choice."""
    if len(kernels) == 1:
        return []
    size = default_n_samples(n_params) if n_samples is None else n_samples
    least = max(_LEAST, least_n_samples(n_params))
    return [max(min(size, least), size // _SHARE)] * len(kernels)


def choose(
    problem: Problem,
    kernels: Sequence[Kernel],
    *,
    n_samples: int | None,
    scheme: str | Scheme,
    progress: bool,
    checkpoint: str | os.PathLike[str] | None,
    checkpoint_every: float,
    executor: Any,
) -> Choice:
    """Sample the posterior under each kernel, with fewer points, and take the highest evidence.

    Parameters
    ----------
    problem : Problem
        With the first of the kernels.
    kernels : sequence of Kernel
    n_samples, scheme, progress, checkpoint_every, executor
        As in :meth:`paims.Emulator.fit`.
    checkpoint : str or path, optional
        Of the fit; each comparison has a file of its own beside it.
    """
    sizes = comparison_sizes(kernels, n_samples, problem.posterior.n_params)
    if not sizes:
        return Choice(problem, {})
    problems = [problem.with_kernel(kernel) for kernel in kernels]
    evidences: dict[str, float] = {}
    for i, (kernel, one, size) in enumerate(zip(kernels, problems, sizes, strict=True)):
        result = sample_posterior(
            one.posterior,
            size,
            scheme=scheme,
            random_state=_SEED,
            n_jobs=one.posterior.n_jobs,
            progress=progress,
            checkpoint=None if checkpoint is None else checkpoint_of(checkpoint, i),
            checkpoint_every=checkpoint_every,
            executor=executor,
        )
        if result.status.name == "interrupted":
            raise FitInterrupted.of(result, checkpoint)
        evidences[label(kernel)] = log_evidence(one, result)
        if progress:
            print(f"{label(kernel)}: log evidence {evidences[label(kernel)]:.2f}", file=sys.stderr)
    best = int(np.argmax(list(evidences.values())))
    return Choice(problems[best], evidences)


def in_words(evidences: dict[str, float]) -> str:
    """Kernels and their log evidences, the chosen one first, and whether the runs are sure."""
    ranked = sorted(evidences.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in ranked)
    decided = ranked[0][1] - ranked[1][1] >= _STRONG
    return listed if decided else f"{listed}; the runs hardly tell the first two apart"


def checkpoint_of(checkpoint: str | os.PathLike[str], i: int) -> Path:
    """File of the i-th comparison beside the checkpoint of a fit."""
    path = Path(checkpoint)
    return path.with_name(f"{path.stem}.kernel{i + 1}{path.suffix}")


def remove_checkpoints(checkpoint: str | os.PathLike[str] | None, n_kernels: int) -> None:
    """Remove the files of the comparisons, which a finished fit has no use for."""
    if checkpoint is not None and n_kernels > 1:
        for i in range(n_kernels):
            checkpoint_of(checkpoint, i).unlink(missing_ok=True)
