"""A mixture of Student-t (or normal) distributions, as an emulator would give it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass
class FakeComponents:
    means: np.ndarray
    scales: np.ndarray
    dof: float


@dataclass
class FakeMixture:
    """Means ``(m, k)``, scale matrices ``(m, k, k)``, weights ``(m,)``."""

    means: np.ndarray
    scale_matrices: np.ndarray
    dof: float
    weights: np.ndarray

    @property
    def components(self) -> FakeComponents:
        scales = np.sqrt(np.diagonal(self.scale_matrices, axis1=1, axis2=2))
        return FakeComponents(self.means, scales, self.dof)

    @property
    def mean(self) -> np.ndarray:
        return self.weights @ self.means

    def cov(self) -> np.ndarray:
        ratio = 1.0 if np.isinf(self.dof) else self.dof / (self.dof - 2.0)
        off = self.means - self.mean
        return ratio * np.tensordot(self.weights, self.scale_matrices, 1) + off.T @ (
            self.weights[:, None] * off
        )

    def sample(self, size: int, random_state: Any = None) -> np.ndarray:
        rng = np.random.default_rng(random_state)
        k = self.means.shape[1]
        chosen = rng.choice(len(self.weights), size, p=self.weights)
        normal = rng.standard_normal((size, k))
        if np.isfinite(self.dof):
            normal *= np.sqrt(self.dof / rng.chisquare(self.dof, size))[:, None]
        result = np.empty((size, k))
        for s, matrix in enumerate(self.scale_matrices):
            rows = chosen == s
            result[rows] = self.means[s] + normal[rows] @ np.linalg.cholesky(matrix).T
        return result

    def cdf(self, j: int, x: float) -> float:
        """Distribution function of output j, by SciPy."""
        c = self.components
        family = stats.norm if np.isinf(self.dof) else stats.t(self.dof)
        return float(self.weights @ family.cdf((x - c.means[:, j]) / c.scales[:, j]))


def mixture(
    m: int = 3, k: int = 4, dof: float = 9.0, spread: float = 1.0, seed: int = 0
) -> FakeMixture:
    """A mixture with correlated outputs and components that differ."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random(k))
    lengths = np.exp(rng.normal(-1.0, 0.3, m))
    matrices = np.exp(-((x[:, None] - x) ** 2) / lengths[:, None, None] ** 2) + 0.05 * np.eye(k)
    matrices *= np.exp(rng.normal(0.0, 0.5, m))[:, None, None]
    return FakeMixture(
        spread * rng.normal(size=(m, k)), matrices, dof, rng.dirichlet(np.full(m, 3.0))
    )
