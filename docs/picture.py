"""The README's picture: ``python docs/picture.py`` writes ``docs/_static/picture.svg`` anew."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import paims
from paims import simulators

PICTURE = Path(__file__).parent / "_static" / "picture.svg"


def main() -> None:
    """Fit both ways to the same 15 runs and draw a cut through the predictions."""
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "paims", "font.size": 9})
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of the backend

    branin = simulators.get("branin")
    X = branin.design(15, random_state=8)
    y = branin(X)
    kernel = ConstantKernel(1.0) * RBF([1.0, 1.0], (1e-2, 1e2)) + WhiteKernel(1e-4, (1e-10, 10))
    optimised = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=10, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimised.fit(X, y)
    emulator = paims.Emulator(random_state=0).fit(X, y)

    cut = np.column_stack([np.linspace(0.0, 1.0, 120), np.full(120, 0.8)])
    mean, std = optimised.predict(cut, return_std=True)
    mixture = emulator.predict_distribution(cut)
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.7), sharey=True, layout="constrained")
    for ax, title, centre, lower, upper in (
        (axes[0], "optimised, ten restarts", mean, mean - 1.96 * std, mean + 1.96 * std),
        (axes[1], "paims", mixture.mean, *mixture.interval(0.95)),
    ):
        ax.fill_between(cut[:, 0], lower, upper, color="#DDE6EC", label="95 % interval")
        ax.plot(cut[:, 0], centre, color="#0072B2", label="prediction")
        ax.plot(cut[:, 0], branin(cut), color="#222222", linestyle="--", label="simulator")
        ax.set(title=title, xlabel="x1, with x2 = 0.8")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("output")
    axes[0].legend(frameon=False, loc="upper left")
    figure.savefig(PICTURE, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
