"""The paper's section 5.3: the Nilson-Kuusk model, five inputs, 100 runs and 150 test runs."""

from __future__ import annotations

import numpy as np

from paims import datasets, plots
from paims._arrays import FloatArray
from paims.diagnostics import length_scales
from paims.experiments import _checks
from paims.experiments._fits import Fit, Runs, fit, levels_to_one, notes
from paims.experiments._outcome import (
    Check,
    Film,
    Outcome,
    Picture,
    Row,
    Settings,
    Table,
    canvas,
)
from paims.experiments._pictures import coverage_picture, residual_picture, tempering_picture

#: Predicted means and standardised residuals, of "best" and of "mixture".
Errors = dict[str, tuple[FloatArray, FloatArray]]

NAME = "nilson-kuusk"
N_LEVELS, RMSE_BEST, RMSE_MIXTURE = 10, 0.022, 0.021
N_SAMPLES = 5000
_SHORT = ("zenith angle", "leaf area", "leaf size", "clumping", r"$\lambda$")
_PARTS = ("best", "mixture")


def run(settings: Settings) -> Outcome:
    """Run the experiment."""
    data = datasets.load_nilson_kuusk()
    assert data.X_test is not None
    assert data.y_test is not None
    low, high = data.X.min(axis=0), data.X.max(axis=0)
    runs = Runs((data.X - low) / (high - low), data.y, data.input_names)
    X_test, y_test = (data.X_test - low) / (high - low), data.y_test
    posterior = runs.posterior()
    fits = {
        scheme: fit(runs, posterior, scheme, settings.points(scheme, N_SAMPLES), settings.seed)
        for scheme in settings.schemes
    }
    errors = {scheme: _errors(one, X_test, y_test) for scheme, one in fits.items()}
    shown = fits[settings.schemes[-1]]
    return Outcome(
        name=NAME,
        title="The Nilson-Kuusk model (the paper's section 5.3)",
        rows=_rows(fits, errors, y_test),
        tables=[_length_table(shown, runs.names)],
        checks=[check for s, one in fits.items() for check in _found(s, one, errors[s])],
        pictures=_pictures(fits, errors, X_test, y_test, settings),
        notes=notes(fits),
    )


def _errors(one: Fit, X: FloatArray, y: FloatArray) -> Errors:
    """Predicted means and standardised residuals of the best point and of the mixture."""
    out = {}
    for part, which in zip(_PARTS, ("best", one.mixture), strict=True):
        mean, std = one.moments(X, which)
        out[part] = (mean, (y - mean) / std)
    return out


def _rows(
    fits: dict[str, Fit],
    errors: dict[str, Errors],
    y: FloatArray,
) -> list[Row]:
    rmse = {
        part: {
            s: float(np.sqrt(np.mean((y - error[part][0]) ** 2))) for s, error in errors.items()
        }
        for part in _PARTS
    }
    test = "The test set is the paper's: 150 published runs. "
    return [
        Row(
            "number of levels",
            N_LEVELS,
            {scheme: one.n_levels for scheme, one in fits.items()},
            "The paper stops by the coefficient of variation, which depends on the constant that "
            "is added. " + levels_to_one(fits),
        ),
        Row(
            "RMSE of the best point",
            RMSE_BEST,
            rmse["best"],
            test + "The target of the authors' published code differs: no Jacobian of z, another "
            "power of the variance and another reference prior.",
        ),
        Row("RMSE of the mixture", RMSE_MIXTURE, rmse["mixture"], test + "As above."),
    ]


def _length_table(one: Fit, names: tuple[str, ...]) -> Table:
    draws = one.at_one
    quantiles = draws.quantile([0.05, 0.25, 0.5, 0.75, 0.95])[:, : len(names)]
    body: list[list[str | float]] = [
        [f"phi{i + 1}", name, *(float(value) for value in quantiles[:, i])]
        for i, name in enumerate(names)
    ]
    header = ("", "input", "5 %", "25 %", "median", "75 %", "95 %")
    return Table(f"Posterior of log phi ({one.scheme} scheme)", header, body)


def _found(scheme: str, one: Fit, errors: dict[str, tuple[FloatArray, FloatArray]]) -> list[Check]:
    posterior, draws = one.ensembles["best"].posterior, one.at_one
    lengths = length_scales(posterior, draws.draws, draws.weights)
    quartiles = draws.quantile([0.25, 0.75])[:, : posterior.n_inputs]
    return [
        _checks.in_bands(NAME, scheme, errors["best"][1], errors["mixture"][1]),
        _checks.insensitive(NAME, scheme, quartiles, lengths.correlation[2]),
    ]


def _pictures(
    fits: dict[str, Fit],
    errors: dict[str, Errors],
    X_test: FloatArray,
    y_test: FloatArray,
    settings: Settings,
) -> list[Picture | Film]:
    one = fits[settings.schemes[-1]]
    predictions = {
        "best point": one.predict(X_test, "best"),
        "mixture": one.predict(X_test, one.mixture),
    }
    return [
        _boxes(fits),
        _marginals(one),
        residual_picture(NAME, errors, f"the {len(y_test)} test runs"),
        coverage_picture(NAME, predictions, y_test, settings.seed),
        tempering_picture(NAME, one),
    ]


def _boxes(fits: dict[str, Fit]) -> Picture:
    figure = canvas(4.1 * len(fits) + 0.4, 3.6)
    axes = figure.subplots(1, len(fits), sharey=True, squeeze=False)[0]
    names = [f"$\\phi_{i + 1}$\n{name}" for i, name in enumerate(_SHORT)]
    for ax, (scheme, one) in zip(axes, fits.items(), strict=True):
        result = one.result if scheme == "paper" else one.at_one
        what = "last level" if scheme == "paper" else "temperature 1"
        quantiles = result.quantile([0.005, 0.25, 0.5, 0.75, 0.995])[:, : len(names)]
        plots.box_plots(quantiles, names, ax, label=r"$\log\,\phi$")
        ax.tick_params(axis="x", labelsize=7)
        ax.set_title(f"{scheme} scheme, {what}", fontsize=9)
    for ax in axes[1:]:
        ax.set_ylabel("")
    return Picture(
        f"{NAME}/length-scales",
        "Draws of the log length-scales on inputs scaled to [0, 1]: median, quartiles, and "
        "whiskers from 0.5 % to 99.5 %.",
        figure,
    )


def _marginals(one: Fit) -> Picture:
    figure = canvas(6.8, 3.6)
    draws = one.at_one
    names = [f"$\\log\\,\\phi_{i + 1}$ ({name})" for i, name in enumerate(_SHORT)] + ["$z$"]
    plots.marginals(draws.draws, draws.weights, names, figure.subplots(2, 3).ravel())
    return Picture(
        f"{NAME}/marginals",
        "Posterior of each log length-scale and of z, the logit of the nugget, at temperature 1 "
        f"({one.scheme} scheme).",
        figure,
    )
