"""pylibkriging (libKriging): maximum likelihood (LL) or marginal posterior (LMP), ten starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pylibkriging

from benchmarks.peers.scoring import Floats, Mixture, normal

METHODS: dict[str, dict[str, Any]] = {
    "pylibkriging, LL": {"objective": "LL"},
    "pylibkriging, LMP": {"objective": "LMP"},
    "pylibkriging, LL, nugget": {"objective": "LL", "noise": "nugget"},
    "pylibkriging, LMP, nugget": {"objective": "LMP", "noise": "nugget"},
}


def fit(X: Floats, y: Floats, seed: int, **options: Any) -> Callable[[Floats], Mixture]:
    """Gaussian kernel, linear trend, BFGS from ten starts; it takes no seed."""
    del seed
    model = pylibkriging.Kriging(y, X, "gauss", regmodel="linear", optim="BFGS10", **options)

    def predict(T: Floats) -> Mixture:
        mean, std, *_ = model.predict(T, True, False, False)
        return normal(mean, std)

    return predict
