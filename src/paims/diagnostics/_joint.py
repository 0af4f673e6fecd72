r"""Errors that take the correlation of the predictions into account.

After Bastos & O'Hagan (2009), section 4.2-4.3. With the predictive covariance V of the k outputs,

- pivoted Cholesky, :math:`P^T V P = L L^T`: :math:`e = L^{-1} P^T (y - \mu)`. The first output is
  the one with the largest variance, each next the one with the largest variance given those
  before it. Large errors early speak against the variance, large errors late against the
  correlation;
- eigenvectors, :math:`V = G \Lambda G^T`: :math:`e = \Lambda^{-1/2} G^T (y - \mu)`.

Given right predictions the errors have mean 0, variance 1 and no correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest, norm, t

from paims._arrays import FloatArray, IntArray
from paims.diagnostics._whitening import (
    RTOL,
    Whitening,
    checked_difference,
    checked_samples,
    variance_dof,
)

__all__ = ["JointErrors", "cholesky_errors", "eigen_errors"]


@dataclass(frozen=True, eq=False)
class JointErrors:
    r"""Uncorrelated errors of unit variance.

    Attributes
    ----------
    errors : (rank,) ndarray
    order : (rank,) ndarray of int
        For the Cholesky errors, the output that stands at each place; for the eigen errors, the
        output with the largest part in each eigenvector.
    kind : str
        "cholesky" or "eigen".
    n_outputs : int
        k. The rest, ``n_outputs - rank``, is determined by the others up to round-off.
    bound : float
        An error should lie in [-bound, bound] with probability 0.95.
    reference : str
        Where the bound is from: "student-t", "normal" or "simulation".
    """

    errors: FloatArray
    order: IntArray
    kind: str
    n_outputs: int
    bound: float
    reference: str

    @property
    def rank(self) -> int:
        """Number of errors."""
        return len(self.errors)

    @property
    def n_outside(self) -> int:
        """How many errors are outside the bound."""
        return int(np.sum(np.abs(self.errors) > self.bound))

    @property
    def p_outside(self) -> float:
        """Two-sided binomial probability of a count so far from rank/20."""
        return float(binomtest(self.n_outside, self.rank, 0.05).pvalue)

    @property
    def passed(self) -> bool:
        """Whether that probability is not below 0.01."""
        return self.p_outside >= 0.01

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        text = (
            f"{self.n_outside} of {self.rank} uncorrelated errors lie outside +-{self.bound:.2f}, "
            f"about {self.rank / 20.0:.3g} should"
        )
        if self.rank < self.n_outputs:
            text += f" ({self.n_outputs - self.rank} outputs are determined by the others)"
        if self.passed:
            return text + ". Variances and correlations fit the outputs."
        if self.n_outside < self.rank / 20.0:
            return text + ". Errors are smaller than announced: the emulator is too cautious."
        outside = np.abs(self.errors) > self.bound
        early = outside[: len(outside) // 2].mean()
        late = outside[len(outside) // 2 :].mean()
        if early > 2.0 * late:
            return text + (
                ", most of them early in the order: the variance is too small somewhere. The "
                "output may vary more in some regions than in others; transform it or add runs."
            )
        if late > 2.0 * early:
            return text + (
                ", most of them late in the order: the correlation between near-by points is too "
                "strong. Try a rougher kernel (Matern) or estimate the nugget."
            )
        return text + ", early and late: the variance is too small. Add runs or look at the trend."


def _bound(dof: float, sampled_errors: FloatArray | None) -> tuple[float, str]:
    """The 95 % bound of a single error of unit variance, and where it is from."""
    if sampled_errors is not None:
        return float(np.quantile(np.abs(sampled_errors), 0.95)), "simulation"
    if np.isinf(dof):
        return float(norm.isf(0.025)), "normal"
    return float(t.isf(0.025, dof) * np.sqrt((dof - 2.0) / dof)), "student-t"


def cholesky_errors(
    y: Any, mean: Any, cov: Any, *, dof: float | None = None, samples: Any = None
) -> JointErrors:
    """Pivoted-Cholesky errors, in the order of the pivots.

    Parameters
    ----------
    y : (k,) array_like
        What was observed.
    mean : (k,) array_like
    cov : (k, k) array_like
        Predictive mean and covariance (not the scale matrix of a Student-t).
    dof : float, optional
        Degrees of freedom of the one Student-t that predicts; normal by default.
    samples : (size, k) array_like, optional
        Joint samples of the prediction, for a mixture; the bound is then from them.

    Returns
    -------
    JointErrors
    """
    difference, cov = checked_difference(y, mean, cov)
    whiten = Whitening(cov)
    sampled = None if samples is None else whiten(checked_samples(samples, mean))
    bound, reference = _bound(variance_dof(dof), sampled)
    return JointErrors(
        whiten(difference), whiten.order, "cholesky", len(difference), bound, reference
    )


def eigen_errors(
    y: Any, mean: Any, cov: Any, *, dof: float | None = None, samples: Any = None
) -> JointErrors:
    """Errors along the eigenvectors of the covariance, by falling eigenvalue.

    Parameters are those of :func:`cholesky_errors`.
    """
    difference, cov = checked_difference(y, mean, cov)
    value, vector = np.linalg.eigh(cov)
    if not value[-1] > 0.0:
        raise ValueError("The predictive covariance has no positive eigenvalue.")
    kept = np.flatnonzero(value > RTOL * value[-1])[::-1]
    whiten = vector[:, kept] / np.sqrt(value[kept])
    sampled = None if samples is None else checked_samples(samples, mean) @ whiten
    bound, reference = _bound(variance_dof(dof), sampled)
    order = np.argmax(np.abs(vector[:, kept]), axis=0)
    return JointErrors(difference @ whiten, order, "eigen", len(difference), bound, reference)
