"""A Gaussian process with weighted hyper-parameters: what every prediction is made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paims._arrays import FloatArray, IndexArray
from paims.emulator._mixture import MixturePrediction
from paims.emulator._scaling import OutputScaling
from paims.gp import Posterior

# Points and doubles of a block: predictions of a block are all that is held at once.
_BLOCK_POINTS = 4096
_BLOCK_SIZE = 2**20


@dataclass(frozen=True)
class Ensemble:
    """Weighted hyper-parameters of a Gaussian process on scaled runs.

    Attributes
    ----------
    posterior : Posterior
    draws : (n_components, n_params) ndarray
    weights : (n_components,) ndarray
        Sum to 1.
    output : OutputScaling
    family : {"student_t", "gaussian"}
        Of the components.
    """

    posterior: Posterior
    draws: FloatArray
    weights: FloatArray
    output: OutputScaling
    family: str

    def moments(
        self, X: FloatArray, *, include_nugget: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the mixture, in scaled units.

        Streams over blocks of points and of components: the memory needed does not depend on
        how many there are.

        Parameters
        ----------
        X : (k, p) ndarray
            Scaled inputs.
        include_nugget : bool

        Returns
        -------
        mean, std : (k,) ndarray
        """
        mean, variance = np.empty(len(X)), np.empty(len(X))
        for start in range(0, len(X), _BLOCK_POINTS):
            part = slice(start, start + _BLOCK_POINTS)
            mean[part], variance[part] = self._moments(X[part], include_nugget)
        return mean, np.sqrt(variance)

    def _moments(self, X: FloatArray, include_nugget: bool) -> tuple[FloatArray, FloatArray]:
        """Mean and variance by the law of total variance, blocks merged as they come."""
        total = 0.0
        mean, between, within = np.zeros(len(X)), np.zeros(len(X)), np.zeros(len(X))
        size = max(1, _BLOCK_SIZE // max(1, len(X)))
        for start in range(0, len(self.draws), size):
            rows = slice(start, start + size)
            w = self.weights[rows]
            block = self.posterior.predict(self.draws[rows], X, include_nugget=include_nugget)
            mass = float(w.sum())
            block_mean = (w @ block.mean) / mass
            step = block_mean - mean
            joint = total + mass
            between += w @ (block.mean - block_mean) ** 2 + step**2 * (total * mass / joint)
            within += w @ block.variance
            mean += step * (mass / joint)
            total = joint
        return mean, (between + within) / total

    def mixture(self, X: FloatArray, *, include_nugget: bool = True) -> MixturePrediction:
        """The mixture at scaled inputs ``X`` (k, p), with its components."""
        student = self.family == "student_t"
        block = self.posterior.predict(self.draws, X, include_nugget=include_nugget)

        def joint(index: IndexArray) -> tuple[FloatArray, FloatArray]:
            some = self.posterior.predict(
                self.draws[index], X, include_nugget=include_nugget, return_cov=True
            )
            return some.mean, some.scale2 if student else some.variance

        return MixturePrediction(
            block.mean,
            np.sqrt(block.scale2 if student else block.variance),
            self.weights,
            float(block.dof) if student else np.inf,
            self.output,
            joint,
            self.posterior.n_jobs,
        )
