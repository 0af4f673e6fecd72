r"""Several kernels: each has its run of the sampler, and a weight in the mixture of all.

The emulator is then a mixture over kernels as it is one over draws. The weight of a kernel is the
mean of two: its posterior probability, from equal prior probabilities and the evidences
:math:`Z_k` (see :mod:`paims.emulator._evidence`), and its weight in the mixture that predicts the
runs best when each is left out (stacking: Yao, Vehtari, Simpson and Gelman 2018),

.. math:: w_k = \frac12 \frac{Z_k}{\sum_j Z_j} + \frac12 s_k, \qquad
          s = \arg\max_s \sum_i \log \sum_k s_k \, p_k(y_i \mid y_{-i}) .

The first is right if one of the kernels made the runs, which no simulator's are; the second asks
for predictions only, and is noisy. ``python -m benchmarks.functions --weights`` compares them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from paims._arrays import FloatArray
from paims._student import StudentMixtures
from paims.emulator._evidence import comparable_evidence
from paims.emulator._execution import Execution
from paims.emulator._scaling import OutputScaling
from paims.gp import Kernel, Posterior
from paims.gp._kernels import as_kernel
from paims.inference import density, points_of_a_fit
from paims.sampling import CheckpointError, SampleResult
from paims.sampling._checkpoint import _differences, read_checkpoint
from paims.sampling._path import systematic
from paims.sampling._sample import as_scheme, least_n_samples

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

#: What "auto" stands for: infinitely, three times and twice differentiable.
AUTO = ("squared_exponential", "matern72", "matern52")

# Fewest points of a run that is one of several: the evidence is then known to about 0.1.
_LEAST = 250
# Runs from which "auto" is the kernel whose posterior has the highest top, and its points, in all
# and for each parameter: as there each evaluation is costly, fewer than of a fit of few runs.
_MANY_RUNS = 250
_OF_MANY_RUNS, _OF_MANY_RUNS_EACH = 500, 50
# A kernel that weighs less than this is left out: no prediction would show it.
_NEGLIGIBLE = 0.01
# Draws that the mixture of left-out runs is made of, and steps towards the stacking weights.
_N_DRAWS = 128
_STEPS = 1000


@dataclass(frozen=True, eq=False)
class KernelFit:
    """The posterior under one kernel, sampled.

    Attributes
    ----------
    posterior : Posterior
    result : SampleResult
    weight : float
        Of the kernel among those kept.
    """

    posterior: Posterior
    result: SampleResult
    weight: float = 1.0

    @property
    def name(self) -> str:
        """Of the kernel."""
        return label(self.posterior.kernel)


@dataclass(frozen=True)
class KernelEvidence:
    """What kernels are weighed by.

    Attributes
    ----------
    log_evidence : dict of str to float
        Of each kernel that was tried, by name, those left out too; see
        :func:`~paims.emulator._evidence.comparable_evidence`. Empty for a single kernel.
    error : dict of str to float
        Monte-Carlo standard errors.
    """

    log_evidence: dict[str, float]
    error: dict[str, float]

    def weights(self) -> dict[str, float]:
        """Posterior probabilities of all kernels, by name."""
        values = np.array(list(self.log_evidence.values()))
        found = np.exp(values - logsumexp(values))
        return dict(zip(self.log_evidence, found.tolist(), strict=True))

    def average(self) -> tuple[float, float]:
        """Log evidence of the mixture of all kernels with equal probabilities, and its error."""
        values = np.array(list(self.log_evidence.values()))
        errors = np.array(list(self.error.values()))
        weights: FloatArray = np.exp(values - logsumexp(values))
        value = float(logsumexp(values) - np.log(len(values)))
        return value, float(np.sqrt(np.sum(weights**2 * errors**2)))


def candidates(kernel: str | Kernel | Sequence[str | Kernel]) -> tuple[Kernel, ...]:
    """Kernels to average over, by the estimator's argument."""
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


def narrow(kernel: object, posteriors: Sequence[Posterior]) -> bool:
    """Whether "auto" takes one kernel only: with many runs each is costly, and one stands out."""
    first = posteriors[0]
    automatic = isinstance(kernel, str) and kernel == "auto" and len(posteriors) > 1
    return automatic and first.n_runs >= _MANY_RUNS and first.has_gradient


def sizes(n_kernels: int, n_samples: int | None, n_params: int) -> list[int | None]:
    """Points of the sampler under each kernel: those of one run, shared, but not too few."""
    if n_kernels == 1:
        return [n_samples]
    size = points_of_a_fit(n_params) if n_samples is None else n_samples
    least = max(_LEAST, least_n_samples(n_params))
    return [max(min(size, least), -(-size // n_kernels))] * n_kernels


def planned(posteriors: Sequence[Posterior], asked: Emulator) -> list[int | None]:
    """Points of each run of the sampler that is to come, for posteriors under all kernels."""
    n_params = posteriors[0].n_params
    if not narrow(asked.kernel, posteriors):
        return sizes(len(posteriors), asked.n_samples, n_params)
    if asked.n_samples is not None:
        return [asked.n_samples]
    many = max(_OF_MANY_RUNS, _OF_MANY_RUNS_EACH * n_params)
    return [min(many, points_of_a_fit(n_params))]


def sample_kernels(
    posteriors: Sequence[Posterior],
    output: OutputScaling,
    asked: Emulator,
    execution: Execution,
    seed: int | None,
    *,
    stacked: bool = True,
    points: Sequence[int | None] | None = None,
) -> tuple[list[KernelFit], KernelEvidence]:
    """Sample the posterior under each kernel, and weigh the kernels by their evidence.

    Parameters
    ----------
    posteriors : sequence of Posterior
        Of the same runs, one for each kernel.
    output : OutputScaling
        Of the runs.
    asked : Emulator
        For its number of points, its scheme and its goal.
    execution : Execution
    seed : int or None
        Of every run; None takes that of the first kernel's checkpoint, or any.
    stacked : bool
        Whether runs that are left out count too.
    points : sequence of int or None, optional
        Of the sampler under each; by default all share those of one.

    Returns
    -------
    fits : list of KernelFit
        Of the kernels that are kept, the heaviest first.
    evidence : KernelEvidence
    """
    results: list[SampleResult] = []
    log_evidence: dict[str, float] = {}
    error: dict[str, float] = {}
    if points is None:
        points = sizes(len(posteriors), asked.n_samples, posteriors[0].n_params)
    for i, (posterior, size) in enumerate(zip(posteriors, points, strict=True)):
        results.append(
            execution.sample(
                posterior, size, asked.scheme, seed, goal=sampler_goal(asked.goal), kernel=i
            )
        )
        seed = results[0].random_state
        if len(posteriors) > 1:
            name = label(posterior.kernel)
            found = comparable_evidence(posterior, output, results[-1])
            log_evidence[name], error[name] = found.log_evidence, found.error
            if execution.progress:
                of = f"{execution.progress}: " if isinstance(execution.progress, str) else ""
                print(f"{of}{name}: log evidence {found.log_evidence:.2f}", file=sys.stderr)
    evidence = KernelEvidence(log_evidence, error)
    if len(posteriors) == 1:
        return [KernelFit(posteriors[0], results[0])], evidence
    probability = np.array(list(evidence.weights().values()))
    found_best = stacking_weights(posteriors, results) if stacked else None
    weights = probability if found_best is None else 0.5 * (probability + found_best)
    kept = [i for i in np.argsort(weights)[::-1] if weights[i] >= _NEGLIGIBLE]
    total = weights[kept].sum()
    fits = [KernelFit(posteriors[i], results[i], float(weights[i] / total)) for i in kept]
    return fits, evidence


def stacking_weights(
    posteriors: Sequence[Posterior], results: Sequence[SampleResult]
) -> FloatArray | None:
    """Weights of the mixture that predicts the runs best when each is left out.

    None if no run can be: where hardly any nugget is allowed, numbers may not suffice.
    """
    log_density = np.array(
        [
            _left_out(posterior, result)
            for posterior, result in zip(posteriors, results, strict=True)
        ]
    )
    usable = np.isfinite(log_density).all(axis=0)
    if not usable.any():
        return None
    weights: FloatArray = np.full(len(posteriors), 1.0 / len(posteriors))
    relative = np.exp(log_density[:, usable] - log_density[:, usable].max(axis=0))
    for _ in range(_STEPS):  # expectation and maximisation: the problem is concave
        joint = weights[:, None] * relative
        weights = (joint / joint.sum(axis=0)).mean(axis=1)
    return weights


def _left_out(posterior: Posterior, result: SampleResult) -> FloatArray:
    """Log density ``(n,)`` of each run under the mixture over draws, given all others."""
    chosen = systematic(result.weights, _N_DRAWS, np.random.default_rng(0))
    index, count = np.unique(chosen, return_counts=True)
    found = posterior.leave_one_out(result.draws[index])
    usable = np.isfinite(found.mean).all(axis=1) & (found.scale2 > 0.0).all(axis=1)
    if not usable.any():
        return np.full(posterior.n_runs, np.nan)
    scale, weights = np.sqrt(found.scale2[usable]), count[usable] / count[usable].sum()
    mixtures = StudentMixtures(found.mean[usable], scale, weights[:, None], float(found.dof))
    return mixtures.logpdf(posterior.y)


def refuse_other_runs(
    posteriors: Sequence[Posterior], asked: Emulator, execution: Execution, seed: int | None
) -> None:
    """Raise if there is a checkpoint that this fit cannot go on from, before any sampling.

    The sampler would refuse it too, but that of the last kernel only when all others are done.

    Parameters
    ----------
    posteriors : sequence of Posterior
        One for each kernel.
    asked : Emulator
    execution : Execution
    seed : int or None
        Of the fit; None takes that of the file.
    """
    if len(posteriors) == 1:  # the sampler itself refuses at once
        return
    scheme = asdict(as_scheme(asked.scheme, asked.n_jobs))
    del scheme["n_jobs"]
    points = sizes(len(posteriors), asked.n_samples, posteriors[0].n_params)
    for i, (posterior, size) in enumerate(zip(posteriors, points, strict=True)):
        checkpoint = execution.file(i)
        if checkpoint is None or not checkpoint.exists():
            continue
        stored = read_checkpoint(checkpoint, n_jobs=asked.n_jobs).settings
        here = {
            "random_state": stored["random_state"] if seed is None else seed,
            "n_samples": points_of_a_fit(posterior.n_params) if size is None else size,
            "goal": sampler_goal(asked.goal),
            "scheme": scheme,
            "density": density(posterior).description,
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


def in_words(weights: dict[str, float], evidences: dict[str, float]) -> str:
    """Kernels by falling weight, and those left out with what spoke against them."""
    kept = ", ".join(f"{_plain(name)} {weight:.0%}" for name, weight in weights.items())
    best = max(evidences.values())
    left_out = [
        f"{_plain(name)} (log evidence {best - value:.1f} lower)"
        for name, value in sorted(evidences.items(), key=lambda item: -item[1])
        if name not in weights
    ]
    return kept + (f"; left out: {', '.join(left_out)}" if left_out else "")


def _plain(name: str) -> str:
    return name.replace("_", " ")
