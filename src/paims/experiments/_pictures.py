"""The pictures: those of the experiments with two inputs, and residuals and coverage of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from paims import diagnostics, plots
from paims._arrays import FloatArray
from paims.emulator import MixturePrediction
from paims.experiments._fits import Fit
from paims.experiments._outcome import Film, Picture, canvas
from paims.experiments._planar import N_SAMPLES, NUGGET, Planar
from paims.inference import density, reference
from paims.plots import LevelCloud
from paims.plots._style import panels
from paims.plots._surfaces import cloud_title
from paims.sampling import anneal

LABELS = (r"$\log\,\phi_1$", r"$\log\,\phi_2$")
_N_SHOWN = 100
_N_GRID = 61


def pictures(planar: Planar) -> list[Picture | Film]:
    """All pictures, in the order of the paper."""
    clouds = level_clouds(planar)
    errors = planar.errors
    residuals = {
        scheme: {
            part: (
                errors["fits", scheme, part].mean[1 : _N_SHOWN + 1],
                errors["fits", scheme, part].residuals[1 : _N_SHOWN + 1],
            )
            for part in ("best", "mixture")
        }
        for scheme in planar.settings.schemes
    }
    one = planar.fits[planar.shown]
    X, y = planar.tests.X[1 : _N_SHOWN + 1], planar.tests.y[1 : _N_SHOWN + 1]
    predictions = {"best point": one.predict(X, "best"), "mixture": one.predict(X, one.mixture)}
    return [
        _curves(planar),
        _nugget(planar),
        _levels(planar, clouds),
        _film(planar, clouds),
        tempering_picture(planar.name, one),
        _pairs(planar),
        residual_picture(planar.name, residuals, f"{_N_SHOWN} Sobol' points"),
        coverage_picture(planar.name, predictions, y, planar.settings.seed),
        _spread(planar),
        _prediction(planar),
    ]


def _curves(planar: Planar) -> Picture:
    figure = canvas(7.4, 3.9)
    axes = figure.subplots(1, 2, sharey=True)
    marks = {letter: mode.location for letter, mode in planar.modes.items()}
    for ax, prior in zip(axes, ("reference", "flat"), strict=True):
        area = planar.surfaces[prior]
        plots.level_curves(area.axis, area.axis, area.height, ax, labels=LABELS,
                           marks=marks if prior == "reference" else None)  # fmt: skip
        ax.set_title(f"{prior} prior", fontsize=9)
    axes[1].set_ylabel("")
    return Picture(
        f"{planar.name}/level-curves",
        f"Negative log posterior above its minimum at nugget {NUGGET:g}, with the reference prior "
        "and its modes (left) and with the flat prior (right). Dashed: equal length-scales.",
        figure,
    )


def _nugget(planar: Planar) -> Picture:
    figure = canvas(7.4, 3.9)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, key in zip(axes, ("none", "reference"), strict=True):
        area = planar.surfaces[key]
        plots.level_curves(area.axis, area.axis, area.height, ax, labels=LABELS, numbers=False,
                           levels=(1, 4, 16, 40, 60, 80, 120))  # fmt: skip
        ax.set_title("no nugget" if key == "none" else f"nugget {NUGGET:g}", fontsize=9)
    axes[1].set_ylabel("")
    failed = planar.surfaces["none"].failed_share
    return Picture(
        f"{planar.name}/nugget",
        "Negative log posterior without a nugget (left; hatched where the correlation matrix "
        f"cannot be factorised, {failed:.0%} of the square) and with the least nugget (right). "
        "Curves at 1, 4, 16, 40, 60, 80 and 120 above the minimum.",
        figure,
    )


def level_clouds(planar: Planar) -> list[LevelCloud]:
    """Points of each level of an annealing towards the optimum, at the least nugget."""
    posterior = planar.runs.posterior(nugget=NUGGET)
    scheme = planar.shown
    out = []
    for level in anneal(
        density(posterior),
        reference(posterior, scheme),
        planar.settings.points(scheme, N_SAMPLES),
        goal="optimum",
        scheme=scheme,
        random_state=planar.settings.seed,
    ):
        info = level.info
        out.append(
            LevelCloud(
                level.state.level,
                level.state.points.theta,
                float("inf") if info is None else info.temperature,
                float("nan") if info is None else info.local_acceptance * info.global_acceptance,
                float("nan") if info is None else info.second_acceptance,
            )
        )
    return out


def _levels(planar: Planar, clouds: list[LevelCloud]) -> Picture:
    axes = panels(len(clouds), 4, (1.95, 2.35), figure_fn=canvas, sharex=True, sharey=True)
    area = planar.surfaces["reference"]
    plots.level_clouds(area.axis, area.axis, area.height, clouds, axes, labels=LABELS)
    return Picture(
        f"{planar.name}/annealing-levels",
        f"The annealing at nugget {NUGGET:g} ({planar.shown} scheme): the points of each level "
        "over the level curves of the posterior, with the temperature and the shares of "
        "candidates accepted in the first and in the second stage.",
        axes[0].figure,
    )


def _film(planar: Planar, clouds: list[LevelCloud]) -> Film:
    figure = canvas(4.2, 4.4)
    ax = figure.subplots()
    area = planar.surfaces["reference"]
    plots.level_curves(area.axis, area.axis, area.height, ax, labels=LABELS, diagonal=False)
    (dots,) = ax.plot([], [], ".", color="#D55E00", markersize=3, markeredgewidth=0, alpha=0.6)
    ax.set_title("\n", fontsize=9)

    def frame(cloud: LevelCloud) -> Callable[[], None]:
        def draw() -> None:
            dots.set_data(cloud.points[:, 0], cloud.points[:, 1])
            ax.set_title(cloud_title(cloud), fontsize=9)

        return draw

    return Film(
        f"{planar.name}/annealing",
        f"The annealing at nugget {NUGGET:g}, one picture for each level ({planar.shown} scheme).",
        figure,
        [frame(cloud) for cloud in [*clouds, clouds[-1]]],
    )


def _pairs(planar: Planar) -> Picture:
    figure = canvas(5.6, 5.4)
    result = replace(planar.fits[planar.shown].at_one, names=(*LABELS, "$z$"))
    modes = result.modes()
    plots.pairs(result, modes if len(modes) > 1 else (), figure.subplots(3, 3))
    return Picture(
        f"{planar.name}/marginals",
        "The posterior with the nugget estimated: draws at temperature 1 of the log length-scales "
        f"and of z, the logit of the nugget. It has {len(modes)} mode(s).",
        figure,
    )


def _spread(planar: Planar) -> Picture:
    figure = canvas(6.4, 1.2 + 0.45 * 4 * len(planar.settings.schemes))
    published = {"best": planar.published.rmse_best, "mixture": planar.published.rmse_mixture}
    values, large, paper = {}, {}, {}
    for kind, nugget in (("fits", "nugget estimated"), ("fixed", f"nugget {NUGGET:g}")):
        for scheme in planar.settings.schemes:
            for part in ("best", "mixture"):
                error = planar.errors[kind, scheme, part]
                what = "best point" if part == "best" else "mixture"
                name = f"{what}, {nugget}, {scheme} scheme"
                values[name], large[name] = error.rmse_small, error.rmse
                paper[name] = published[part]
    n_tests = len(planar.tests.y)
    marks = {"the paper": paper, f"{n_tests:,} Sobol' points": large}
    plots.spread(values, figure.subplots(), marks=marks, label="RMSE")
    return Picture(
        f"{planar.name}/rmse",
        f"RMSE on {len(planar.tests.y_small)} Latin hypercubes of 25 points (dots), the size of "
        f"the paper's test set, on {n_tests:,} Sobol' points (bars), and the paper's figure.",
        figure,
    )


def _prediction(planar: Planar) -> Picture:
    one = planar.fits[planar.shown]
    axis = np.linspace(0.0, 1.0, _N_GRID)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    truth = planar.simulator(grid)
    mean, std = one.moments(grid, one.mixture)
    shape = (_N_GRID, _N_GRID)
    figure = canvas(8.6, 2.9)
    plots.prediction_surface(
        axis,
        axis,
        {
            "simulator": truth.reshape(shape),
            "predictive mean": mean.reshape(shape),
            "standard deviation": std.reshape(shape),
            "|error|": np.abs(mean - truth).reshape(shape),
        },
        planar.runs.X,
        figure.subplots(1, 4, sharex=True, sharey=True),
        labels=("$x_1$", "$x_2$"),
    )
    return Picture(
        f"{planar.name}/prediction",
        "The simulator, the mixture's mean and standard deviation, and the error "
        f"({planar.shown} scheme); circles are the runs. Standard deviation and error share a "
        "scale.",
        figure,
    )


def tempering_picture(name: str, one: Fit) -> Picture:
    """Temperature, effective size and acceptance by level."""
    figure = canvas(4.8, 5.0)
    plots.annealing(one.result.levels, figure.subplots(3, 1, sharex=True))
    return Picture(
        f"{name}/tempering",
        "Temperature, effective size of the importance weights and acceptance by level, nugget "
        f"estimated ({one.scheme} scheme).",
        figure,
    )


def residual_picture(
    name: str, residuals: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]], where: str
) -> Picture:
    """Residuals against predicted means: best point above, mixture below, a column per scheme.

    Parameters
    ----------
    name : str
        Of the experiment.
    residuals : mapping
        By scheme and by "best" and "mixture": predicted means and standardised residuals.
    where : str
        What they were computed at.
    """
    figure = canvas(3.6 * len(residuals) + 0.6, 4.6)
    axes = figure.subplots(2, len(residuals), sharex="col", sharey="col", squeeze=False)
    for column, (scheme, parts) in zip(axes.T, residuals.items(), strict=True):
        titles = {"best": f"best point, {scheme} scheme", "mixture": f"mixture, {scheme} scheme"}
        reach = 1.96
        for ax, part in zip(column, ("best", "mixture"), strict=True):
            mean, scores = parts[part]
            # The paper's residuals: errors in units of the predictive standard deviation.
            shown = diagnostics.Residuals(mean + scores, mean, np.ones_like(mean), scores)
            plots.residuals(shown, ax, numbers=False)
            ax.set_title(titles[part], fontsize=9)
            reach = max(reach, float(np.abs(scores).max()))
        column[0].set_ylim(-1.15 * reach, 1.35 * reach)
        column[0].set_xlabel("")
    for ax in axes[:, 1:].ravel():
        ax.set_ylabel("")
    return Picture(
        f"{name}/residuals",
        f"Standardised residuals at {where} with the 95 % bands: the single best point above, the "
        "mixture below. Crosses lie outside.",
        figure,
    )


def coverage_picture(
    name: str, predictions: Mapping[str, MixturePrediction], y: FloatArray, seed: int
) -> Picture:
    """Coverage of intervals of all levels, with bands that know of the dependence of outputs.

    Parameters
    ----------
    name : str
        Of the experiment.
    predictions : mapping of str to MixturePrediction
    y : (k,) ndarray
        Outputs there.
    seed : int
    """
    figure = canvas(3.2 * len(predictions) + 0.4, 3.5)
    axes = figure.subplots(1, len(predictions), sharey=True, squeeze=False)[0]
    for ax, (title, prediction) in zip(axes, predictions.items(), strict=True):
        samples = diagnostics.reference_pit(prediction.sample(400, seed))
        curve = diagnostics.coverage_curve(diagnostics.pit(y, prediction), reference=samples)
        plots.coverage(curve, ax)
        ax.set_title(title, fontsize=9)
    for ax in axes[1:]:
        ax.set_ylabel("")
    return Picture(
        f"{name}/coverage",
        f"Share of {len(y)} test outputs inside their intervals against the nominal level, for "
        "the single best point and for the mixture; the band is what a right prediction gives.",
        figure,
    )
