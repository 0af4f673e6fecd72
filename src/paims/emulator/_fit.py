"""From the runs of one output to its fit: scaling, posterior, sampling, the mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from paims.emulator._choosing import choose, comparison_sizes, log_evidence, refuse_other_run
from paims.emulator._ensemble import Compression, Ensemble, ensemble_of_draws
from paims.emulator._mixture import as_generator
from paims.emulator._modes import EmulatorMode, ModeTable, describe, draw_table
from paims.emulator._request import Execution, Request
from paims.emulator._scaling import InputScaling, OutputScaling
from paims.emulator._trend import (
    basis_in_units,
    constant_coefficients,
    trend_summary,
    variance_summary,
)
from paims.gp import FixedNugget, Posterior
from paims.gp._means import as_basis
from paims.gp._nugget import as_nugget
from paims.inference import connect_modes, find_best
from paims.sampling import SampleResult

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
    X: FloatArray, y: FloatArray, names: Sequence[str], request: Request, execution: Execution
) -> Fit:
    """Choose the kernel, sample its posterior, find the modes and make the mixture.

    Parameters
    ----------
    X : (n, n_features) ndarray
    y : (n,) ndarray
    names : sequence of str
        One for each feature.
    request : Request
    execution : Execution
    """
    inputs, output, posteriors = scaled_posteriors(X, y, names, request)
    rng = as_generator(request.random_state)
    seed = int.from_bytes(rng.bytes(16), "little")
    checkpoint = execution.checkpoint
    # Without a seed, that of the checkpoint is as good as another.
    asked_seed = None if request.random_state is None and checkpoint is not None else seed
    if checkpoint is not None and checkpoint.exists():
        if len(posteriors) > 1:
            refuse_other_run(checkpoint, posteriors, request, asked_seed)
    elif execution.executor is None:
        first = posteriors[0]
        sizes = comparison_sizes(request.kernels, request.n_samples, first.n_params)
        announce(first, [*sizes, request.n_samples], request.scheme, execution.progress)
    chosen, evidences = choose(posteriors, output, request, execution)
    posterior = posteriors[chosen]
    result = execution.sample(
        posterior,
        request.n_samples,
        request.scheme,
        asked_seed,
        goal="optimum" if request.goal == "optimum" else "posterior",
    )
    if result.random_state != seed:  # so that what follows is that of the run in the checkpoint
        rng = np.random.default_rng(np.random.SeedSequence(result.random_state, spawn_key=_AFTER))
    varying = tuple(name for name, varies in zip(names, inputs.active, strict=True) if varies)
    modes = result.modes(min_mass=0.0)
    best = find_best(result, modes)
    draws, weights = result.draws, result.weights
    if request.goal == "map":
        draws, weights = np.asarray(best.location)[None], np.ones(1)
    ensemble, compression = ensemble_of_draws(
        posterior, draws, weights, output, request.predictive, rng
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


def scaled_posteriors(
    X: FloatArray, y: FloatArray, names: Sequence[str], request: Request
) -> tuple[InputScaling, OutputScaling, list[Posterior]]:
    """Check and scale the runs, and set up the posterior under each kernel.

    Parameters
    ----------
    X : (n, n_features) ndarray
    y : (n,) ndarray
    names : sequence of str
        One for each feature.
    request : Request
    """
    mean = request.mean
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
    treatment = as_nugget(request.nugget, request.nugget_prior)
    if isinstance(treatment, FixedNugget):
        check_repeats(scaled, target, treatment.nugget)
    posteriors = [request.posterior(scaled, target, inputs, one) for one in request.kernels]
    return inputs, output, posteriors
