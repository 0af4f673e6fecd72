"""mogp-emulator: maximum of the posterior, fifteen starts, weak priors.

With its default priors, which hold the lengths to distances between runs, it predicts a constant
on four of the six functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mogp_emulator
import numpy as np

from benchmarks.peers.scoring import Floats, Mixture, normal

METHODS: dict[str, dict[str, Any]] = {"mogp-emulator": {}}


def fit(X: Floats, y: Floats, seed: int) -> Callable[[Floats], Mixture]:
    """Squared exponential, nugget fitted, no trend: with one, 0.7.2 fails under this SciPy."""
    np.random.seed(seed)  # noqa: NPY002 - its starts come from the global generator
    priors = mogp_emulator.Priors.GPPriors(n_corr=X.shape[1], nugget_type="fit")
    process = mogp_emulator.GaussianProcess(X, y, nugget="fit", priors=priors)
    model = mogp_emulator.fit_GP_MAP(process)

    def predict(T: Floats) -> Mixture:
        found = model.predict(T, include_nugget=True)
        return normal(found.mean, np.sqrt(np.maximum(found.unc, 0.0)))

    return predict
