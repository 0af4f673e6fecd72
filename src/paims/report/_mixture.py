"""The mixture as data for the page: what its script needs to predict as the library does."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from paims._arrays import FloatArray
from paims.emulator import Emulator
from paims.emulator._scaling import InputScaling
from paims.gp import (
    Constant,
    Linear,
    Matern32,
    Matern52,
    Matern72,
    PowerExponential,
    Quadratic,
    SquaredExponential,
    Zero,
)
from paims.gp._factorisation import Factorisation

#: What the page's script knows; a subclass may have changed the formula.
_KERNELS = (SquaredExponential, Matern32, Matern52, Matern72, PowerExponential)
_BASES = (Zero, Constant, Linear, Quadratic)

N_COMPONENTS = 20
# Characters that the factors of all components may take together.
_BUDGET = 2_500_000


def n_components(n_runs: int) -> int:
    """Components of the page's mixture: as many as fit into the page, 20 at most, maybe none."""
    per_component = (n_runs * (n_runs + 1) // 2 + 4 * n_runs) * 8 * 4 // 3
    return int(min(N_COMPONENTS, _BUDGET // per_component))


def page_mixture(emulator: Emulator) -> tuple[Emulator, dict[str, Any]] | None:
    """Compressed emulator and its mixture as JSON-ready data.

    Parameters
    ----------
    emulator : Emulator

    Returns
    -------
    tuple of Emulator and dict, or None
        None if the page cannot compute the predictions: too many runs to hold their factors, or
        a kernel or trend of the user's.
    """
    posterior = emulator.posterior_
    size = n_components(posterior.n_runs)
    if not size or type(posterior.kernel) not in _KERNELS or type(posterior.mean) not in _BASES:
        return None
    small = emulator.compress(size)
    draws, weights = small.ensemble_.draws, small.ensemble_.weights
    phi, nugget = posterior.to_physical(draws)
    factors = Factorisation(posterior.X, posterior.H, posterior.y, posterior.kernel, phi, nugget)
    dof = posterior.n_runs - posterior.n_basis
    student = emulator.predictive == "student_t"
    # The Gaussian has the Student-t's variance.
    sigma2 = factors.S2 / (dof if student else dof - 2)
    lower_triangle = np.tril_indices(posterior.n_runs)
    inputs, output = emulator.inputs_, emulator.output_
    active = inputs.active
    return small, {
        "names": list(emulator.map_.input_names),
        "n": posterior.n_runs,
        "dof": dof if student else None,
        "kernel": {
            "name": posterior.kernel.name,
            "power": getattr(posterior.kernel, "power", None),
        },
        "basis": posterior.mean.name,
        "X": _encoded(posterior.X),
        "inputs": {
            "exponent": inputs.exponent[active].tolist(),
            "lower": inputs.lower[active].tolist(),
            "width": inputs.width[active].tolist(),
        },
        "ends": _ends(inputs).tolist(),
        "output": {"exponent": output.exponent, "shift": output.shift, "scale": output.scale},
        "components": [
            {
                "weight": float(weights[j]),
                "phi": phi[j].tolist(),
                "nugget": float(nugget[j]),
                "sigma2": float(sigma2[j]),
                "beta": factors.beta[j].tolist(),
                "L": _encoded(factors.L[j][lower_triangle]),
                "e": _encoded(factors.residual[j]),
                "F": _encoded(factors.F[j]),
                "R": _encoded(factors.R[j]),
            }
            for j in range(len(draws))
        ],
    }


def _ends(inputs: InputScaling) -> FloatArray:
    """Least and largest value of each varying input, ``(p, 2)``, in the user's units."""
    p = int(inputs.active.sum())
    ends = inputs.undo(np.vstack([np.zeros(p), np.ones(p)]))[:, inputs.active]
    return np.ascontiguousarray(ends.T)


def _encoded(array: FloatArray) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode()
