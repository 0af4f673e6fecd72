r"""Main effects: the emulator's mean along one input, averaged over all others.

:math:`m_l(x_l) = E[f(x) \mid x_l]` for inputs uniform on a box; exact up to one-dimensional
quadrature, for each draw.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paims._arrays import FloatArray
from paims._parallel import single_threaded_blas
from paims.diagnostics._separable import SeparableMeans, as_names, products_of_others
from paims.diagnostics._weighted import weighted_quantile
from paims.gp import Posterior

__all__ = ["MainEffects", "main_effects"]


@dataclass(frozen=True, eq=False)
class MainEffects:
    """Main effects of p inputs.

    Attributes
    ----------
    names : tuple of str
    x : (p, k) ndarray
        Values of each input.
    mean : (p, k) ndarray
        Effect in the mixture's mean.
    std : (p, k) ndarray
        Standard deviation over draws.
    lower, upper : (p, k) ndarray
        5 % and 95 % quantiles over draws.
    overall : float
        Average of the mixture's mean over the box.
    """

    names: tuple[str, ...]
    x: FloatArray
    mean: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray
    overall: float

    @property
    def swing(self) -> FloatArray:
        """Largest minus smallest value of each effect, ``(p,)``."""
        return np.asarray(np.ptp(self.mean, axis=1))

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        order = np.argsort(-self.swing)
        listed = ", ".join(f"{self.names[i]} {self.swing[i]:.3g}" for i in order)
        return f"Moved alone over its range, each input changes the average output by: {listed}."

    def in_units(
        self, x_offset: Any, x_scale: Any, y_offset: float = 0.0, y_scale: float = 1.0
    ) -> MainEffects:
        """Same effects with inputs ``x_offset + x_scale x``, outputs ``y_offset + y_scale y``.

        Parameters
        ----------
        x_offset, x_scale : float or (p,) array_like
        y_offset, y_scale : float
            ``y_scale`` must be positive.
        """
        if not y_scale > 0.0:
            raise ValueError(f"y_scale must be positive; got {y_scale!r}.")
        offset = np.broadcast_to(np.asarray(x_offset, dtype=np.float64), (len(self.x),))
        scale = np.broadcast_to(np.asarray(x_scale, dtype=np.float64), (len(self.x),))
        return replace(
            self,
            x=offset[:, None] + scale[:, None] * self.x,
            mean=y_offset + y_scale * self.mean,
            std=y_scale * self.std,
            lower=y_offset + y_scale * self.lower,
            upper=y_offset + y_scale * self.upper,
            overall=y_offset + y_scale * self.overall,
        )


def main_effects(
    posterior: Posterior,
    u: Any,
    weights: Any = None,
    *,
    n_points: int = 41,
    box: Any = None,
    names: Any = None,
) -> MainEffects:
    """Main effects of all inputs, with their spread over draws.

    Parameters
    ----------
    posterior : Posterior
        With a polynomial trend (not a user's function).
    u : (m, n_params) array_like
        Draws of the hyper-parameters.
    weights : (m,) array_like, optional
        Their weights; equal by default.
    n_points : int, default 41
        Values of each input, equally spaced from end to end of the box.
    box : (p, 2) array_like, optional
        The inputs are uniform between these ends; the training range by default.
    names : sequence of str, optional
        Names of the inputs.

    Returns
    -------
    MainEffects
        In the posterior's units; see :meth:`MainEffects.in_units`.
    """
    if n_points < 2:
        raise ValueError(f"n_points must be at least 2; got {n_points!r}.")
    means = SeparableMeans(posterior, u, weights, box)
    p = means.n_inputs
    x = np.linspace(means.box[:, 0], means.box[:, 1], n_points, axis=1)
    effects = np.empty((means.n_draws, p, n_points))
    overall = 0.0
    with single_threaded_blas():
        for block in means.blocks():
            others = products_of_others(block.integrals)
            for i in range(p):
                c = (block.coefficients * others[i])[:, :, None]
                effects[block.rows, i] = (means.factor(block.rows, i, x[i]) @ c)[:, :, 0]
            averages = (block.coefficients * block.integrals.prod(axis=0)).sum(axis=1)
            overall += float(means.weights[block.rows] @ averages)
    mean = np.tensordot(means.weights, effects, axes=1)
    std = np.sqrt(np.tensordot(means.weights, (effects - mean) ** 2, axes=1))
    lower, upper = weighted_quantile(effects, means.weights, np.array([0.05, 0.95]))
    return MainEffects(as_names(names, p), x, mean, std, lower, upper, overall)
