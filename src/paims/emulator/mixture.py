r"""The predictive distribution: a mixture over draws of the hyper-parameters.

Each component is a Student-t with n - q degrees of freedom (or the Gaussian of the same mean and
variance); the weights are those of the draws. Moments follow the paper's equations mix_mean and
mix_cov, the laws of total expectation and covariance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, log_ndtr, logsumexp, ndtri, stdtr, stdtrit

from paims.emulator._roots import IndexArray, solve_increasing
from paims.emulator.scaling import OutputScaling

FloatArray = npt.NDArray[np.float64]

#: Gives the joint predictions of some components, in scaled units: indices ``(c,)`` to means
#: ``(c, k)`` and covariance-like scale matrices ``(c, k, k)``.
JointFn = Callable[[IndexArray], tuple[FloatArray, FloatArray]]

# Doubles in the largest array of a block.
_BLOCK_SIZE = 2**21


@dataclass(frozen=True)
class Components:
    """The components of a mixture, in the user's units.

    Attributes
    ----------
    means, scales : (n_components, n_points) ndarray
        Location and scale; the scale of a Gaussian is its standard deviation.
    dof : float
        Degrees of freedom; inf for Gaussians.
    """

    means: FloatArray
    scales: FloatArray
    dof: float


class MixturePrediction:
    """What the emulator says of the output at each of k inputs.

    Made by :meth:`paims.Emulator.predict_distribution`. Everything is in the user's units.

    Attributes
    ----------
    weights : (n_components,) ndarray
        Sum to 1.
    mean, std : (n_points,) ndarray
    components : Components
    """

    def __init__(
        self,
        location: FloatArray,
        scale: FloatArray,
        weights: FloatArray,
        dof: float,
        output: OutputScaling,
        joint_fn: JointFn,
    ) -> None:
        self._location, self._scale = location, scale
        self.weights = weights
        self._dof = dof
        self._output = output
        self._joint_fn = joint_fn
        # Variance of a component by its squared scale.
        self._inflation = 1.0 if np.isinf(dof) else dof / (dof - 2.0)
        self._mean = weights @ location
        within = self._inflation * (weights @ scale**2)
        self._std = np.sqrt(within + weights @ (location - self._mean) ** 2)

    def __repr__(self) -> str:
        kind = "Gaussian" if np.isinf(self._dof) else f"Student-t, dof {self._dof:g}"
        return f"<MixturePrediction: {len(self)} points, {len(self.weights)} components ({kind})>"

    def __len__(self) -> int:
        return int(self._location.shape[1])

    @property
    def mean(self) -> FloatArray:
        """Mean of each point."""
        return self._output.value(self._mean)

    @property
    def std(self) -> FloatArray:
        """Standard deviation of each point."""
        return self._output.difference(self._std)

    @property
    def components(self) -> Components:
        """Means and scales of the components."""
        return Components(
            self._output.value(self._location), self._output.difference(self._scale), self._dof
        )

    def cov(self) -> FloatArray:
        r"""Covariance matrix of the points, ``(n_points, n_points)``.

        :math:`\sum_j w_j \{C_j + (\mu_j - \mu)(\mu_j - \mu)^T\}`, the paper's equation mix_cov.
        """
        k = len(self)
        total = np.zeros((k, k))
        for block in self._blocks(k * k):
            mean, scale2 = self._joint_fn(block)
            w = self.weights[block]
            total += self._inflation * np.tensordot(w, scale2, 1)
            off = mean - self._mean
            total += off.T @ (w[:, None] * off)
        return self._output.square(total)

    def cdf(self, y: Any) -> FloatArray:
        """Probability of an output of at most ``y``.

        Parameters
        ----------
        y : array_like
            One value for each point, or anything that broadcasts with ``(n_points,)``.

        Returns
        -------
        ndarray
            Shape of ``y`` broadcast with ``(n_points,)``.
        """
        return self._by_points(y, lambda t, i: np.exp(self._log_cdf(t, i, 1.0)[0]))

    def logpdf(self, y: Any) -> FloatArray:
        """Log predictive density at ``y``; arguments as for :meth:`cdf`."""
        return self._by_points(y, self._log_pdf) - self._output.log_scale

    def quantile(self, q: Any) -> FloatArray:
        """Quantiles, by root-finding on the CDF of the mixture.

        Parameters
        ----------
        q : float or array_like
            Probabilities in [0, 1].

        Returns
        -------
        ndarray
            Shape ``np.shape(q) + (n_points,)``. Accurate to about 1e-11 of the standard
            deviation.
        """
        levels = np.asarray(q, dtype=np.float64)
        if not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise ValueError(f"q must hold probabilities in [0, 1]; got {q!r}.")
        rows = [self._quantile(float(level)) for level in levels.ravel()]
        return self._output.value(np.reshape(rows, (*levels.shape, len(self))))

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed credible interval, as (lower, upper), each ``(n_points,)``."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be in (0, 1); got {level!r}.")
        tail = 0.5 * (1.0 - level)
        return self.quantile(tail), self._output.value(-self._negative_quantile(tail))

    def sample(self, size: int = 1, random_state: Any = None) -> FloatArray:
        """Joint samples over the points: a component by weight, then a multivariate t.

        Parameters
        ----------
        size : int
        random_state : int, Generator, RandomState or None

        Returns
        -------
        (size, n_points) ndarray
        """
        rng = as_generator(random_state)
        k = len(self)
        chosen = rng.choice(len(self.weights), size, p=self.weights)
        normal = rng.standard_normal((size, k))
        stretch = np.ones(size)
        if np.isfinite(self._dof):
            stretch = np.sqrt(self._dof / rng.chisquare(self._dof, size))
        result = np.empty((size, k))
        used = np.unique(chosen)
        for block in self._blocks(k * k, used):
            mean, scale2 = self._joint_fn(block)
            for j, component in enumerate(block):
                rows = chosen == component
                root = _square_root(scale2[j])
                result[rows] = mean[j] + stretch[rows, None] * (normal[rows] @ root.T)
        return self._output.value(result)

    def _blocks(self, size: int, of: IndexArray | None = None) -> Iterator[IndexArray]:
        index = np.arange(len(self.weights)) if of is None else of
        step = max(1, _BLOCK_SIZE // size)
        for start in range(0, len(index), step):
            yield index[start : start + step]

    def _by_points(
        self, y: Any, function: Callable[[FloatArray, IndexArray], FloatArray]
    ) -> FloatArray:
        values = np.asarray(y, dtype=np.float64)
        try:
            shape = np.broadcast_shapes(values.shape, (len(self),))
        except ValueError:
            raise ValueError(
                f"y must broadcast with the {len(self)} points; got shape {values.shape}."
            ) from None
        t = np.broadcast_to(self._output.apply(values), shape).ravel()
        index = np.broadcast_to(np.arange(len(self)), shape).ravel()
        result = np.empty(t.size)
        step = max(1, _BLOCK_SIZE // (4 * len(self.weights)))
        for start in range(0, t.size, step):
            part = slice(start, start + step)
            result[part] = function(t[part], index[part])
        return result.reshape(shape)

    def _standardised(self, t: FloatArray, index: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Residuals in units of the component's scale, ``(n_components, j)``, and the scales."""
        scale = self._scale[:, index]
        residual = t - self._location[:, index]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = residual / scale
        # A component without spread is a step; at the step itself it counts as reached.
        return np.where(scale > 0.0, z, np.where(residual >= 0.0, np.inf, -np.inf)), scale

    def _log_kernel(self, z: FloatArray) -> FloatArray:
        """Log density of a component with scale 1."""
        if np.isinf(self._dof):
            log_normal: FloatArray = -0.5 * z**2 - 0.5 * np.log(2.0 * np.pi)
            return log_normal
        nu = self._dof
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(nu * np.pi)
        log_t: FloatArray = constant - 0.5 * (nu + 1.0) * np.log1p(z**2 / nu)
        return log_t

    def _log_pdf(self, t: FloatArray, index: IndexArray) -> FloatArray:
        scale = self._scale[:, index]
        residual = t - self._location[:, index]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_density = self._log_kernel(residual / scale) - np.log(scale)
            log_density = np.where(
                scale > 0.0, log_density, np.where(residual == 0.0, np.inf, -np.inf)
            )
            result: FloatArray = logsumexp(log_density, axis=0, b=self.weights[:, None])
        return result

    def _log_cdf(
        self, t: FloatArray, index: IndexArray, sign: float
    ) -> tuple[FloatArray, FloatArray]:
        """Log CDF and its derivative of the mixture (``sign`` -1: of its mirror image)."""
        z, scale = self._standardised(sign * t, index)
        z = sign * z
        w = self.weights[:, None]
        with np.errstate(divide="ignore", invalid="ignore", under="ignore", over="ignore"):
            if np.isinf(self._dof):
                value = logsumexp(log_ndtr(z), axis=0, b=w)
            else:
                value = np.log(self.weights @ stdtr(self._dof, z))
            density = np.where(scale > 0.0, np.exp(self._log_kernel(z)) / scale, 0.0)
            return value, (self.weights @ density) / np.exp(value)

    def _quantile(self, q: float) -> FloatArray:
        """Quantiles in scaled units."""
        if q > 0.5:
            return -self._negative_quantile(1.0 - q)
        return self._lower_quantile(q, 1.0)

    def _negative_quantile(self, q: float) -> FloatArray:
        """Quantiles, for small q, of the mirror image: digits of the upper tail are kept."""
        return self._lower_quantile(q, -1.0)

    def _lower_quantile(self, q: float, sign: float) -> FloatArray:
        if q == 0.0:
            return np.full(len(self), -np.inf)
        unit = ndtri(q) if np.isinf(self._dof) else stdtrit(self._dof, q)
        # Between the least and the largest quantile of the components.
        each = sign * self._location + unit * self._scale
        tolerance = 1e-12 * self._std + 4.0 * np.finfo(float).eps * np.abs(each).max(axis=0)
        return solve_increasing(
            lambda t, index: self._log_cdf(t, index, sign),
            np.full(len(self), np.log(q)),
            each.min(axis=0),
            each.max(axis=0),
            tolerance,
        )


def as_generator(random_state: Any) -> np.random.Generator:
    """Random generator of a seed, a Generator, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(np.frombuffer(random_state.bytes(16), dtype=np.uint32))
    return np.random.default_rng(random_state)


def _square_root(matrix: FloatArray) -> FloatArray:
    """A root R with R R' the matrix, positive semi-definite up to round-off."""
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        # Repeated or interpolated points: singular. What round-off left below 0 is 0.
        value, vector = np.linalg.eigh(matrix)
        return np.asarray(vector * np.sqrt(np.maximum(value, 0.0)), dtype=np.float64)
