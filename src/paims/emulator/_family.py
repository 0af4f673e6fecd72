"""The family of a mixture's components: Student-t, or the Gaussian as its limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, ndtr, ndtri, stdtr, stdtrit

from paims._arrays import FloatArray


@dataclass(frozen=True)
class Family:
    """Location-scale family.

    Attributes
    ----------
    dof : float
        Degrees of freedom, above 2; inf for Gaussians.
    """

    dof: float

    @property
    def gaussian(self) -> bool:
        """Whether this is the Gaussian."""
        return bool(np.isinf(self.dof))

    @property
    def variance(self) -> float:
        """Variance of a component of scale 1."""
        return 1.0 if self.gaussian else self.dof / (self.dof - 2.0)

    def log_density(self, z: FloatArray) -> FloatArray:
        """Log density at standardised residuals z."""
        if self.gaussian:
            log_normal: FloatArray = -0.5 * z**2 - 0.5 * np.log(2.0 * np.pi)
            return log_normal
        nu = self.dof
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(nu * np.pi)
        log_t: FloatArray = constant - 0.5 * (nu + 1.0) * np.log1p(z**2 / nu)
        return log_t

    def score(self, z: FloatArray) -> FloatArray:
        """Derivative of the log density."""
        slope: FloatArray = -z if self.gaussian else -(self.dof + 1.0) * z / (self.dof + z**2)
        return slope

    def cdf(self, z: FloatArray) -> FloatArray:
        """Distribution function; accurate in the lower tail."""
        return np.asarray(ndtr(z) if self.gaussian else stdtr(self.dof, z), dtype=np.float64)

    def quantile(self, q: float) -> float:
        """Inverse of the distribution function."""
        return float(ndtri(q) if self.gaussian else stdtrit(self.dof, q))

    def stretch(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Factors that make (multivariate) normal samples samples of this family."""
        if self.gaussian:
            return np.ones(size)
        return np.asarray(np.sqrt(self.dof / rng.chisquare(self.dof, size)), dtype=np.float64)

    def __str__(self) -> str:
        return "Gaussian" if self.gaussian else f"Student-t, dof {self.dof:g}"
