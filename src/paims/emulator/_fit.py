"""From the runs of one output to its fit: scaling, posterior, sampling, the mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paims._arrays import FloatArray
from paims.emulator._averaging import (
    KernelEvidence,
    KernelFit,
    candidates,
    narrow,
    planned,
    refuse_other_runs,
    sample_kernels,
)
from paims.emulator._checks import (
    check_constant_columns,
    check_enough_runs,
    check_repeats,
    check_varying_output,
)
from paims.emulator._ensemble import Compression, Ensemble, WeightedDraws, ensemble_of_draws
from paims.emulator._evidence import log_evidence
from paims.emulator._execution import Execution
from paims.emulator._forecast import announce
from paims.emulator._mixture import as_generator
from paims.emulator._modes import EmulatorMode, ModeTable, describe, draw_table
from paims.emulator._pilot import highest
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
from paims.sampling import Mode, SampleResult

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
    kernels : tuple of KernelFit
        The posterior of the hyper-parameters given the scaled runs, and what sampling it gave,
        under each kernel that is kept, the heaviest first.
    evidence : KernelEvidence
        Of all kernels that were tried; empty if there was one.
    modes : ModeTable
    best : EmulatorMode
        The point of highest density under the heaviest kernel.
    ensemble : Ensemble
        What predictions are made with.
    compression : Compression
        What was lost by keeping few components.
    """

    names: tuple[str, ...]
    inputs: InputScaling
    output: OutputScaling
    kernels: tuple[KernelFit, ...]
    evidence: KernelEvidence
    modes: ModeTable
    best: EmulatorMode
    ensemble: Ensemble
    compression: Compression

    @property
    def posterior(self) -> Posterior:
        """The posterior under the heaviest kernel."""
        return self.kernels[0].posterior

    @property
    def result(self) -> SampleResult:
        """The sampler's result under the heaviest kernel."""
        return self.kernels[0].result

    @property
    def log_evidence(self) -> tuple[float, float]:
        """Log density of the outputs in the user's units, and its error."""
        if self.evidence.error:  # which earlier versions, that chose one, did not keep
            return self.evidence.average()
        value = log_evidence(self.posterior, self.output, self.result)
        return value, self.result.log_evidence_error

    def draw_table(self) -> npt.NDArray[np.void]:
        """The sampler's draws in the user's units, one kernel after the other."""
        return np.concatenate(
            [
                draw_table(one.posterior, self.inputs, one.result.draws, self.names)
                for one in self.kernels
            ]
        )

    def draw_weights(self) -> FloatArray:
        """Of these draws."""
        return np.concatenate([one.weight * one.result.weights for one in self.kernels])

    def draw_kernels(self) -> npt.NDArray[np.str_]:
        """Name of the kernel of each of these draws."""
        return np.repeat(
            [one.name for one in self.kernels], [len(one.result.draws) for one in self.kernels]
        )

    def trend_and_variance(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """Posteriors of the trend's coefficients and of the process's variance, summarised."""
        coefficients = self.ensemble.coefficients()
        weights = self.ensemble.weights
        trend = trend_summary(
            self.posterior, coefficients, weights, self.inputs, self.output, self.names
        )
        return trend, variance_summary(coefficients, weights, self.output)


def fit_runs(
    X: FloatArray, y: FloatArray, names: Sequence[str], asked: Emulator, execution: Execution
) -> Fit:
    """Sample the posterior under each kernel, find the modes and make the mixture.

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
    points = planned(posteriors, asked)
    _before_sampling(posteriors[: len(points)], points, asked, execution, asked_seed)
    if narrow(asked.kernel, posteriors):
        posteriors = [highest(posteriors)]
    kernels, evidence = sample_kernels(
        posteriors, output, asked, execution, asked_seed, points=points
    )
    used = kernels[0].result.random_state
    if used != seed:  # so that what follows is that of the run in the checkpoint
        rng = np.random.default_rng(np.random.SeedSequence(used, spawn_key=_AFTER))
    varying = tuple(name for name, varies in zip(names, inputs.active, strict=True) if varies)
    modes = [one.result.modes(min_mass=0.0) for one in kernels]
    best = find_best(kernels[0].posterior, kernels[0].result, modes[0])
    mixed = [
        WeightedDraws(one.posterior, one.result.draws, one.result.weights, one.weight)
        for one in kernels
    ]
    if asked.goal == "map":
        mixed = [WeightedDraws(kernels[0].posterior, np.asarray(best.location)[None], np.ones(1))]
    ensemble, compression = ensemble_of_draws(mixed, output, asked.predictive, rng)
    described = [_described(best, kernels[0], inputs, varying)]
    for one, found in zip(kernels, modes, strict=True):
        heavy = [mode for mode in found if mode.mass * one.weight >= _MODE_MASS]
        for mode in connect_modes(one.result, heavy):
            described.append(_described(mode, one, inputs, varying))
    return Fit(
        names=varying,
        inputs=inputs,
        output=output,
        kernels=tuple(kernels),
        evidence=evidence,
        modes=ModeTable(sorted(described[1:], key=lambda mode: -mode.mass)),
        best=described[0],
        ensemble=ensemble,
        compression=compression,
    )


def _described(
    mode: Mode, fit: KernelFit, inputs: InputScaling, names: Sequence[str]
) -> EmulatorMode:
    """A mode under one kernel, as one of the whole mixture."""
    found = describe(mode, fit.posterior, inputs, names, fit.result.log_evidence)
    return replace(
        found,
        mass=fit.weight * found.mass,
        mass_error=fit.weight * found.mass_error,
        log_density=found.log_density + float(np.log(fit.weight)),
    )


def _before_sampling(
    posteriors: Sequence[Posterior],
    points: list[int | None],
    asked: Emulator,
    execution: Execution,
    seed: int | None,
) -> None:
    """Refuse a checkpoint of another run, or say how long a new one will take."""
    refuse_other_runs(posteriors, asked, execution, seed)
    begun = execution.checkpoint is not None and execution.checkpoint.exists()
    if not begun and execution.executor is None:
        _announce(posteriors[0], points, asked, execution)


def _announce(
    posterior: Posterior, points: list[int | None], asked: Emulator, execution: Execution
) -> None:
    """Say how long the fits like this one will take."""
    if execution.alike:
        announce(posterior, points * execution.alike, asked.scheme, bool(execution.progress))


def announce_fits(
    X: FloatArray, y: FloatArray, names: Sequence[str], asked: Emulator, execution: Execution
) -> None:
    """Say how long fits like this one will take, one after the other, without making it."""
    _, _, posteriors = scaled_posteriors(X, y, names, asked)
    _announce(posteriors[0], planned(posteriors, asked), asked, execution)


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
    treatment = as_nugget(asked.nugget, asked.nugget_prior, scaled.shape[1])
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
    taken = prior_of(X, asked) if prior is None else prior
    treatment = (asked.nugget, asked.nugget_prior)
    return Posterior(X, y, kernel, basis, taken, *treatment, n_jobs=asked.n_jobs)
