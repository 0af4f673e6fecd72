"""pylibkriging's own log posterior: without a nugget, and with a prior that costs less."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pylibkriging

from benchmarks.throughput import FloatArray

N_POINTS = 16


def single(
    X: FloatArray, H: FloatArray, y: FloatArray, phi: FloatArray, delta: FloatArray
) -> Callable[[], int]:
    """`logMargPostFun` at one point after the other; its ranges are square roots of phi."""
    del H, delta
    model = pylibkriging.Kriging(y, X, "gauss", regmodel="linear", optim="none", objective="LMP",
                                 parameters={"theta": np.full((1, X.shape[1]), 0.5)})  # fmt: skip
    ranges = np.sqrt(phi[:N_POINTS])

    def work() -> int:
        for theta in ranges:
            model.logMargPostFun(theta, False)
        return N_POINTS

    return work


ENGINES = {"pylibkriging, logMargPostFun": single}
