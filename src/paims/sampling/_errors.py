"""How far weighted means can be trusted: standard errors, and the agreement of the islands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paims._arrays import Array, IntArray
from paims.sampling._proposal import N_REPLICATES


@dataclass(frozen=True)
class Weighting:
    """Weights of draws, with what is known of how the draws came about.

    Attributes
    ----------
    weight : ndarray, shape (n,)
        Sums to 1.
    island : ndarray of int, shape (n,), or None
    replicate : ndarray of int, shape (n,), or None
        Points of the same proposal have ``N_REPLICATES`` numbers in a row, one for each block of
        the quasi-random sequence that they were drawn with.
    """

    weight: Array
    island: IntArray | None
    replicate: IntArray | None

    @property
    def islands(self) -> list[Array]:
        """Rows of each of two islands that have weight; empty if there are not two."""
        if self.island is None:
            return []
        rows = [np.flatnonzero(self.island == i) for i in np.unique(self.island)]
        alive = all(self.weight[own].sum() > 0 for own in rows)
        return rows if len(rows) == 2 and alive else []

    def means(self, values: Array) -> list[float]:
        """Weighted mean on each island."""
        return [
            float(self.weight[rows] @ values[rows] / self.weight[rows].sum())
            for rows in self.islands
        ]

    def error(self, values: Array) -> float:
        """Standard error of the weighted mean of values (n,).

        By the replicates of the proposals; by the squares of the weights where there are none.
        Where the islands are further apart than twice what that makes one expect, half their gap
        if it is more.
        """
        error = np.sqrt(self._variance(values, np.arange(len(values))))
        islands, means = self.islands, self.means(values)
        if islands:
            expected = np.sqrt(sum(self._variance(values, rows) for rows in islands))
            gap = abs(means[0] - means[1])
            if gap > 2.0 * expected:
                error = max(error, 0.5 * gap)
        return float(error)

    def _variance(self, values: Array, rows: Array) -> float:
        """Variance of the weighted mean over some of the draws."""
        weight = self.weight[rows] / self.weight[rows].sum()
        terms = weight * (values[rows] - weight @ values[rows])
        if self.replicate is None:
            return float(np.sum(terms**2))
        return _block_variance(terms, self.replicate[rows])

    def r_hat(self, values: Array) -> float:
        """Agreement of the islands about a mean, in the manner of Gelman and Rubin's R-hat.

        With island means m_0 and m_1 and the variance v of the values::

            sqrt(1 + (m_0 - m_1)^2 / (2 v))
        """
        means = self.means(values)
        variance = float(self.weight @ (values - self.weight @ values) ** 2)
        if not means or not variance > 0:
            return 1.0
        return float(np.sqrt(1.0 + (means[0] - means[1]) ** 2 / (2.0 * variance)))


def _block_variance(terms: Array, replicate: IntArray) -> float:
    """Variance of a sum over the draws, from its parts by block, taken as independent.

    Quasi-random sums of smooth functions converge faster than that, and the error of the evidence
    counts on it. Masses and means of modes that lie apart are no such functions: measured on
    mixtures in 2 to 5 dimensions, errors that counted on it were too small by 1.3 to 3.
    """
    n_groups = int(np.max(replicate, initial=0)) // N_REPLICATES + 1
    total = np.bincount(replicate, weights=terms, minlength=n_groups * N_REPLICATES)
    blocks = total.reshape(n_groups, N_REPLICATES)
    return N_REPLICATES * float(np.sum(np.var(blocks, axis=1, ddof=1)))
