"""BoTorch: fully Bayesian by NUTS, with its own model: Matérn 5/2 and a constant mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from botorch.fit import fit_fully_bayesian_model_nuts
from botorch.models.fully_bayesian import (
    FullyBayesianSingleTaskGP,
    SaasFullyBayesianSingleTaskGP,
)

from benchmarks.peers.scoring import Floats, Mixture

METHODS: dict[str, dict[str, Any]] = {
    "BoTorch, SAAS": {"model": SaasFullyBayesianSingleTaskGP},
    "BoTorch, fully Bayesian": {"model": FullyBayesianSingleTaskGP},
}


def fit(X: Floats, y: Floats, seed: int, model: Any) -> Callable[[Floats], Mixture]:
    """NUTS with its default numbers of steps; noise inferred."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    process = model(torch.tensor(X), torch.tensor(y)[:, None])
    fit_fully_bayesian_model_nuts(process, disable_progbar=True)

    def predict(T: Floats) -> Mixture:
        with torch.no_grad():
            found = process.posterior(torch.tensor(T), observation_noise=True)
            means, variances = found.mean[..., 0], found.variance[..., 0]
        weights = torch.full((len(means),), 1.0 / len(means), dtype=torch.float64)
        return Mixture(means.numpy(), variances.sqrt().numpy(), weights.numpy())

    return predict
