"""mogp-emulator: maximum of the posterior, fifteen starts, its default priors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mogp_emulator
import numpy as np

from benchmarks.peers.scoring import Floats, Mixture, normal

METHODS: dict[str, dict[str, Any]] = {"mogp-emulator": {}}


def fit(X: Floats, y: Floats, seed: int) -> Callable[[Floats], Mixture]:
    """Squared exponential, its own nugget, no trend: with one, 0.7.2 fails under this SciPy."""
    np.random.seed(seed)  # noqa: NPY002 - its starts come from the global generator
    model = mogp_emulator.fit_GP_MAP(mogp_emulator.GaussianProcess(X, y, nugget="adaptive"))

    def predict(T: Floats) -> Mixture:
        found = model.predict(T, include_nugget=True)
        return normal(found.mean, np.sqrt(np.maximum(found.unc, 0.0)))

    return predict
