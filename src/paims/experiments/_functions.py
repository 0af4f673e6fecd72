"""The experiments on functions with a formula: Figure 1, Branin's function and the 2D model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paims import datasets, plots, simulators
from paims.emulator._scaling import OutputScaling
from paims.experiments._fits import Runs, notes
from paims.experiments._grids import GridMode
from paims.experiments._outcome import Outcome, Picture, Settings, Table, canvas
from paims.experiments._pictures import pictures
from paims.experiments._planar import (
    NUGGET,
    Planar,
    Published,
    checks,
    mean_at,
    mode_table,
    rmse_at,
    rows,
    spread_of,
    study,
)

N_RUNS = 8
#: In squared units of the input, whose runs are 10/7 apart: short, about right, long.
PHI = (0.1, 1.0, 30.0)
_NUGGET = 1e-12
BRANIN = Published(n_levels=7, rmse_best=7.068, rmse_mixture=15.099)
TWO_D_MODEL = Published(n_levels=7, rmse_best=1.356, rmse_mixture=1.345)
# Log length-scale from which on an input hardly bends the output: correlation from end to end of
# the unit interval is above 0.98.
_LONG = 3.4
# Modes with less are specks of the surface.
_MIN_MASS = 1e-4


def run_one_d(settings: Settings) -> Outcome:
    """What a length-scale does, in one dimension with 8 runs (Figure 1).

    It has nothing random and needs no data.
    """
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
        name="one-d",
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
                "one-d/length-scale",
                f"The emulator of 5 + x + cos x + sin(3x)/2 from {N_RUNS} evenly spaced runs with "
                "three values of the length-scale. The shorter it is, the less the runs say of "
                "the places between them. The paper does not print its design.",
                figure,
            )
        ],
    )


def run_branin(settings: Settings) -> Outcome:
    """Branin's function from 18 runs, four modes (section 5.1)."""
    data = datasets.load_branin()
    runs = Runs(data.X, data.y, data.input_names)
    planar = study("branin", runs, simulators.branin, settings, BRANIN, branin_letters)
    title = "Branin's function (the paper's section 5.1)"
    return _outcome(planar, title, _explanations(planar), n_modes=4)


def run_two_d_model(settings: Settings) -> Outcome:
    """The 2D model from 20 runs (section 5.2)."""
    data = datasets.load_two_d_model()
    runs = Runs(data.X, data.y, data.input_names)
    simulator = simulators.two_d_model
    planar = study("two-d-model", runs, simulator, settings, TWO_D_MODEL, letters_by_mass)
    why = (
        "The paper's 25 test points are not published; the error is large only for the smallest "
        "x1, and it is chance how many test points lie there."
    )
    return _outcome(planar, "The 2D model (the paper's section 5.2)", (why, why), n_modes=2)


def _outcome(planar: Planar, title: str, why: tuple[str, str], n_modes: int) -> Outcome:
    """Tables, checks and pictures; ``why`` the errors of best point and mixture differ."""
    return Outcome(
        name=planar.name,
        title=title,
        rows=rows(planar, *why),
        tables=[mode_table(planar)],
        checks=checks(planar, n_modes),
        pictures=pictures(planar),
        notes=notes(planar.fits),
    )


def branin_letters(modes: Sequence[GridMode]) -> dict[str, GridMode]:
    """The paper's names of the modes, by what it says of them; of two the heavier one.

    A is sensitive to x1 and B to x2; C disregards x2 and D is close to linear regression: both
    length-scales are long, that of x2 much longer for C.
    """
    named: dict[str, GridMode] = {}
    for mode in modes:
        first, second = mode.location
        if min(first, second) > _LONG:
            letter = "C" if second - first > 2.0 else "D"
        else:
            letter = "A" if first < second else "B"
        named.setdefault(letter, mode)
    return dict(sorted(named.items()))


def letters_by_mass(modes: Sequence[GridMode]) -> dict[str, GridMode]:
    """Letters for the modes by falling mass; the paper has none here."""
    return dict(zip("ABCDEFGH", (mode for mode in modes if mode.mass >= _MIN_MASS), strict=False))


def _explanations(planar: Planar) -> tuple[str, str]:
    """Why the errors differ from the paper's: which mode, and how much of it."""
    if not {"A", "B"} <= planar.modes.keys():
        return "", ""
    one = planar.fits[planar.shown]
    nugget = float(one.ensembles["best"].posterior.to_physical(one.best.location[None])[1][0])
    a, b = planar.modes["A"], planar.modes["B"]
    (rmse_a, small_a), (rmse_b, _) = (rmse_at(planar, mode.location) for mode in (a, b))
    best = (
        f"The density of (log phi, z) is highest at nugget {nugget:.2g}, where the emulator "
        "smooths; without the Jacobian of z, as in the paper's density, it is highest at the "
        f"least nugget. At nugget {NUGGET:g} mode B has RMSE {rmse_b:.3g} and mode A {rmse_a:.3g}"
        f" ({spread_of(small_a, BRANIN.rmse_best)}): the paper's best point behaves as A, "
        f"though B is higher by {b.log_density - a.log_density:.2f} in log density and has "
        f"{b.mass / a.mass:.1f} times the mass."
    )
    mixture = (
        "A mixture of the points A and B has the paper's RMSE with "
        f"{share_for(planar, BRANIN.rmse_mixture):.0%} in A; the posterior at nugget "
        f"{NUGGET:g} has {a.mass:.0%} there."
    )
    return best, mixture


def share_for(planar: Planar, rmse: float) -> float:
    """Weight of A in a mixture of the points A and B whose RMSE is a given one (the larger)."""
    off_a, off_b = (
        mean_at(planar, planar.modes[letter].location, planar.tests.X) - planar.tests.y
        for letter in "AB"
    )
    # Mean square of w off_a + (1 - w) off_b is a quadratic in w.
    square = np.mean((off_a - off_b) ** 2)
    cross = np.mean((off_a - off_b) * off_b)
    root = cross**2 - square * (np.mean(off_b**2) - rmse**2)
    weight = (-cross + np.sqrt(np.maximum(root, 0.0))) / square
    other = (-cross - np.sqrt(np.maximum(root, 0.0))) / square
    return float(other if 0.0 <= other <= 1.0 else np.clip(weight, 0.0, 1.0))
