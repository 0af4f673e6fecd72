"""OpenTURNS: maximum likelihood with its own optimiser and one start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import openturns as ot

from benchmarks.peers.scoring import Floats, Mixture, normal

METHODS: dict[str, dict[str, Any]] = {"OpenTURNS": {}}


def fit(X: Floats, y: Floats, seed: int) -> Callable[[Floats], Mixture]:
    """Squared exponential, linear trend, nugget as it sets it."""
    ot.RandomGenerator.SetSeed(seed)
    p = X.shape[1]
    fitter = ot.GaussianProcessFitter(
        X, y[:, None], ot.SquaredExponential([0.5] * p), ot.LinearBasisFactory(p).build()
    )
    fitter.run()
    regression = ot.GaussianProcessRegression(fitter.getResult())
    regression.run()
    conditional = ot.GaussianProcessConditionalCovariance(regression.getResult())

    def predict(T: Floats) -> Mixture:
        mean = np.asarray(conditional.getConditionalMean(T))
        variance = np.asarray(conditional.getConditionalMarginalVariance(T)).ravel()
        return normal(mean, np.sqrt(np.maximum(variance, 0.0)))

    return predict
