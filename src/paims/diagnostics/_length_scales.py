r"""The posterior of each length-scale, relative to the range of its input.

A length-scale says little by itself: kernels scale distances differently. The correlation
:math:`\rho_l = r(\text{range}_l; \phi_l)` of two points at opposite ends of one input, equal in
all others, can be read for any kernel: near 1 the process does not see the input (what is left of
it is in the trend), near 0 the output wiggles within the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from paims._arrays import FloatArray
from paims.diagnostics._marginals import as_weights
from paims.diagnostics._separable import as_names
from paims.diagnostics._weighted import weighted_quantile
from paims.gp import Posterior
from paims.gp._checks import check_points

__all__ = ["LengthScales", "length_scales"]

_LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


@dataclass(frozen=True, eq=False)
class LengthScales:
    """Relative length-scales of p inputs.

    Attributes
    ----------
    names : tuple of str
    relative : (m, p) ndarray
        Length-scale of each draw divided by the input's range.
    weights : (m,) ndarray
    levels : (5,) ndarray
        0.05, 0.25, 0.5, 0.75, 0.95.
    quantiles : (5, p) ndarray
        Quantiles of ``relative``.
    correlation : (5, p) ndarray
        Quantiles of the correlation from end to end of the input's range.
    flat_above : float
    probability_flat : (p,) ndarray
        Probability that this correlation is at least ``flat_above``: the process does not see
        the input. The trend may.
    """

    names: tuple[str, ...]
    relative: FloatArray
    weights: FloatArray
    levels: FloatArray
    quantiles: FloatArray
    correlation: FloatArray
    flat_above: float
    probability_flat: FloatArray

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        parts = [
            f"{name} {middle:.3g} ({low:.3g}-{high:.3g})"
            for name, low, middle, high in zip(
                self.names, self.quantiles[0], self.quantiles[2], self.quantiles[4], strict=True
            )
        ]
        text = f"Length-scales, in ranges of the inputs (median, 90 %): {', '.join(parts)}."
        flat = [
            name
            for name, probability in zip(self.names, self.probability_flat, strict=True)
            if probability >= 0.95
        ]
        if flat:
            text += f" The process does not see {', '.join(flat)}; the trend may."
        return text


def length_scales(
    posterior: Posterior,
    u: Any,
    weights: Any = None,
    *,
    flat_above: float = 0.99,
    names: Any = None,
) -> LengthScales:
    """Posterior of the length-scales relative to the ranges of the inputs.

    Parameters
    ----------
    posterior : Posterior
    u : (m, n_params) array_like
        Draws of the hyper-parameters.
    weights : (m,) array_like, optional
        Their weights; equal by default.
    flat_above : float, default 0.99
        Correlation from end to end from which on the process counts as flat in the input.
    names : sequence of str, optional
        Names of the inputs.

    Returns
    -------
    LengthScales
    """
    if not 0.0 < flat_above < 1.0:
        raise ValueError(f"flat_above must lie in (0, 1); got {flat_above!r}.")
    u = check_points("u", u, posterior.n_params)
    w = as_weights(weights, len(u))
    phi, _ = posterior.to_physical(u)
    extent = np.ptp(posterior.X, axis=0)
    relative = posterior.kernel.length_scale(phi) / extent
    correlation = posterior.kernel.factor(np.broadcast_to(extent, phi.shape), phi)
    return LengthScales(
        names=as_names(names, posterior.n_inputs),
        relative=relative,
        weights=w,
        levels=_LEVELS,
        quantiles=weighted_quantile(relative, w, _LEVELS),
        correlation=weighted_quantile(correlation, w, _LEVELS),
        flat_above=flat_above,
        probability_flat=w @ (correlation >= flat_above),
    )
