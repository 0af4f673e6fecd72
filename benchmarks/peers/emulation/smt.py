"""SMT: kriging, its own ten starts of COBYLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from smt.surrogate_models import KRG

from benchmarks.peers.scoring import Floats, Mixture, normal

METHODS: dict[str, dict[str, Any]] = {
    "SMT": {},
    "SMT, noise estimated": {"eval_noise": True},
}


def fit(X: Floats, y: Floats, seed: int, **options: Any) -> Callable[[Floats], Mixture]:
    """Squared exponential, linear trend."""
    del seed
    model = KRG(poly="linear", corr="squar_exp", print_global=False, **options)
    model.set_training_values(X, y)
    model.train()

    def predict(T: Floats) -> Mixture:
        variance = np.maximum(model.predict_variances(T).ravel(), 0.0)
        return normal(model.predict_values(T), np.sqrt(variance))

    return predict
