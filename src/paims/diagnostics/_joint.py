r"""Errors that take the correlation of the predictions into account.

After Bastos & O'Hagan (2009), sections 4.2 and 4.3. With the predictive covariance V of the k
outputs,

- pivoted Cholesky, :math:`P^T V P = L L^T`: :math:`e = L^{-1} P^T (y - \mu)`. The first output is
  the one with the largest variance, each next the one with the largest variance given those
  before it. Large errors early speak against the variance, large errors late against the
  correlation;
- eigenvectors, :math:`V = G \Lambda G^T`: :math:`e = \Lambda^{-1/2} G^T (y - \mu)`;
- Mahalanobis distance, :math:`D^2 = (y-\mu)^T V^{-1} (y-\mu)`: all errors in one number.

Given right predictions the errors have mean 0, variance 1 and no correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.stats import binomtest, chi2, f, norm, t

from paims._arrays import FloatArray, IntArray
from paims.diagnostics._prediction import as_dof, as_outputs
from paims.gp._checks import as_float_array, check_finite

__all__ = ["JointErrors", "Mahalanobis", "cholesky_errors", "eigen_errors", "mahalanobis"]

# What is left of a variance below this part of the largest is round-off of the covariance.
_RTOL = 1e-10


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
    def on_the_safe_side(self) -> bool:
        """Whether errors are no larger than announced."""
        return self.n_outside <= 0.05 * self.rank

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
    difference, cov = _checked_difference(y, mean, cov)
    whiten = _Whitening(cov)
    sampled = None if samples is None else whiten(_checked_samples(samples, mean))
    bound, reference = _bound(_variance_dof(dof), sampled)
    return JointErrors(
        whiten(difference), whiten.order, "cholesky", len(difference), bound, reference
    )


def eigen_errors(
    y: Any, mean: Any, cov: Any, *, dof: float | None = None, samples: Any = None
) -> JointErrors:
    """Errors along the eigenvectors of the covariance, by falling eigenvalue.

    Parameters are those of :func:`cholesky_errors`.
    """
    difference, cov = _checked_difference(y, mean, cov)
    value, vector = np.linalg.eigh(cov)
    if not value[-1] > 0.0:
        raise ValueError("The predictive covariance has no positive eigenvalue.")
    kept = np.flatnonzero(value > _RTOL * value[-1])[::-1]
    whiten = vector[:, kept] / np.sqrt(value[kept])
    sampled = None if samples is None else _checked_samples(samples, mean) @ whiten
    bound, reference = _bound(_variance_dof(dof), sampled)
    order = np.argmax(np.abs(vector[:, kept]), axis=0)
    return JointErrors(difference @ whiten, order, "eigen", len(difference), bound, reference)


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    r"""Mahalanobis distance of k outputs from their prediction, and what is usual for it.

    Attributes
    ----------
    distance2 : float
        :math:`D^2`.
    rank : int
        Number of outputs that count; for a right prediction E D^2 = rank.
    n_outputs : int
    reference : str
        "scaled F" (one Student-t: :math:`\frac{\nu}{(\nu-2)k} D^2 \sim F_{k,\nu}`, exact),
        "chi-square" (one normal, exact), or "simulation" (a mixture: the distance of
        joint samples of the prediction itself).
    lower, median, upper : float
        2.5 %, 50 % and 97.5 % quantiles of the reference.
    p_value : float
        Probability of a distance at least as large as the observed one.
    """

    distance2: float
    rank: int
    n_outputs: int
    reference: str
    lower: float
    median: float
    upper: float
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether the distance is within the range of 99 % of right predictions."""
        return 0.005 <= self.p_value <= 0.995

    @property
    def on_the_safe_side(self) -> bool:
        """Whether errors are no larger than announced."""
        return self.distance2 < self.median

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        text = (
            f"Squared Mahalanobis distance {self.distance2:.4g}, usual is {self.lower:.4g} to "
            f"{self.upper:.4g} ({self.reference}; p = {self.p_value:.2g}). "
        )
        if self.passed:
            return text + "All outputs together agree with the prediction."
        if self.p_value < 0.5:
            return text + (
                "All outputs together are further off than the emulator thinks possible: its "
                "variance is too small or its correlation too strong. See which errors are large."
            )
        return text + "All outputs together are closer than announced: a cautious emulator."


def mahalanobis(
    y: Any, mean: Any, cov: Any, *, dof: float | None = None, samples: Any = None
) -> Mahalanobis:
    r"""Mahalanobis distance with its reference distribution.

    For one Student-t with :math:`\nu` degrees of freedom :math:`\frac{\nu}{(\nu-2)k} D^2 \sim
    F_{k,\nu}` (Bastos & O'Hagan's equation for :math:`D_{MD}`), for one normal
    :math:`D^2 \sim \chi^2_k`. For a mixture neither holds, and ``samples`` give the reference.

    Parameters are those of :func:`cholesky_errors`.
    """
    difference, cov = _checked_difference(y, mean, cov)
    freedom = _variance_dof(dof)
    whiten = _Whitening(cov)
    distance2 = float(np.sum(whiten(difference) ** 2))
    rank = len(whiten.order)
    levels = [0.025, 0.5, 0.975]
    if samples is not None:
        sampled = np.sum(whiten(_checked_samples(samples, mean)) ** 2, axis=1)
        reference = "simulation"
        quantiles = np.quantile(sampled, levels)
        # The observed distance is one more of them: the probability is never 0.
        p_value = (1.0 + np.sum(sampled >= distance2)) / (1.0 + len(sampled))
    elif np.isinf(freedom):
        reference = "chi-square"
        quantiles = chi2.ppf(levels, rank)
        p_value = chi2.sf(distance2, rank)
    else:
        reference = "scaled F"
        scale = rank * (freedom - 2.0) / freedom
        quantiles = scale * f.ppf(levels, rank, freedom)
        p_value = f.sf(distance2 / scale, rank, freedom)
    lower, median, upper = (float(value) for value in quantiles)
    return Mahalanobis(
        distance2, rank, len(difference), reference, lower, median, upper, float(p_value)
    )


class _Whitening:
    """The pivoted Cholesky factor of a covariance matrix, without what is only round-off."""

    def __init__(self, cov: FloatArray) -> None:
        largest = float(np.diag(cov).max())
        if not largest > 0.0:
            raise ValueError("The predictive covariance has no positive variance on its diagonal.")
        factor, pivots, rank, _ = dpstrf(cov, tol=_RTOL * largest, lower=1)
        self.order = (pivots - 1)[:rank]
        self.factor = np.tril(factor[:rank, :rank])

    def __call__(self, difference: FloatArray) -> FloatArray:
        """Errors ``(..., rank)`` of differences ``(..., k)``."""
        errors = solve_triangular(self.factor, difference[..., self.order].T, lower=True)
        return np.asarray(errors, dtype=np.float64).T


def _checked_difference(y: Any, mean: Any, cov: Any) -> tuple[FloatArray, FloatArray]:
    """Outputs minus their means, and the covariance."""
    mean = as_float_array("mean", mean, 1)
    cov = as_float_array("cov", cov, 2)
    k = len(mean)
    if cov.shape != (k, k):
        raise ValueError(f"cov must have shape ({k}, {k}) for {k} means; got {cov.shape}.")
    check_finite("mean", mean)
    check_finite("cov", cov)
    return as_outputs(y, k) - mean, cov


def _checked_samples(samples: Any, mean: Any) -> FloatArray:
    """Joint samples minus the means."""
    samples = as_float_array("samples", samples, 2)
    if samples.shape[1] != len(mean) or len(samples) < 100:
        raise ValueError(
            f"samples must have shape (size, {len(mean)}) with a size of at least 100; got "
            f"{samples.shape}."
        )
    check_finite("samples", samples)
    difference: FloatArray = samples - np.asarray(mean)
    return difference


def _variance_dof(dof: float | None) -> float:
    """Degrees of freedom of a distribution that has a covariance."""
    value = as_dof(dof)
    if value <= 2.0:
        raise ValueError(f"A Student-t with dof <= 2 has no covariance; got dof={dof!r}.")
    return value
