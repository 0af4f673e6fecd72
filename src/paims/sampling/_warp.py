"""Monotone maps of one coordinate that make a sample of it look normal.

Between knots a rational-quadratic spline (Gregory and Delbourgo 1982), which has a closed inverse;
beyond the outer knots z^2 grows linearly with the distance, so that a normal z has exponential
tails there, which are never lighter than those of a Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from paims._arrays import Array

_KNOTS = np.array([-2.1, -1.4, -0.7, 0.0, 0.7, 1.4, 2.1])  # normal scores
_LEAST_SLOPE, _MOST_SLOPE = 0.02, 50.0


@dataclass(frozen=True, eq=False)
class Warp:
    """An increasing map t -> z.

    Attributes
    ----------
    t, z : tuple of float
        Knots, ascending.
    slope : tuple of float
        dz/dt at the knots.
    """

    t: tuple[float, ...]
    z: tuple[float, ...]
    slope: tuple[float, ...]

    @staticmethod
    def of(t: Array, w: Array) -> Warp | None:
        """Fit to weighted values; None where there is nothing to fit."""
        order = np.argsort(t, kind="stable")
        t, w = t[order], w[order] / w.sum()
        edges = np.cumsum(w) - 0.5 * w
        knot = np.interp(ndtr(_KNOTS), edges, t)
        if np.min(np.diff(knot)) < 1e-6 * (knot[-1] - knot[0]) or not knot[-1] > knot[0]:
            return None
        secant = np.diff(_KNOTS) / np.diff(knot)
        inner = 2.0 / (1.0 / secant[:-1] + 1.0 / secant[1:])
        # The mean excess of a standard normal over an outer knot, over that of the values.
        normal = _mean_excess()
        low, high = t < knot[0], t > knot[-1]
        first = normal * w[low].sum() / max(float(w[low] @ (knot[0] - t[low])), 1e-300)
        last = normal * w[high].sum() / max(float(w[high] @ (t[high] - knot[-1])), 1e-300)
        slope = np.concatenate([[first], inner, [last]])
        near = np.concatenate([secant[:1], inner, secant[-1:]])
        slope = np.clip(slope, 0.2 * near, 3.0 * near)
        return Warp(tuple(knot.tolist()), tuple(_KNOTS.tolist()), tuple(slope.tolist()))

    @cached_property
    def _knots(self) -> tuple[Array, Array, Array, Array]:
        t, z = np.array(self.t), np.array(self.z)
        return t, z, np.array(self.slope), np.diff(z) / np.diff(t)

    def forward(self, x: Array) -> tuple[Array, Array]:
        """Map values; return z and log dz/dt."""
        t, z, slope, secant = self._knots
        i = np.clip(np.searchsorted(t, x, side="right") - 1, 0, len(t) - 2)
        width = t[i + 1] - t[i]
        u = np.clip((x - t[i]) / width, 0.0, 1.0)
        s, a, b = secant[i], slope[i], slope[i + 1]
        v = u * (1.0 - u)
        below = s + (a + b - 2.0 * s) * v
        out = z[i] + (z[i + 1] - z[i]) * (s * u**2 + a * v) / below
        log_slope = np.log(s**2 * (b * u**2 + 2.0 * s * v + a * (1.0 - u) ** 2) / below**2)
        for end, sign in ((0, -1.0), (-1, 1.0)):
            beyond = sign * (x - t[end])
            far = beyond > 0.0
            root = np.sqrt(z[end] ** 2 + 2.0 * abs(z[end]) * slope[end] * np.maximum(beyond, 0.0))
            out = np.where(far, sign * root, out)
            tail = np.log(slope[end] * abs(z[end]) / root)
            log_slope = np.where(far, tail, log_slope)
        return out, log_slope

    def inverse(self, y: Array) -> Array:
        """Undo :meth:`forward`."""
        t, z, slope, secant = self._knots
        i = np.clip(np.searchsorted(z, y, side="right") - 1, 0, len(z) - 2)
        rise = np.clip(y - z[i], 0.0, z[i + 1] - z[i])
        s, a, b = secant[i], slope[i], slope[i + 1]
        curve = a + b - 2.0 * s
        height = z[i + 1] - z[i]
        # Root of the quadratic in u, in the form that does not cancel.
        p = height * (s - a) + rise * curve
        q = height * a - rise * curve
        r = -s * rise
        u = 2.0 * r / (-q - np.sqrt(np.maximum(q**2 - 4.0 * p * r, 0.0)))
        out = t[i] + np.clip(u, 0.0, 1.0) * (t[i + 1] - t[i])
        for end, sign in ((0, -1.0), (-1, 1.0)):
            far = sign * (y - z[end]) > 0.0
            excess = (y**2 - z[end] ** 2) / (2.0 * abs(z[end]) * slope[end])
            out = np.where(far, t[end] + sign * excess, out)
        return np.asarray(out)


def _mean_excess() -> float:
    """E[Z - a | Z > a] of a standard normal at the last knot."""
    a = float(_KNOTS[-1])
    return float(np.exp(-0.5 * a**2) / np.sqrt(2 * np.pi) / ndtr(-a)) - a
