"""From the runs of one output to its fit: scaling, posterior, sampling, the mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paims._arrays import FloatArray
from paims.emulator._checks import (
    announce,
    check_constant_columns,
    check_enough_runs,
    check_repeats,
    check_varying_output,
)
from paims.emulator._choosing import (
    candidates,
    choose,
    comparison_sizes,
    log_evidence,
    refuse_other_run,
    sampler_goal,
)
from paims.emulator._ensemble import Compression, Ensemble, ensemble_of_draws
from paims.emulator._execution import Execution
from paims.emulator._mixture import as_generator
from paims.emulator._modes import EmulatorMode, ModeTable, describe, draw_table
from paims.emulator._scaling import InputScaling, OutputScaling
from paims.emulator._trend import (
    basis_in_units,
    constant_coefficients,
    trend_summary,
    variance_summary,
)
from paims.gp import FixedNugget, Kernel, Posterior
from paims.gp._means import as_basis
from paims.gp._nugget import as_nugget
from paims.inference import affordable_prior, connect_modes, find_best
from paims.sampling import SampleResult

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

_MODE_MASS = 0.005
_AFTER = (2**32 - 2,)  # name of the random stream after that of the sampler


@dataclass(frozen=True, eq=False)
class Fit:
    """What the runs say of one output: all that a fitted emulator knows.

    Attributes
    ----------
    names : tuple of str
        Of the inputs that vary.
    inputs : InputScaling
    output : OutputScaling
    posterior : Posterior
        Of the hyper-parameters given the scaled runs, under the kernel that was chosen.
    kernel_evidence : dict of str to float
        Log evidences of the kernels that were compared, by name; empty if there was no choice.
    result : SampleResult
        Of sampling the posterior.
    modes : ModeTable
    best : EmulatorMode
        The point of highest density.
    ensemble : Ensemble
        What predictions are made with.
    compression : Compression
        What was lost by keeping few components.
    """

    names: tuple[str, ...]
    inputs: InputScaling
    output: OutputScaling
    posterior: Posterior
    kernel_evidence: dict[str, float]
    result: SampleResult
    modes: ModeTable
    best: EmulatorMode
    ensemble: Ensemble
    compression: Compression

    @property
    def log_evidence(self) -> float:
        """Log density of the outputs in the user's units."""
        return log_evidence(self.posterior, self.output, self.result)

    def draw_table(self) -> npt.NDArray[np.void]:
        """The sampler's draws in the user's units."""
        return draw_table(self.posterior, self.inputs, self.result.draws, self.names)

    def trend_and_variance(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """Posteriors of the trend's coefficients and of the process's variance, summarised."""
        coefficients = self.posterior.coefficients(self.ensemble.draws)
        weights = self.ensemble.weights
        trend = trend_summary(
            self.posterior, coefficients, weights, self.inputs, self.output, self.names
        )
        return trend, variance_summary(coefficients, weights, self.output)


def fit_runs(
    X: FloatArray, y: FloatArray, names: Sequence[str], asked: Emulator, execution: Execution
) -> Fit:
    """Choose the kernel, sample its posterior, find the modes and make the mixture.

    Parameters
    ----------
    X : (n, n_features) ndarray
    y : (n,) ndarray
    names : sequence of str
        One for each feature.
    asked : Emulator
        What for: its constructor's arguments.
    execution : Execution
    """
    inputs, output, posteriors = scaled_posteriors(X, y, names, asked)
    rng = as_generator(asked.random_state)
    seed = int.from_bytes(rng.bytes(16), "little")
    # Without a seed, that of the checkpoint is as good as another.
    any_seed = asked.random_state is None and execution.checkpoint is not None
    asked_seed = None if any_seed else seed
    _before_sampling(posteriors, asked, execution, asked_seed)
    chosen, evidences = choose(posteriors, output, asked, execution)
    posterior = posteriors[chosen]
    result = execution.sample(
        posterior,
        asked.n_samples,
        asked.scheme,
        asked_seed,
        goal=sampler_goal(asked.goal),
    )
    if result.random_state != seed:  # so that what follows is that of the run in the checkpoint
        rng = np.random.default_rng(np.random.SeedSequence(result.random_state, spawn_key=_AFTER))
    varying = tuple(name for name, varies in zip(names, inputs.active, strict=True) if varies)
    modes = result.modes(min_mass=0.0)
    best = find_best(result, modes)
    draws, weights = result.draws, result.weights
    if asked.goal == "map":
        draws, weights = np.asarray(best.location)[None], np.ones(1)
    ensemble, compression = ensemble_of_draws(
        posterior, draws, weights, output, asked.predictive, rng
    )
    shown = connect_modes(result, [mode for mode in modes if mode.mass >= _MODE_MASS])
    described = [
        describe(mode, posterior, inputs, varying, result.log_evidence) for mode in [best, *shown]
    ]
    return Fit(
        names=varying,
        inputs=inputs,
        output=output,
        posterior=posterior,
        kernel_evidence=evidences,
        result=result,
        modes=ModeTable(described[1:]),
        best=described[0],
        ensemble=ensemble,
        compression=compression,
    )


def _before_sampling(
    posteriors: Sequence[Posterior], asked: Emulator, execution: Execution, seed: int | None
) -> None:
    """Refuse a checkpoint of another run, or say how long a new one will take."""
    checkpoint = execution.checkpoint
    if checkpoint is not None and checkpoint.exists():
        if len(posteriors) > 1:  # else the sampler itself refuses at once
            refuse_other_run(checkpoint, posteriors, asked, seed)
    elif execution.executor is None and execution.alike:
        first = posteriors[0]
        sizes: list[int | None] = [
            *comparison_sizes(posteriors, asked.n_samples, first.n_params),
            asked.n_samples,
        ] * execution.alike
        announce(first, sizes, asked.scheme, bool(execution.progress))


def scaled_posteriors(
    X: FloatArray, y: FloatArray, names: Sequence[str], asked: Emulator
) -> tuple[InputScaling, OutputScaling, list[Posterior]]:
    """Check and scale the runs, and set up the posterior under each kernel.

    Parameters
    ----------
    X : (n, n_features) ndarray
    y : (n,) ndarray
    names : sequence of str
        One for each feature.
    asked : Emulator
    """
    mean = asked.mean
    if len(X) == 1:
        check_enough_runs(1, as_basis(mean)(X).shape[1], mean)
    inputs = InputScaling.of(X)
    check_constant_columns(~inputs.active, names)
    scaled = inputs.runs(X)
    H = basis_in_units(mean, inputs)(scaled)
    check_enough_runs(len(X), H.shape[1], mean)
    centre = constant_coefficients(H) is not None
    check_varying_output(y, centred=centre)
    output = OutputScaling.of(y, centre=centre)
    target = output.runs(y)
    treatment = as_nugget(asked.nugget, asked.nugget_prior)
    if isinstance(treatment, FixedNugget):
        check_repeats(scaled, target, treatment.nugget)
    kernels = candidates(asked.kernel)
    posteriors = [posterior_of(scaled, target, inputs, asked, kernel) for kernel in kernels]
    return inputs, output, posteriors


def prior_of(X: FloatArray, asked: Emulator) -> Any:
    """The prior that is asked for; of "auto" what it stands for with these runs."""
    automatic = isinstance(asked.prior, str) and asked.prior == "auto"
    if not automatic:
        return asked.prior
    if isinstance(asked.nugget_prior, str) and asked.nugget_prior == "reference":
        return "reference"  # of which that nugget prior is a part
    return affordable_prior(*X.shape)


def posterior_of(
    X: FloatArray,
    y: FloatArray,
    inputs: InputScaling,
    asked: Emulator,
    kernel: Kernel,
    prior: str | None = None,
) -> Posterior:
    """The posterior of the hyper-parameters given scaled runs, under one kernel.

    ``prior`` is what "auto" has stood for, if that is known.
    """
    basis = basis_in_units(asked.mean, inputs)
    nugget = as_nugget(asked.nugget, asked.nugget_prior)
    taken = prior_of(X, asked) if prior is None else prior
    return Posterior(X, y, kernel, basis, taken, nugget, n_jobs=asked.n_jobs)
