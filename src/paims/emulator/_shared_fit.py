"""Several outputs with one correlation: a single run of the sampler serves them all."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from paims._arrays import FloatArray, IndexArray
from paims.emulator._averaging import (
    KernelEvidence,
    KernelFit,
    candidates,
    sample_kernels,
    sizes,
)
from paims.emulator._checks import check_constant_columns, check_enough_runs, named
from paims.emulator._ensemble import Compression, Ensemble, WeightedDraws, ensemble_of_draws
from paims.emulator._execution import Execution
from paims.emulator._fit import Fit, prior_of
from paims.emulator._forecast import announce
from paims.emulator._mixture import MixturePrediction, as_generator
from paims.emulator._modes import ModeTable, describe
from paims.emulator._pilot import look
from paims.emulator._scaling import InputScaling, OutputScaling
from paims.emulator._trend import basis_in_units, constant_coefficients
from paims.gp import Kernel, Posterior
from paims.gp._nugget import as_nugget
from paims.gp._shared import SharedPosterior
from paims.inference import connect_modes, find_best
from paims.sampling import Mode, SampleResult, default_scheme
from paims.sampling._sample import least_n_samples

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

_MODE_MASS = 0.005
# More outputs than this, if they have so many runs each or are components, take the fewest points
# that clusters can do with.
_MANY, _MANY_RUNS = 8, 250
_FEWEST = 400
# With so many inputs their levels keep this share of the points in place of 0.4.
_MANY_INPUTS, _SHARE = 12, 0.2


@dataclass(frozen=True, eq=False)
class SharedFit:
    """What the runs say of outputs that have their correlation in common.

    Attributes
    ----------
    names : tuple of str
        Of the inputs that vary.
    inputs : InputScaling
    outputs : tuple of OutputScaling
    posterior : SharedPosterior
    kernel_evidence : dict of str to float
    result : SampleResult
    modes : tuple of Mode
        The best point first.
    draws, weights : ndarray
        Of the mixture.
    compression : Compression
    family : str
    """

    names: tuple[str, ...]
    inputs: InputScaling
    outputs: tuple[OutputScaling, ...]
    posterior: SharedPosterior
    kernel_evidence: dict[str, float]
    result: SampleResult
    modes: tuple[Mode, ...]
    draws: FloatArray
    weights: FloatArray
    compression: Compression
    family: str

    def single(self, j: int) -> Posterior:
        """The posterior that output j would have on its own: for its predictions."""
        shared = self.posterior
        y = shared.Y[:, j]
        rows = ~np.isnan(y)
        return Posterior(
            shared.X[rows],
            y[rows],
            shared.kernel,
            shared.mean,
            shared.prior,
            shared.nugget,
            n_jobs=shared.n_jobs,
        )

    def fit(self, j: int) -> Fit:
        """All that an emulator of output j knows."""
        posterior, output = self.single(j), self.outputs[j]
        described = [
            describe(mode, posterior, self.inputs, self.names, self.result.log_evidence)
            for mode in self.modes
        ]
        return Fit(
            names=self.names,
            inputs=self.inputs,
            output=output,
            kernels=(KernelFit(posterior, self.result),),
            evidence=KernelEvidence(self.kernel_evidence, {}),
            modes=ModeTable(described[1:]),
            best=described[0],
            ensemble=Ensemble(posterior, self.draws, self.weights, output, self.family),
            compression=self.compression,
        )

    def mixtures(self, X: FloatArray, include_nugget: bool) -> list[MixturePrediction]:
        """Predictions of all outputs at ``X`` (k, n_features): one factorisation for all."""
        scaled = self.inputs.apply(X)
        found = self.posterior.predict_outputs(self.draws, scaled, include_nugget=include_nugget)
        student = self.family == "student_t"

        def joint_of(j: int) -> object:
            def joint(index: IndexArray) -> tuple[FloatArray, FloatArray]:
                some = self.single(j).predict(
                    self.draws[index], scaled, include_nugget=include_nugget, return_cov=True
                )
                return some.mean, some.scale2 if student else some.variance

            return joint

        mixtures = []
        for j, output in enumerate(self.outputs):
            dof = float(found.dof[j])
            scale2 = found.scale2[:, :, j]
            scale2 = scale2 if student else scale2 * (dof / (dof - 2.0))
            mixtures.append(
                MixturePrediction(
                    np.ascontiguousarray(found.mean[:, :, j]),
                    np.sqrt(scale2),
                    self.weights,
                    dof if student else np.inf,
                    output,
                    joint_of(j),  # type: ignore[arg-type]
                    self.posterior.n_jobs,
                )
            )
        return mixtures


def scaled_runs(
    X: FloatArray,
    Y: FloatArray,
    names: Sequence[str],
    output_names: Sequence[str],
    asked: Emulator,
) -> tuple[InputScaling, tuple[OutputScaling, ...], FloatArray, FloatArray]:
    """Scaling of the inputs, of each output, and the scaled runs; NaN stays NaN."""
    inputs = InputScaling.of(X)
    check_constant_columns(~inputs.active, names)
    scaled = inputs.runs(X)
    H = basis_in_units(asked.mean, inputs)(scaled)
    centre = constant_coefficients(H) is not None
    target = np.full(Y.shape, np.nan)
    outputs = []
    for j, y in enumerate(Y.T):
        rows = ~np.isnan(y)
        with named(output_names[j]):
            check_enough_runs(int(rows.sum()), H.shape[1], asked.mean)
        outputs.append(OutputScaling.of(y[rows], centre=centre))
        target[rows, j] = outputs[j].runs(y[rows])
    return inputs, tuple(outputs), scaled, target


def shared_posterior(
    X: FloatArray,
    Y: FloatArray,
    inputs: InputScaling,
    asked: Emulator,
    kernel: Kernel,
    effective: float,
) -> SharedPosterior:
    """The posterior given scaled runs, under one kernel."""
    basis = basis_in_units(asked.mean, inputs)
    nugget = as_nugget(asked.nugget, asked.nugget_prior, int(inputs.active.sum()))
    return SharedPosterior(
        X, Y, kernel, basis, prior_of(X, asked), nugget, effective=effective, n_jobs=asked.n_jobs
    )


def fewer_points(asked: Emulator, n_outputs: int, n_runs: int, n_inputs: int) -> Emulator:
    """What is asked, with fewer points of the sampler where many outputs of many runs are long."""
    return asked if n_runs < _MANY_RUNS else of_many(asked, n_outputs, n_inputs)


def of_many(asked: Emulator, n_outputs: int, n_inputs: int) -> Emulator:
    """What is asked, with fewer points and larger steps of the sampler if it is of many outputs.

    A posterior that many outputs share is narrow; and of many that are sampled apart the error of
    each counts less. Steps are larger with many inputs, where chains follow gradients and each
    level costs as much as the last.
    """
    if n_outputs <= _MANY or asked.n_samples is not None:
        return asked
    asked = copy(asked)
    asked.n_samples = max(_FEWEST, least_n_samples(n_inputs + 1))
    if n_inputs >= _MANY_INPUTS and asked.scheme == "default":
        asked.scheme = replace(default_scheme(asked.n_jobs), effective_share=_SHARE)
    return asked


def announce_shared(
    X: FloatArray,
    Y: FloatArray,
    names: Sequence[str],
    output_names: Sequence[str],
    asked: Emulator,
    execution: Execution,
) -> None:
    """Say how long :func:`fit_shared` will take: before the first look, which takes its time too.

    The arguments are those of the fit.
    """
    begun = execution.checkpoint is not None and execution.checkpoint.exists()
    if begun or execution.executor is not None:
        return
    asked = fewer_points(asked, Y.shape[1], *X.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The fit says it.
        inputs, _, scaled, target = scaled_runs(X, Y, names, output_names, asked)
    kernels = candidates(asked.kernel)
    posterior = shared_posterior(scaled, target, inputs, asked, kernels[0], 1.0)
    points = sizes(len(kernels), asked.n_samples, posterior.n_params)
    announce(posterior, points, asked.scheme, bool(execution.progress))


def fit_shared(
    X: FloatArray,
    Y: FloatArray,
    names: Sequence[str],
    output_names: Sequence[str],
    asked: Emulator,
    execution: Execution,
) -> SharedFit:
    """Sample the hyper-parameters that all outputs have in common.

    Parameters
    ----------
    X : (n, n_features) ndarray
    Y : (n, m) ndarray
        NaN where a run has no output.
    names, output_names : sequence of str
        One for each feature, and for each output.
    asked : Emulator
    execution : Execution
    """
    asked = fewer_points(asked, Y.shape[1], *X.shape)
    inputs, outputs, scaled, target = scaled_runs(X, Y, names, output_names, asked)
    kernels = candidates(asked.kernel)
    pilot = look(scaled, target, inputs, asked, kernels[0])
    posteriors = [
        shared_posterior(scaled, target, inputs, asked, kernel, pilot.effective)
        for kernel in kernels
    ]
    rng = as_generator(asked.random_state)
    seed = int.from_bytes(rng.bytes(16), "little")
    # Of several kernels the most probable is taken: one factorisation has to serve all outputs.
    fits, evidence = sample_kernels(posteriors, outputs[0], asked, execution, seed, stacked=False)
    posterior, result = fits[0].posterior, fits[0].result
    found = result.modes(min_mass=0.0)
    best = find_best(posterior, result, found)
    draws, weights = result.draws, result.weights
    if asked.goal == "map":
        draws, weights = np.asarray(best.location)[None], np.ones(1)
    ensemble, compression = ensemble_of_draws(
        [WeightedDraws(posterior, draws, weights)], outputs[0], asked.predictive, rng
    )
    shown = connect_modes(result, [mode for mode in found if mode.mass >= _MODE_MASS])
    return SharedFit(
        names=tuple(name for name, active in zip(names, inputs.active, strict=True) if active),
        inputs=inputs,
        outputs=outputs,
        posterior=posterior,  # type: ignore[arg-type]
        kernel_evidence=evidence.log_evidence,
        result=result,
        modes=tuple(replace(mode) for mode in [best, *shown]),
        draws=ensemble.draws,
        weights=ensemble.weights,
        compression=compression,
        family=asked.predictive,
    )
