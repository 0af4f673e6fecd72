"""All numbers of a report, computed once for the page, the verdict and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paims._arrays import FloatArray
from paims.diagnostics import LeaveOneOut, MainEffects, Screening, Validation, screen
from paims.emulator import Emulator, MixturePrediction
from paims.emulator._averaging import label
from paims.emulator._checks import held_out_output
from paims.emulator._description import feature_names, held_out_inputs
from paims.gp._means import is_polynomial

__all__ = ["NextRun", "Study", "prediction_at", "study"]

_LOG2_CANDIDATES = 10


@dataclass(frozen=True, eq=False)
class NextRun:
    """Where another run would tell most.

    Attributes
    ----------
    point : (n_features,) ndarray
        Where the emulator is least sure, in the user's units.
    std : float
        Its standard deviation there.
    typical_std : float
        The median of the standard deviation over the box of the runs.
    telling : (n_features,) ndarray or None
        Where the two heaviest modes differ most, in units of the standard deviation.
    difference : float
        By how much, in the user's units.
    """

    point: FloatArray
    std: float
    typical_std: float
    telling: FloatArray | None
    difference: float


@dataclass(frozen=True)
class KernelRow:
    """A kernel that was tried; its weight and its error are None if it was left out.

    Attributes
    ----------
    name : str
    log_evidence : float
    weight : float or None
    error : float or None
        Root mean square error of runs that are left out, in standard deviations of the outputs;
        None too for too few runs.
    """

    name: str
    log_evidence: float
    weight: float | None
    error: float | None


@dataclass(frozen=True, eq=False)
class Kernels:
    """Kernels of a mixture of several.

    Attributes
    ----------
    rows : list of KernelRow
        By falling weight.
    verdict : str
        What the heaviest two differ in, and where.
    """

    rows: list[KernelRow]
    verdict: str


@dataclass(frozen=True, eq=False)
class Study:
    """Numbers about an emulator.

    Attributes
    ----------
    emulator : Emulator
    names : tuple of str
        Of all inputs.
    X, y : ndarray
        The runs, in the user's units.
    loo : LeaveOneOut or None
        None if there are too few runs to leave one out.
    screening : Screening or None
        None for a trend that is a user's function, or a kernel that is no product.
    effects : MainEffects or None
        In the user's units.
    validation : Validation or None
        None without held-out runs.
    n_held_out : int
        Held-out runs that were given; the joint checks use an even choice of very many.
    next_run : NextRun
    kernels : Kernels or None
        None if one kernel was asked for.
    """

    emulator: Emulator
    names: tuple[str, ...]
    X: FloatArray
    y: FloatArray
    loo: LeaveOneOut | None
    screening: Screening | None
    effects: MainEffects | None
    validation: Validation | None
    n_held_out: int
    next_run: NextRun
    kernels: Kernels | None

    @property
    def why_no_shares(self) -> str:
        """Why there is no screening, in a sentence."""
        posterior = self.emulator.posterior_
        if not posterior.kernel.separable:
            reason = "The kernel is not a product of one factor per input"
        else:
            reason = "The trend is a function of yours"
        return f"{reason}, so shares of the variance are not computed."


def study(emulator: Emulator, held_out: tuple[Any, Any] | None = None) -> Study:
    """Compute all numbers of a report.

    Parameters
    ----------
    emulator : Emulator
    held_out : tuple of (k, n_features) and (k,) array_like, optional
        Runs that the emulator has not seen.
    """
    posterior, inputs, output = emulator.posterior_, emulator.inputs_, emulator.output_
    screening, effects = None, None
    if is_polynomial(posterior.mean) and posterior.kernel.separable:
        # The indices of the others would not add to the picture: all explain the same runs.
        _, draws, weights = next(emulator.ensemble_.parts())
        weights = weights / weights.sum()
        screening = screen(posterior, draws, weights, names=emulator.map_.input_names)
        ends = inputs.undo(np.vstack([np.zeros(posterior.n_inputs), np.ones(posterior.n_inputs)]))
        low, high = ends[:, inputs.active]
        effects = screening.effects.in_units(
            low,
            high - low,
            float(output.value(np.array(0.0))),
            float(output.difference(np.array(1.0))),
        )
    validation = None
    if held_out is not None:
        X = held_out_inputs(emulator, held_out[0])
        validation = emulator.ensemble_.validate(inputs.apply(X), held_out_output(X, held_out[1]))
    enough = posterior.n_runs >= posterior.n_basis + 4  # to leave one out
    return Study(
        emulator=emulator,
        names=feature_names(emulator),
        X=inputs.undo(posterior.X),
        y=output.value(posterior.y),
        loo=emulator.leave_one_out() if enough else None,
        screening=screening,
        effects=effects,
        validation=validation,
        n_held_out=0 if held_out is None else len(held_out[1]),
        next_run=_next_run(emulator),
        kernels=_kernels(emulator, enough) if emulator.kernel_evidence_ else None,
    )


def _kernels(emulator: Emulator, enough: bool) -> Kernels:
    """Weights, evidences and errors of the kernels, and what the heaviest two differ in."""
    ensemble, weights = emulator.ensemble_, emulator.kernel_weights_
    errors: dict[str, float] = {}
    means = []
    box = _box(ensemble.posterior.n_inputs)
    for posterior, draws, w in ensemble.parts():
        share = w / w.sum()
        means.append(share @ posterior.predict(draws, box).mean)
        if enough:
            off = share @ posterior.leave_one_out(draws).mean - posterior.y
            errors[label(posterior.kernel)] = float(np.sqrt(np.nanmean(off**2)))
    rows = [
        KernelRow(name, value, weights.get(name), errors.get(name))
        for name, value in emulator.kernel_evidence_.items()
    ]
    rows.sort(key=lambda row: -(row.weight or 0.0))
    return Kernels(rows, _difference(emulator, means, box))


def _difference(emulator: Emulator, means: Sequence[FloatArray], box: FloatArray) -> str:
    """What the means under the two heaviest kernels differ in, in words."""
    first, *others = (name.replace("_", " ") for name in emulator.kernel_weights_)
    if len(means) < 2:
        return f"The runs leave no doubt: the others weigh less than 1 % beside the {first}."
    std = emulator.ensemble_.moments(box)[1]
    gap = np.abs(means[0] - means[1]) / std
    most = int(np.argmax(gap))
    point = emulator.inputs_.undo(box[most : most + 1])[0]
    where = ", ".join(
        f"{name} = {value:.4g}" for name, value in zip(feature_names(emulator), point, strict=True)
    )
    return (
        f"Over the box of the runs the means under {first} and {others[0]} differ by "
        f"{np.sqrt(np.mean(gap**2)):.2g} predictive standard deviations (root mean square), and "
        f"most, by {gap[most]:.2g}, at {where}."
    )


def _box(n_inputs: int) -> FloatArray:
    """A Sobol' set of scaled inputs."""
    from scipy.stats import qmc  # noqa: PLC0415 - slow to import

    made: FloatArray = qmc.Sobol(n_inputs, scramble=False).random_base2(_LOG2_CANDIDATES)
    return made


def prediction_at(emulator: Emulator, X: FloatArray) -> MixturePrediction:
    """The mixture at inputs ``X`` (k, n_features) whose columns are in the emulator's order."""
    return emulator.ensemble_.mixture(emulator.inputs_.apply(X))


def _next_run(emulator: Emulator) -> NextRun:
    """Search the box of the runs, with a Sobol' set."""
    posterior, inputs, output = emulator.posterior_, emulator.inputs_, emulator.output_
    box = _box(posterior.n_inputs)
    _, std = emulator.ensemble_.moments(box)
    worst = int(np.argmax(std))
    telling, difference = None, 0.0
    modes = emulator.modes_[:2]
    if len(modes) == 2:
        gap = _means_of_modes(emulator, modes, box)
        most = int(np.argmax(gap / std))
        telling = inputs.undo(box[most : most + 1])[0]
        difference = float(output.difference(gap[most : most + 1])[0])
    return NextRun(
        point=inputs.undo(box[worst : worst + 1])[0],
        std=float(output.difference(std)[worst]),
        typical_std=float(np.median(output.difference(std))),
        telling=telling,
        difference=difference,
    )


def _means_of_modes(emulator: Emulator, modes: Sequence[Any], box: FloatArray) -> FloatArray:
    """Absolute difference of the means of two modes, in scaled units."""
    posteriors = {label(one.kernel): one for one in emulator.ensemble_.posteriors}
    means = []
    for mode in modes:
        posterior = posteriors.get(mode.kernel, emulator.posterior_)
        phi = posterior.kernel.from_length_scale(mode.length_scales / emulator.inputs_.range)
        nugget = mode.nugget if posterior.nugget.n_params == 1 else None
        means.append(posterior.predict(posterior.from_physical(phi[None], nugget), box).mean[0])
    return np.asarray(np.abs(means[0] - means[1]))
