"""The mixture as data for the page: what its script needs to predict as the library does."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from paims._arrays import FloatArray
from paims._names import shortened, visible
from paims.emulator import Emulator
from paims.emulator._scaling import InputScaling
from paims.gp import Kernel, Posterior
from paims.gp._factorisation import Factorisation
from paims.gp._kernels import has_form
from paims.gp._means import is_polynomial

__all__ = ["N_COMPONENTS", "n_components", "obstacle", "page_mixture"]

N_COMPONENTS = 20
# Characters that the factors of all components may take together.
_BUDGET = 2_500_000
# Of the polynomials that stand for a kernel that numbers do not tell, and their error.
_DEGREE = 14
_NEGLIGIBLE = 1e-15
_NODES = chebpts1(_DEGREE + 1)
_TO_COEFFICIENTS = np.linalg.inv(chebvander(_NODES, _DEGREE))
# Largest distance in a table. Inputs of the page are within the range of the runs, which is 1.
_REACH = 2.0


def n_components(n_runs: int, n_mixtures: int = 1) -> int:
    """Components of a page's mixture: as many as fit into the page, 20 at most, maybe none."""
    per_component = (n_runs * (n_runs + 1) // 2 + 4 * n_runs) * 8 * 4 // 3
    return int(min(N_COMPONENTS, _BUDGET // n_mixtures // per_component))


def obstacle(emulator: Emulator, n_mixtures: int = 1) -> str:
    """Why the page cannot compute the predictions, in words; empty if it can."""
    posterior = emulator.posterior_
    if not n_components(posterior.n_runs, n_mixtures):
        return f"An emulator of {posterior.n_runs:,} runs is too large"
    if not is_polynomial(posterior.mean):
        return "The trend is a function of yours"
    if not all(one.kernel.separable for one, _, _ in emulator.ensemble_.parts()):
        return "The kernel is not a product of one factor per input"
    return ""


def page_mixture(
    emulator: Emulator, n_mixtures: int = 1
) -> tuple[Emulator, dict[str, Any]] | None:
    """Compressed emulator and its mixture as JSON-ready data.

    Parameters
    ----------
    emulator : Emulator
    n_mixtures : int
        How many share the room in the page.

    Returns
    -------
    tuple of Emulator and dict, or None
        None if the page cannot compute the predictions: too many runs to hold their factors, or
        a trend of the user's that is no polynomial, or a kernel that is no product of factors.
    """
    posterior = emulator.posterior_
    if obstacle(emulator, n_mixtures) or not is_polynomial(posterior.mean):
        return None
    small = emulator.compress(n_components(posterior.n_runs, n_mixtures))
    parts = list(small.ensemble_.parts())
    dof = posterior.n_runs - posterior.n_basis
    student = emulator.predictive == "student_t"
    inputs, output = emulator.inputs_, emulator.output_
    active = inputs.active
    return small, {
        "names": [shortened(visible(name), 40) for name in emulator.map_.input_names],
        "n": posterior.n_runs,
        "dof": dof if student else None,
        "kernels": [_kernel(one.kernel, one.to_physical(draws)[0]) for one, draws, _ in parts],
        "exponents": posterior.mean.exponents(posterior.n_inputs).tolist(),
        "X": _encoded(posterior.X),
        "inputs": {
            "exponent": inputs.exponent[active].tolist(),
            "lower": inputs.lower[active].tolist(),
            "width": inputs.width[active].tolist(),
        },
        "ends": _ends(inputs).tolist(),
        "output": {"exponent": output.exponent, "shift": output.shift, "scale": output.scale},
        "components": [
            component
            for kernel, (one, draws, weights) in enumerate(parts)
            # The Gaussian has the Student-t's variance.
            for component in _components(kernel, one, draws, weights, dof if student else dof - 2)
        ],
    }


def _components(
    kernel: int, posterior: Posterior, draws: FloatArray, weights: FloatArray, dof: int
) -> list[dict[str, Any]]:
    """The components under one kernel."""
    phi, nugget = posterior.to_physical(draws)
    factors = Factorisation(posterior.X, posterior.H, posterior.y, posterior.kernel, phi, nugget)
    lower_triangle = np.tril_indices(posterior.n_runs)
    return [
        {
            "kernel": kernel,
            "row": j,
            "weight": float(weights[j]),
            "phi": phi[j].tolist(),
            "nugget": float(nugget[j]),
            "sigma2": float(factors.S2[j] / dof),
            "beta": factors.beta[j].tolist(),
            "L": _encoded(factors.L[j][lower_triangle]),
            "e": _encoded(factors.residual[j]),
            "F": _encoded(factors.F[j]),
            "R": _encoded(factors.R[j]),
        }
        for j in range(len(draws))
    ]


def _kernel(kernel: Kernel, phi: FloatArray) -> dict[str, Any]:
    """A kernel as numbers: those of its form, or tables for each component and input."""
    if has_form(kernel):
        return {key: np.asarray(value).tolist() for key, value in kernel.form._asdict().items()}

    def table(value: float) -> str:
        return _encoded(
            np.array(_pieces(lambda d: kernel.factor(d, np.array(value)), 0.0, _REACH))
        )

    return {"degree": _DEGREE, "tables": [[table(value) for value in row] for row in phi]}


def _pieces(
    factor: Callable[[FloatArray], FloatArray], lower: float, upper: float, depth: int = 24
) -> list[FloatArray]:
    """Halve an interval until a polynomial is the factor on each part.

    Each row has the upper end of a part, and the coefficients of Chebyshev polynomials on it.
    """
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    coefficients = _TO_COEFFICIENTS @ factor(middle + half * _NODES)
    if depth == 0 or np.abs(coefficients[-2:]).max() < _NEGLIGIBLE:
        return [np.append(upper, coefficients)]
    return [
        *_pieces(factor, lower, middle, depth - 1),
        *_pieces(factor, middle, upper, depth - 1),
    ]


def _ends(inputs: InputScaling) -> FloatArray:
    """Least and largest value of each varying input, ``(p, 2)``, in the user's units."""
    p = int(inputs.active.sum())
    ends = inputs.undo(np.vstack([np.zeros(p), np.ones(p)]))[:, inputs.active]
    return np.ascontiguousarray(ends.T)


def _encoded(array: FloatArray) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode()
