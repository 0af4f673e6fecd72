"""From runs to what is learnt from them: scaling, posterior, sampling, the mixture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from paims._arrays import FloatArray
from paims.emulator._compression import Compression, compress
from paims.emulator._ensemble import Ensemble
from paims.emulator._mixture import as_generator
from paims.emulator._modes import EmulatorMode, ModeTable, describe, draw_table
from paims.emulator._scaling import InputScaling, OutputScaling
from paims.emulator._thinning import merge_equal, thin
from paims.emulator._trend import (
    basis_in_units,
    constant_coefficients,
    trend_summary,
    variance_summary,
)
from paims.emulator._validation import (
    check_constant_columns,
    check_enough_runs,
    check_repeats,
    check_varying_output,
)
from paims.gp import FixedNugget, Kernel, Posterior
from paims.gp._means import as_basis
from paims.gp._nugget import as_nugget
from paims.inference import connect_modes, find_best, sample_posterior
from paims.sampling import SampleResult, Scheme

# Components of a mixture, and draws that they are chosen from. Against predictions with all draws,
# measured on the paper's three data sets, Friedman and borehole: the mean is off by 0.004 to 0.010
# standard deviations (root mean square over the box), the standard deviation by 0.3 to 1.2 %. The
# noise of the draws themselves is about 0.005 standard deviations.
_N_COMPONENTS = 128
_N_RESERVOIR = 1024
_MODE_MASS = 0.005
_AFTER = (2**32 - 2,)  # name of the random stream after that of the sampler


class FitInterrupted(KeyboardInterrupt):
    """A fit that Ctrl-C or SIGTERM ended: the emulator is not fitted.

    Attributes
    ----------
    result : SampleResult
        What the sampler had, which is not yet a sample of the posterior.
    """

    result: SampleResult

    @staticmethod
    def of(result: SampleResult, checkpoint: str | os.PathLike[str] | None) -> FitInterrupted:
        """Build from the sampler's result, with what to do next."""
        advice = (
            "Pass fit(X, y, checkpoint='fit.h5') next time to be able to go on."
            if checkpoint is None
            else f"Call fit again with checkpoint={os.fspath(checkpoint)!r} to go on."
        )
        error = FitInterrupted(
            f"The fit was {result.status.reason} after {len(result.levels)} levels and "
            f"{result.n_evaluations} evaluations; the emulator is not fitted. {advice}"
        )
        error.result = result
        return error


@dataclass(frozen=True)
class Problem:
    """Scaled runs and the posterior of the hyper-parameters given them.

    Attributes
    ----------
    inputs : InputScaling
    output : OutputScaling
    posterior : Posterior
    names : tuple of str
        Of the inputs that vary.
    """

    inputs: InputScaling
    output: OutputScaling
    posterior: Posterior
    names: tuple[str, ...]

    def with_kernel(self, kernel: Kernel) -> Problem:
        """The same with another kernel."""
        old = self.posterior
        new = Posterior(old.X, old.y, kernel, old.mean, old.prior, old.nugget, n_jobs=old.n_jobs)
        return replace(self, posterior=new)


@dataclass(frozen=True)
class Learnt:
    """What sampling the posterior of a problem gave.

    Attributes
    ----------
    result : SampleResult
    modes : ModeTable
    best : EmulatorMode
    ensemble : Ensemble
    compression : Compression
    """

    result: SampleResult
    modes: ModeTable
    best: EmulatorMode
    ensemble: Ensemble
    compression: Compression


def pose(
    X: FloatArray,
    y: FloatArray,
    names: Sequence[str],
    *,
    kernel: Any,
    mean: Any,
    prior: Any,
    nugget: Any,
    nugget_prior: Any,
    n_jobs: int | None,
) -> Problem:
    """Check and scale the runs, and set up the posterior.

    Parameters
    ----------
    X : (n, n_features) ndarray
    y : (n,) ndarray
    names : sequence of str
        One for each feature.
    kernel, mean, prior, nugget, nugget_prior, n_jobs
        As in :class:`paims.gp.Posterior`; a function for ``mean`` takes inputs in the user's
        units.
    """
    if len(X) == 1:
        check_enough_runs(1, as_basis(mean)(X).shape[1], mean)
    inputs = InputScaling.of(X)
    check_constant_columns(~inputs.active, names)
    scaled = inputs.runs(X)
    basis = basis_in_units(mean, inputs)
    H = basis(scaled)
    check_enough_runs(len(X), H.shape[1], mean)
    centre = constant_coefficients(H) is not None
    check_varying_output(y, centred=centre)
    output = OutputScaling.of(y, centre=centre)
    target = output.runs(y)
    treatment = as_nugget(nugget, nugget_prior)
    if isinstance(treatment, FixedNugget):
        check_repeats(scaled, target, treatment.nugget)
    posterior = Posterior(scaled, target, kernel, basis, prior, treatment, n_jobs=n_jobs)
    varying = tuple(name for name, varies in zip(names, inputs.active, strict=True) if varies)
    return Problem(inputs, output, posterior, varying)


def learn(
    problem: Problem,
    random_state: Any,
    *,
    goal: str,
    n_samples: int | None,
    predictive: str,
    scheme: str | Scheme,
    progress: bool,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    executor: Any = None,
) -> Learnt:
    """Sample the posterior, find its modes and choose the components of the mixture."""
    posterior = problem.posterior
    rng = as_generator(random_state)
    seed = int.from_bytes(rng.bytes(16), "little")
    result = sample_posterior(
        posterior,
        n_samples,
        goal="optimum" if goal == "optimum" else "posterior",
        scheme=scheme,
        # Without a seed, that of the checkpoint is as good as another.
        random_state=None if random_state is None and checkpoint is not None else seed,
        n_jobs=posterior.n_jobs,
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        executor=executor,
    )
    if result.status.name == "interrupted":
        raise FitInterrupted.of(result, checkpoint)
    if result.random_state != seed:  # so that what follows is that of the run in the checkpoint
        rng = np.random.default_rng(np.random.SeedSequence(result.random_state, spawn_key=_AFTER))
    modes = result.modes(min_mass=0.0)
    best = find_best(result, modes)
    if goal == "map":
        draws, weights = np.asarray(best.location)[None], np.ones(1)
    else:
        draws, weights = merge_equal(result.draws, result.weights)
        index, weights = thin(draws, weights / weights.sum(), _N_RESERVOIR, rng)
        draws = draws[index]
    many = Ensemble(posterior, draws, weights, problem.output, predictive)
    ensemble, compression = compress(many, _N_COMPONENTS, rng)
    shown = connect_modes(result, [mode for mode in modes if mode.mass >= _MODE_MASS])
    described = [
        describe(mode, posterior, problem.inputs, problem.names, result.log_evidence)
        for mode in [best, *shown]
    ]
    return Learnt(result, ModeTable(described[1:]), described[0], ensemble, compression)


def log_evidence(problem: Problem, result: SampleResult) -> float:
    """Log density of the outputs in the user's units, with the likelihood's constants."""
    posterior = problem.posterior
    freedom = posterior.n_runs - posterior.n_basis  # beta and sigma2 are integrated out
    return float(
        result.log_evidence
        + gammaln(0.5 * freedom)
        - 0.5 * freedom * np.log(np.pi)
        - posterior.n_runs * problem.output.log_scale
    )


def summaries(problem: Problem, result: SampleResult, ensemble: Ensemble) -> dict[str, Any]:
    """Fitted attributes that follow from the others, in the user's units."""
    posterior, inputs, output = problem.posterior, problem.inputs, problem.output
    coefficients = posterior.coefficients(ensemble.draws)
    return {
        "draws_": draw_table(posterior, inputs, result.draws, problem.names),
        "weights_": result.weights,
        "log_evidence_": log_evidence(problem, result),
        "log_evidence_error_": result.log_evidence_error,
        "beta_": trend_summary(
            posterior, coefficients, ensemble.weights, inputs, output, problem.names
        ),
        "sigma2_": variance_summary(coefficients, ensemble.weights, output),
    }
