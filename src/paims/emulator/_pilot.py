"""A first look at several outputs, or at many runs under several kernels.

Cheap climbs by the gradient, with the jointly robust prior whatever the fit's own: they decide how
the outputs are treated and how many of them count, or which kernel is worth a costly fit, not what
is learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from paims._arrays import FloatArray, IndexArray
from paims.emulator._scaling import InputScaling
from paims.emulator._trend import basis_in_units
from paims.gp import Kernel, Posterior
from paims.gp._nugget import as_nugget
from paims.gp._shared import SharedPosterior, effective_outputs
from paims.inference import reference

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

_N_START = 64
_STEPS = 60
# Outputs that the common climb looks at: an even choice of many.
_COMMON = 8


@dataclass(frozen=True, eq=False)
class Pilot:
    """What a first look found.

    Attributes
    ----------
    together : (n_params,) ndarray
        The best point for all outputs.
    effective : float
        Effective number of outputs.
    """

    together: FloatArray
    effective: float


def highest(posteriors: Sequence[Posterior]) -> Posterior:
    """The posterior whose top is highest, of those under several kernels.

    With hundreds of runs their evidences are tens or hundreds apart, and so are their tops.
    """
    heights = [float(one(_climb([one], _start([one]))[None])[0]) for one in posteriors]
    return posteriors[int(np.argmax(heights))]


def look(
    X: FloatArray, Y: FloatArray, inputs: InputScaling, asked: Emulator, kernel: Kernel
) -> Pilot:
    """Climb to the best common point of scaled runs ``X`` (n, p) and ``Y`` (n, m)."""
    posterior = SharedPosterior(X, Y, *_model(inputs, asked, kernel), n_jobs=asked.n_jobs)
    singles = _singles(X, Y[:, _even(Y.shape[1])], inputs, asked, kernel)
    together = _common_top(singles)
    return Pilot(together, effective_outputs(posterior.residuals(together)))


def common_point(
    X: FloatArray, Y: FloatArray, inputs: InputScaling, asked: Emulator, kernel: Kernel
) -> tuple[FloatArray, float]:
    """Ranges ``(1, p)`` and nugget that an even choice of the scaled outputs has in common."""
    singles = _singles(X, Y[:, _even(Y.shape[1])], inputs, asked, kernel)
    phi, nugget = singles[0].to_physical(_common_top(singles)[None])
    return phi, float(nugget[0])


def gain_of_own(
    X: FloatArray,
    Y: FloatArray,
    inputs: InputScaling,
    asked: Emulator,
    kernel: Kernel,
    pilot: Pilot,
) -> float:
    """How much log density (on average over outputs) own hyper-parameters are worth."""
    gains = []
    for single in _singles(X, Y, inputs, asked, kernel):
        own = _climb([single], pilot.together)
        gains.append(float(single(own[None])[0] - single(pilot.together[None])[0]))
    return float(np.mean(gains))


def _even(m: int) -> IndexArray:
    """Some of m outputs."""
    return np.unique(np.linspace(0, m - 1, min(_COMMON, m)).astype(int))


def _model(inputs: InputScaling, asked: Emulator, kernel: Kernel) -> tuple[Any, ...]:
    nugget = as_nugget(asked.nugget, "uniform", int(inputs.active.sum()))
    return kernel, basis_in_units(asked.mean, inputs), "jointly_robust", nugget


def _singles(
    X: FloatArray, Y: FloatArray, inputs: InputScaling, asked: Emulator, kernel: Kernel
) -> list[Posterior]:
    found = []
    for y in Y.T:
        rows = ~np.isnan(y)
        model = _model(inputs, asked, kernel)
        found.append(Posterior(X[rows], y[rows], *model, n_jobs=asked.n_jobs))
    return found


def _start(singles: list[Posterior]) -> FloatArray:
    """The best of some points of the reference, by the outputs' mean log density."""
    u = reference(singles[0]).sample(_N_START, np.random.default_rng(0))
    middle = np.zeros((1, u.shape[1]))
    if singles[0].nugget.n_params:
        middle[0, -1] = -7.0
    u = np.vstack([middle, u])
    values = np.mean([single(u) for single in singles], axis=0)
    return np.asarray(u[int(np.argmax(values))], dtype=np.float64)


def _common_top(singles: list[Posterior]) -> FloatArray:
    """The higher of two tops of the outputs' mean log density.

    With many inputs the best of the reference's points may lie where runs are hardly correlated,
    and the gradient leads from there to no correlation at all. The other climb begins with
    lengths that grow with the root of the number of inputs, so that typical runs stay correlated.
    """
    first = singles[0]
    wide = first.kernel.phi_power * np.log(np.ptp(first.X, axis=0) * np.sqrt(first.n_inputs))
    wide = np.append(wide, [-7.0] * first.nugget.n_params)
    tops = [_climb(singles, start) for start in (_start(singles), wide)]
    heights = [np.mean([float(single(top[None])[0]) for single in singles]) for top in tops]
    return tops[int(np.argmax(heights))]


def _climb(singles: list[Posterior], start: FloatArray) -> FloatArray:
    """Top of the outputs' mean log density that the gradient leads to."""

    def descent(u: FloatArray) -> tuple[float, FloatArray]:
        value, slope = 0.0, np.zeros_like(u)
        for single in singles:
            v, g = single.value_and_gradient(u[None])
            value, slope = value - float(v[0]), slope - g[0]
        if not np.isfinite(value):
            return 1e30, np.zeros_like(u)
        return value / len(singles), slope / len(singles)

    found = minimize(
        descent,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(value - 12.0, value + 12.0) for value in start],
        options={"maxiter": _STEPS},
    )
    return np.asarray(found.x, dtype=np.float64)
