"""Ours: the squared exponential, and other kernels, nuggets and priors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paims
from benchmarks.peers.scoring import Floats, Mixture
from paims.emulator._averaging import AUTO

# The kernel that most packages have too; kernels are averaged in `benchmarks.functions`.
SMOOTH: dict[str, Any] = {"kernel": "squared_exponential"}
METHODS: dict[str, dict[str, Any]] = {
    "paims": SMOOTH,
    "paims, kernel by evidence": {"kernel": "auto"},
    "paims, radial kernels too": {"kernel": (*AUTO, "radial_matern72", "radial_matern52")},
    "paims, radial Matérn 7/2": {"kernel": "radial_matern72"},
    "paims, nugget 1e-8": {**SMOOTH, "nugget": 1e-8},
    "paims, Matérn 5/2": {"kernel": "matern52"},
    "paims, jointly robust prior": {**SMOOTH, "prior": "jointly_robust"},
}
# For many runs there is a prior that costs less than the default.
GROWING = ("paims", "paims, jointly robust prior")


def fit(X: Floats, y: Floats, seed: int, **options: Any) -> Callable[[Floats], Mixture]:
    """Sample the hyper-parameters; predictions are mixtures of Student-t distributions."""
    emulator = paims.Emulator(random_state=seed, n_jobs=1, **options).fit(X, y)

    def predict(T: Floats) -> Mixture:
        found = emulator.predict_distribution(T)
        components = found.components
        return Mixture(components.means, components.scales, found.weights, components.dof)

    return predict
