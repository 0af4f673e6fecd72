"""All numbers of a report, computed once for the page, the verdict and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paims._arrays import FloatArray, refuse_what_is_no_number
from paims.diagnostics import LeaveOneOut, MainEffects, Screening, Validation, screen
from paims.emulator import Emulator, MixturePrediction
from paims.emulator._description import feature_names
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
        None for a trend that is a user's function.
    effects : MainEffects or None
        In the user's units.
    validation : Validation or None
        None without held-out runs.
    n_held_out : int
        Held-out runs that were given; the joint checks use an even choice of very many.
    next_run : NextRun
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


def study(emulator: Emulator, held_out: tuple[Any, Any] | None = None) -> Study:
    """Compute all numbers of a report.

    Parameters
    ----------
    emulator : Emulator
    held_out : tuple of (k, n_features) and (k,) array_like, optional
        Runs that the emulator has not seen.
    """
    posterior, inputs, output = emulator.posterior_, emulator.inputs_, emulator.output_
    draws, weights = emulator.ensemble_.draws, emulator.ensemble_.weights
    screening, effects = None, None
    if is_polynomial(posterior.mean):
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
        for name, values in zip(("X", "y"), held_out, strict=True):
            refuse_what_is_no_number(f"{name} of the held-out runs", values)
        X, y = (np.asarray(values, dtype=np.float64) for values in held_out)
        validation = emulator.ensemble_.validate(inputs.apply(X), y)
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
    )


def prediction_at(emulator: Emulator, X: FloatArray) -> MixturePrediction:
    """The mixture at inputs ``X`` (k, n_features) whose columns are in the emulator's order."""
    return emulator.ensemble_.mixture(emulator.inputs_.apply(X))


def _next_run(emulator: Emulator) -> NextRun:
    """Search the box of the runs, with a Sobol' set."""
    from scipy.stats import qmc  # noqa: PLC0415 - slow to import

    posterior, inputs, output = emulator.posterior_, emulator.inputs_, emulator.output_
    box = qmc.Sobol(posterior.n_inputs, scramble=False).random_base2(_LOG2_CANDIDATES)
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
    posterior = emulator.posterior_
    lengths = np.array([mode.length_scales for mode in modes]) / emulator.inputs_.range
    phi = posterior.kernel.from_length_scale(lengths)
    estimated = posterior.nugget.n_params == 1
    nugget = np.array([mode.nugget for mode in modes]) if estimated else None
    mean = posterior.predict(posterior.from_physical(phi, nugget), box).mean
    return np.asarray(np.abs(mean[0] - mean[1]))
