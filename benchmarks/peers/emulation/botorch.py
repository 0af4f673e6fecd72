"""BoTorch: fully Bayesian by NUTS (Matérn 5/2), or the maximum of the posterior.

Models, priors and numbers of steps are its own; constant mean, noise inferred.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from botorch.fit import fit_fully_bayesian_model_nuts, fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.fully_bayesian import (
    FullyBayesianSingleTaskGP,
    SaasFullyBayesianSingleTaskGP,
)
from gpytorch.mlls import ExactMarginalLogLikelihood

from benchmarks.peers.scoring import Floats, Mixture

METHODS: dict[str, dict[str, Any]] = {
    "BoTorch, SAAS": {"model": SaasFullyBayesianSingleTaskGP},
    "BoTorch, fully Bayesian": {"model": FullyBayesianSingleTaskGP},
    "BoTorch, MAP": {"model": SingleTaskGP},
}


def fit(X: Floats, y: Floats, seed: int, model: Any) -> Callable[[Floats], Mixture]:
    """NUTS, or for a model of one set of parameters the climb to the best."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    process = model(torch.tensor(X), torch.tensor(y)[:, None])
    if model is SingleTaskGP:
        fit_gpytorch_mll(ExactMarginalLogLikelihood(process.likelihood, process))
    else:
        fit_fully_bayesian_model_nuts(process, disable_progbar=True, seed=seed)

    def predict(T: Floats) -> Mixture:
        with torch.no_grad():
            found = process.posterior(torch.tensor(T), observation_noise=True)
            means, variances = (
                a[..., 0].reshape(-1, len(T)) for a in (found.mean, found.variance)
            )
        weights = torch.full((len(means),), 1.0 / len(means), dtype=torch.float64)
        return Mixture(means.numpy(), variances.sqrt().numpy(), weights.numpy())

    return predict
