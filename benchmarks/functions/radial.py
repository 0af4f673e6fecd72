r"""Prototype of the Matern kernels of one scaled distance, as most peers have them.

:math:`k = a(t) e^{-t}` with :math:`t = \sqrt{2\nu} r` and
:math:`r^2 = \sum_i (x_i - x'_i)^2 / \phi_i^2`, where ours multiply one such factor for each input.
It runs through NumPy only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.designs import Floats
from paims.gp import Kernel, Matern52, Matern72


class Radial(Kernel):
    """A Matern kernel of one scaled distance."""

    of: Any

    def factor(self, distance: Floats, phi: Floats) -> Floats:
        """Along one input it is the separable one."""
        return np.asarray(self.of.factor(distance, phi))

    def factor_derivative(self, distance: Floats, phi: Floats) -> Floats:
        """The same."""
        return np.asarray(self.of.factor_derivative(distance, phi))

    def _terms(self, X: Floats, X2: Floats, phi: Floats) -> Floats:
        """Squares of the scaled differences of each input, ``(m, p, n, k)``."""
        d2 = (X.T[:, :, None] - X2.T[:, None, :]) ** 2
        return np.asarray(d2[None] / phi[:, :, None, None] ** 2)

    def correlation(self, X: Floats, X2: Floats, phi: Floats) -> Floats:
        """The factor at the scaled distance."""
        r = np.sqrt(self._terms(X, X2, phi).sum(axis=1))
        return self.factor(r, np.array(1.0))

    def correlation_and_derivatives(
        self, X: Floats, X2: Floats, phi: Floats
    ) -> tuple[Floats, Floats]:
        r"""With :math:`\partial r / \partial \log\phi_i = -(d_i/\phi_i)^2 / r`."""
        terms = self._terms(X, X2, phi)
        square = terms.sum(axis=1)
        r = np.sqrt(square)
        # The factor's own derivative is with respect to the log of the one range.
        slope = self.factor_derivative(r, np.array(1.0)) / np.where(square > 0.0, square, 1.0)
        return self.factor(r, np.array(1.0)), slope[:, None] * terms


class RadialMatern72(Radial):
    """Matern 7/2."""

    name = "radial_matern72"
    of = Matern72()


class RadialMatern52(Radial):
    """Matern 5/2."""

    name = "radial_matern52"
    of = Matern52()
