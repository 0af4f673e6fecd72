"""GPBoost: scaled Vecchia, maximum likelihood with a Matérn 7/2 kernel.

With a length-scale for each input it takes the neighbours nearest in the scaled inputs, and
chooses them anew as the length-scales change (Katzfuss, Guinness, Lawrence, 2022).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpboost
import numpy as np

from benchmarks.peers.scoring import Floats, Mixture, normal

METHODS: dict[str, dict[str, Any]] = {"GPBoost, scaled Vecchia": {"neighbours": 30}}


def fit(X: Floats, y: Floats, seed: int, neighbours: int) -> Callable[[Floats], Mixture]:
    """Linear trend, noise estimated, its own optimiser; one thread."""
    model = gpboost.GPModel(
        gp_coords=X,
        cov_function="matern_ard",
        cov_fct_shape=3.5,
        gp_approx="vecchia",
        num_neighbors=min(neighbours, len(X) - 1),
        num_parallel_threads=1,
        seed=seed,
    )
    model.fit(y=y, X=_trend(X))

    def predict(T: Floats) -> Mixture:
        found = model.predict(
            gp_coords_pred=T, X_pred=_trend(T), predict_var=True, predict_response=True
        )
        return normal(found["mu"], np.sqrt(np.maximum(found["var"], 0.0)))

    return predict


def _trend(X: Floats) -> Floats:
    return np.column_stack([np.ones(len(X)), X])
