r"""What the emulator says given hyper-parameters: predictions, checks, coefficients.

Given :math:`(\phi, \delta)` everything is a Student-t distribution with :math:`n - q` degrees of
freedom. The paper's Gaussian is its moment match: it has the same mean and variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paims.gp._arrays import FloatArray


@dataclass(frozen=True)
class Predictive:
    r"""Student-t predictions, one row for each draw of the hyper-parameters.

    Attributes
    ----------
    mean : (m, k) ndarray
        Location; also the mean.
    scale2 : (m, k) or (m, k, k) ndarray
        Squared scale, or the scale matrix; NaN, like the mean, where K could not be factorised.
    dof : int
        Degrees of freedom.
    """

    mean: FloatArray
    scale2: FloatArray
    dof: int

    @property
    def variance(self) -> FloatArray:
        r"""Variance (or covariance), ``scale2 * dof / (dof - 2)``.

        It is the paper's :math:`\hat\sigma^2 = S^2/(n-q-2)` times the correlation term.
        """
        if self.dof <= 2:
            return np.full_like(self.scale2, np.inf)
        return self.scale2 * (self.dof / (self.dof - 2.0))


@dataclass(frozen=True)
class Coefficients:
    r"""The integrated trend and variance, one row for each draw of the hyper-parameters.

    Attributes
    ----------
    mean : (m, q) ndarray
        :math:`\hat\beta = (H^T K^{-1} H)^{-1} H^T K^{-1} y`.
    scale2 : (m, q, q) ndarray
        Scale matrix :math:`S^2 (H^T K^{-1} H)^{-1} / (n - q)` of the coefficients' Student-t.
    S2 : (m,) ndarray
        :math:`S^2 = y^T Q y`.
    dof : int
        Degrees of freedom, n - q.
    """

    mean: FloatArray
    scale2: FloatArray
    S2: FloatArray
    dof: int
