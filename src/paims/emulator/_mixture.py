r"""The predictive distribution: a mixture over draws of the hyper-parameters.

Each component is a Student-t with n - q degrees of freedom (or the Gaussian of the same mean and
variance); the weights are those of the draws. Moments follow the paper's equations mix_mean and
mix_cov, the laws of total expectation and covariance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paims._arrays import FloatArray, IndexArray, refuse_what_is_no_number
from paims._memory import demand
from paims._parallel import for_chunks
from paims._student import StudentMixtures
from paims.emulator._scaling import OutputScaling

__all__ = ["Components", "JointFn", "MixturePrediction", "as_generator"]

#: Gives the joint predictions of some components, in scaled units: indices ``(c,)`` to means
#: ``(c, k)`` and scale matrices ``(c, k, k)``.
JointFn = Callable[[IndexArray], tuple[FloatArray, FloatArray]]

# Doubles in the largest array of a block.
_BLOCK_SIZE = 2**20
_CHUNK = 2**15
# Matrices of all pairs of points that there are at once (measured: 6.4 and 7.3).
N_MATRICES = 8
# Arrays of all samples and points that there are at once (measured: 4.1).
N_SAMPLED = 4.5


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

    Made by :meth:`paims.Emulator.predict_distribution`; everything is in the user's units.

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
        joint_fn: JointFn | None = None,
        n_jobs: int | None = None,
        n_matrices: int = N_MATRICES,
    ) -> None:
        self.weights = weights
        self._scaled = StudentMixtures(location, scale, weights[:, None], dof)
        self._output = output
        self._joint_fn = joint_fn
        self._n_jobs = n_jobs
        self._n_matrices = n_matrices

    def __repr__(self) -> str:
        return (
            f"<MixturePrediction: {len(self)} points, {len(self.weights)} components "
            f"({self._scaled.family})>"
        )

    def __len__(self) -> int:
        return len(self._scaled)

    @property
    def mean(self) -> FloatArray:
        """Mean at each point."""
        return self._output.value(self._scaled.mean)

    @property
    def std(self) -> FloatArray:
        """Standard deviation at each point."""
        return self._output.difference(self._scaled.std)

    @property
    def components(self) -> Components:
        """Means and scales of the components."""
        scaled, output = self._scaled, self._output
        return Components(
            output.value(scaled.location), output.difference(scaled.scale), scaled.dof
        )

    def cov(self) -> FloatArray:
        r"""Covariance matrix of the points, ``(n_points, n_points)``.

        :math:`\sum_j w_j \{C_j + (\mu_j - \mu)(\mu_j - \mu)^T\}`, the paper's equation mix_cov.
        """
        self._demand("The covariance", "Ask for fewer at once, or for standard deviations only.")
        k = len(self)
        total = np.zeros((k, k))
        for block in self._blocks(np.arange(len(self.weights))):
            mean, scale2 = self._joint(block)
            w, off = self.weights[block], mean - self._scaled.mean
            total += self._scaled.family.variance * np.tensordot(w, scale2, 1)
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
        return self._by_points(y, StudentMixtures.cdf)

    def logpdf(self, y: Any) -> FloatArray:
        """Log predictive density at ``y``; arguments as for :meth:`cdf`."""
        return self._by_points(y, StudentMixtures.logpdf) - self._output.log_scale

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
        rows = [
            self._at_level(StudentMixtures.quantile, level) for level in levels.ravel().tolist()
        ]
        return self._output.value(np.reshape(rows, (*levels.shape, len(self))))

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed credible interval, as (lower, upper), each ``(n_points,)``."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be in (0, 1); got {level!r}.")
        tail = 0.5 * (1.0 - level)
        lower = self._at_level(StudentMixtures.lower_quantile, tail)
        upper = self._at_level(StudentMixtures.upper_quantile, tail)
        # At a run that is interpolated the two differ by round-off only.
        return self._output.value(lower), self._output.value(np.maximum(lower, upper))

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
        self._demand("A joint sample", "Ask for fewer at once.", size)
        rng = as_generator(random_state)
        chosen = rng.choice(len(self.weights), size, p=self.weights / self.weights.sum())
        normal = rng.standard_normal((size, len(self)))
        normal *= self._scaled.family.stretch(size, rng)[:, None]
        result = np.empty((size, len(self)))
        for block in self._blocks(np.unique(chosen)):
            mean, scale2 = self._joint(block)
            for j, component in enumerate(block):
                rows = chosen == component
                result[rows] = mean[j] + normal[rows] @ _square_root(scale2[j]).T
        return self._output.value(result)

    def _demand(self, what: str, advice: str, size: int = 0) -> None:
        """Raise if there is no memory for matrices of all pairs of points, and for samples."""
        k = len(self)
        what = f"{what} of {k:,} points" + (f", {size:,} times," if size > 1 else "")
        demand(8.0 * k * (self._n_matrices * k + N_SAMPLED * size), what, advice)

    def _joint(self, index: IndexArray) -> tuple[FloatArray, FloatArray]:
        if self._joint_fn is None:
            raise ValueError("This mixture knows its points one by one only, not jointly.")
        return self._joint_fn(index)

    def _blocks(self, index: IndexArray) -> Iterator[IndexArray]:
        """Blocks of components whose scale matrices fit into little memory."""
        step = max(1, _BLOCK_SIZE // max(1, len(self) ** 2))
        for start in range(0, len(index), step):
            yield index[start : start + step]

    def _by_points(
        self, y: Any, function: Callable[[StudentMixtures, FloatArray], FloatArray]
    ) -> FloatArray:
        """Values of a function of each point's mixture and of ``y``."""
        refuse_what_is_no_number("y", y)
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

        def work(start: int, stop: int) -> None:
            result[start:stop] = function(self._scaled[index[start:stop]], t[start:stop])

        for_chunks(work, t.size, self._chunk, self._n_jobs)
        return result.reshape(shape)

    def _at_level(
        self, quantile: Callable[[StudentMixtures, float], FloatArray], q: float
    ) -> FloatArray:
        """Quantiles ``(n_points,)`` in scaled units."""
        result = np.empty(len(self))

        def work(start: int, stop: int) -> None:
            result[start:stop] = quantile(self._scaled[start:stop], q)

        for_chunks(work, len(self), self._chunk, self._n_jobs)
        return result

    @property
    def _chunk(self) -> int:
        return max(1, _CHUNK // len(self.weights))


def without_exponent(prediction: MixturePrediction) -> tuple[MixturePrediction, int]:
    """A prediction in units of 2^exponent, in which squares are finite, and that exponent."""
    other, exponent = copy(prediction), prediction._output.exponent
    other._output = replace(prediction._output, exponent=0)
    return other, exponent


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
