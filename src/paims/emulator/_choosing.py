"""Which kernel: of several, the one under which the runs are the most probable."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from paims.emulator._execution import Execution
from paims.emulator._scaling import OutputScaling
from paims.gp import Kernel, Posterior
from paims.gp._kernels import as_kernel
from paims.inference import density
from paims.sampling import CheckpointError, SampleResult
from paims.sampling._checkpoint import _differences, read_checkpoint
from paims.sampling._sample import as_scheme, default_n_samples, least_n_samples

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

#: What "auto" stands for: infinitely, three times and twice differentiable.
AUTO = ("squared_exponential", "matern72", "matern52")

# A quarter of the points of a fit: the evidence is then known to about 0.03, and kernels differ by
# more where the choice matters.
_SHARE = 4
_LEAST = 500
_STRONG = 3.0  # difference in log evidence that is strong: odds of twenty to one
_SEED = 0  # of every comparison: the choice depends on the runs only


def candidates(kernel: str | Kernel | Sequence[str | Kernel]) -> tuple[Kernel, ...]:
    """Kernels to choose from, by the estimator's argument."""
    if isinstance(kernel, str) and kernel == "auto":
        kernel = AUTO
    if isinstance(kernel, str | Kernel) or not isinstance(kernel, Sequence):
        kernel = [kernel]
    try:
        found = tuple(as_kernel(one) for one in kernel)
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


def comparison_sizes(kernels: Sequence[object], n_samples: int | None, n_params: int) -> list[int]:
    """Points of the sampler for each comparison; none where there is no choice."""
    if len(kernels) == 1:
        return []
    size = default_n_samples(n_params) if n_samples is None else n_samples
    least = max(_LEAST, least_n_samples(n_params))
    return [max(min(size, least), size // _SHARE)] * len(kernels)


def choose(
    posteriors: Sequence[Posterior], output: OutputScaling, asked: Emulator, execution: Execution
) -> tuple[int, dict[str, float]]:
    """Sample the posterior under each kernel, with fewer points, and take the highest evidence.

    Parameters
    ----------
    posteriors : sequence of Posterior
        Of the same runs, one for each kernel.
    output : OutputScaling
        Of the runs.
    asked : Emulator
        For its number of points and its scheme.
    execution : Execution

    Returns
    -------
    chosen : int
        Index of the kernel.
    evidences : dict of str to float
        Log evidences of the kernels, by name; empty if there was no choice.
    """
    sizes = comparison_sizes(posteriors, asked.n_samples, posteriors[0].n_params)
    if not sizes:
        return 0, {}
    evidences: dict[str, float] = {}
    for i, (posterior, size) in enumerate(zip(posteriors, sizes, strict=True)):
        result = execution.sample(posterior, size, asked.scheme, _SEED, comparison=i)
        name = label(posterior.kernel)
        evidences[name] = log_evidence(posterior, output, result)
        if execution.progress:
            print(f"{name}: log evidence {evidences[name]:.2f}", file=sys.stderr)
    return int(np.argmax(list(evidences.values()))), evidences


def log_evidence(posterior: Posterior, output: OutputScaling, result: SampleResult) -> float:
    """Log density of the outputs in the user's units, with the likelihood's constants."""
    freedom = posterior.n_runs - posterior.n_basis  # beta and sigma2 are integrated out
    return float(
        result.log_evidence
        + gammaln(0.5 * freedom)
        - 0.5 * freedom * np.log(np.pi)
        - posterior.n_runs * output.log_scale
    )


def refuse_other_run(
    checkpoint: Path, posteriors: Sequence[Posterior], asked: Emulator, seed: int | None
) -> None:
    """Raise if a fit with none of the kernels could go on from a checkpoint.

    The sampler would refuse it too, but only when the kernels have been compared.

    Parameters
    ----------
    checkpoint : Path
        An existing file.
    posteriors : sequence of Posterior
        One for each kernel.
    asked : Emulator
    seed : int or None
        Of the fit; None takes that of the file.
    """
    stored = read_checkpoint(checkpoint, n_jobs=asked.n_jobs).settings
    kernels = [repr(posterior.kernel) for posterior in posteriors]
    begun = (stored["density"] or {}).get("kernel")
    size, scheme = asked.n_samples, asdict(as_scheme(asked.scheme, asked.n_jobs))
    del scheme["n_jobs"]
    here = {
        "random_state": stored["random_state"] if seed is None else seed,
        "n_samples": default_n_samples(posteriors[0].n_params) if size is None else size,
        "goal": sampler_goal(asked.goal),
        "scheme": scheme,
        "density": density(
            posteriors[kernels.index(begun) if begun in kernels else 0]
        ).description,
    }
    differences = _differences(here, {key: stored[key] for key in here})
    if differences:
        raise CheckpointError(
            f"The checkpoint {str(checkpoint)!r} is of another run: {'; '.join(differences)}. "
            "Give another file, or remove this one to begin anew."
        )


def sampler_goal(goal: str) -> str:
    """What the sampler has to do for an emulator's goal: the best point is among the draws."""
    return "optimum" if goal == "optimum" else "posterior"


def in_words(evidences: dict[str, float]) -> str:
    """Kernels and their log evidences, the chosen one first, and whether the runs are sure."""
    ranked = sorted(evidences.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in ranked)
    decided = ranked[0][1] - ranked[1][1] >= _STRONG
    return listed if decided else f"{listed}; the runs hardly tell the first two apart"
