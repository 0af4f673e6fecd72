"""gpmp: restricted maximum likelihood, Matérn kernel of half-integer smoothness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpmp
import gpmp.num as gnp
import numpy as np

from benchmarks.peers.scoring import Floats, Mixture, normal

METHODS: dict[str, dict[str, Any]] = {
    "gpmp, Matérn 7/2": {"p": 3},
    "gpmp, squared exponential": {"p": None},
}


def fit(
    X: Floats, y: Floats, seed: int, p: int | None, mean: str = "linear"
) -> Callable[[Floats], Mixture]:
    """A linear or constant trend, no nugget but its own small one; its NumPy engine."""
    del seed

    def trend(x: Any, param: Any) -> Any:
        del param
        ones = gnp.ones((x.shape[0], 1))
        return ones if mean == "constant" else gnp.hstack((ones, gnp.asarray(x)))

    def covariance(x: Any, y: Any, param: Any, pairwise: bool = False) -> Any:
        if p is None:
            return gpmp.kernel.squared_exponential_covariance(x, y, param, pairwise)
        return gpmp.kernel.maternp_covariance(x, y, p, param, pairwise)

    model = gpmp.core.Model(trend, covariance)
    model, _ = gpmp.kernel.select_parameters_sigma2_rho_with_reml(model, X, y)

    def predict(T: Floats) -> Mixture:
        mean, variance = model.predict(X, y, T)
        return normal(mean, np.sqrt(np.maximum(variance, 0.0)))

    return predict
