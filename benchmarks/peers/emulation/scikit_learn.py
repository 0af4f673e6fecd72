"""scikit-learn: maximum likelihood; no trend, noise estimated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from benchmarks.peers.scoring import Floats, Mixture, normal

METHODS: dict[str, dict[str, Any]] = {
    "scikit-learn, 0 restarts": {"restarts": 0},
    "scikit-learn, 10 restarts": {"restarts": 10},
}


def fit(X: Floats, y: Floats, seed: int, restarts: int) -> Callable[[Floats], Mixture]:
    """Maximise the likelihood from the start and from random restarts."""
    kernel = ConstantKernel(1.0, (1e-5, 1e8)) * RBF(
        np.ones(X.shape[1]), (1e-2, 1e3)
    ) + WhiteKernel(1e-6, (1e-12, 1.0))
    model = GaussianProcessRegressor(
        kernel, n_restarts_optimizer=restarts, normalize_y=True, random_state=seed
    ).fit(X, y)
    return lambda T: normal(*model.predict(T, return_std=True))
