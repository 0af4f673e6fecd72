"""The paper's Figure 1: what a length-scale does, in one dimension with 8 runs."""

from __future__ import annotations

import numpy as np

from paims import plots, simulators
from paims.emulator._scaling import OutputScaling
from paims.experiments._fits import Runs
from paims.experiments._outcome import Outcome, Settings, Table
from paims.experiments._pictures import Picture, canvas

NAME = "one-d"
N_RUNS = 8
#: In squared units of the input, whose runs are 10/7 apart: short, about right, long.
PHI = (0.1, 1.0, 30.0)
_NUGGET = 1e-12


def run(settings: Settings) -> Outcome:
    """Run the experiment; it has nothing random and needs no data."""
    simulator = simulators.wave
    low, high = (float(end[0]) for end in simulator.domain)
    X = np.linspace(low, high, N_RUNS)[:, None]
    runs = Runs(X, simulator(X), simulator.input_names)
    posterior = runs.posterior(nugget=_NUGGET)
    output = OutputScaling.of(runs.y, centre=True)
    grid = np.linspace(low, high, 401)
    truth = simulator(grid[:, None])
    figure = canvas(8.4, 2.9)
    axes = figure.subplots(1, len(PHI), sharex=True, sharey=True)
    body = []
    for ax, phi in zip(axes, PHI, strict=True):
        block = posterior.predict(np.log([[phi]]), grid[:, None])
        mean = output.value(block.mean[0])
        std = output.difference(np.sqrt(block.variance[0]))
        plots.curve(grid, mean, mean - 1.96 * std, mean + 1.96 * std, ax, truth=truth,
                    runs=(X[:, 0], runs.y), labels=("$x$", ""))  # fmt: skip
        neighbours = float(np.exp(-0.5 * (X[1, 0] - X[0, 0]) ** 2 / phi))
        ax.set_title(f"$\\phi$ = {phi:g}", fontsize=9)
        rmse = float(np.sqrt(np.mean((mean - truth) ** 2)))
        body.append([phi, neighbours, rmse, float(posterior(np.log([[phi]]))[0])])
    axes[0].set_ylabel(r"$\eta(x)$")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return Outcome(
        name=NAME,
        title="The length-scale in one dimension (the paper's Figure 1)",
        tables=[
            Table(
                "Low values make the runs less dependent of each other",
                ("phi", "correlation of neighbouring runs", "RMSE", "log posterior"),
                body,
            )
        ],
        pictures=[
            Picture(
                f"{NAME}/length-scale",
                f"The emulator of 5 + x + cos x + sin(3x)/2 from {N_RUNS} evenly spaced runs with "
                "three values of the length-scale. The shorter it is, the less the runs say of "
                "the places between them. The paper does not print its design.",
                figure,
            )
        ],
    )
