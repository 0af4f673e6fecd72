"""What the two experiments with two inputs share: surfaces, fits, test sets, table and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paims._arrays import FloatArray
from paims.experiments import _checks
from paims.experiments._fits import (
    Accuracy,
    Fit,
    Runs,
    TestSets,
    accuracy,
    fit,
    levels_to_one,
    make_tests,
)
from paims.experiments._grids import (
    GridMode,
    Moments,
    Surface,
    grid_modes,
    quadrature,
    surface,
)
from paims.experiments._outcome import Check, Row, Settings, Table
from paims.sampling import Mode
from paims.simulators import Simulator

#: The least nugget, at which the paper draws its level curves.
NUGGET = 1e-12
N_SAMPLES = 2000
# Near the origin: both log length-scales below this, lengths below an eighth of the range.
_NEAR = -4.0
# The posterior of (log phi1, log phi2, z) has faded at the edge of this box.
_LOWER, _UPPER = np.array([-13.0, -13.0, -45.0]), np.array([30.0, 30.0, 40.0])
# The paper's scheme has dependent draws and a known bias: chain lengths by weight. Over many seeds
# its means are off by up to 0.16 standard deviations.
_ALLOWED_PAPER = 0.25


@dataclass(frozen=True)
class Published:
    """The figures that the paper prints."""

    n_levels: int
    rmse_best: float
    rmse_mixture: float


@dataclass(frozen=True, eq=False)
class Planar:
    """Everything that is computed for an experiment with two inputs.

    Attributes
    ----------
    name : str
    runs : Runs
    simulator : Simulator
    settings : Settings
    published : Published
    surfaces : dict of str to Surface
        "reference" and "flat" prior at the least nugget, "none" without a nugget.
    modes : dict of str to GridMode
        Of the surface with the reference prior, by letter.
    n_peaks : tuple of int
        Local minima without and with the nugget.
    tests : TestSets
    fits, fixed : dict of str to Fit
        By scheme: nugget estimated, and fixed at its least value.
    errors : dict of (str, str, str) to Accuracy
        By "fits" or "fixed", scheme, and "best" or "mixture".
    truth : Moments
        Of the posterior with the nugget estimated, by quadrature.
    """

    name: str
    runs: Runs
    simulator: Simulator
    settings: Settings
    published: Published
    surfaces: dict[str, Surface]
    modes: dict[str, GridMode]
    n_peaks: tuple[int, int]
    tests: TestSets
    fits: dict[str, Fit]
    fixed: dict[str, Fit]
    errors: dict[tuple[str, str, str], Accuracy]
    truth: Moments

    @property
    def shown(self) -> str:
        """The scheme that figures show."""
        return self.settings.schemes[-1]

    def sampled_modes(self, scheme: str) -> list[Mode]:
        """Modes that the sampler finds at the least nugget, climbed to their tops."""
        return self.fixed[scheme].at_one.modes(min_mass=1e-5, prominence=0.1, climb=True)


def study(
    name: str,
    runs: Runs,
    simulator: Simulator,
    settings: Settings,
    published: Published,
    letters: Callable[[Sequence[GridMode]], dict[str, GridMode]],
) -> Planar:
    """Compute everything.

    Parameters
    ----------
    name : str
    runs : Runs
    simulator : Simulator
        That made the runs, for the test sets.
    settings : Settings
    published : Published
    letters : callable
        Names the modes of the grid.
    """
    surfaces = {
        "reference": surface(runs.posterior(nugget=NUGGET)),
        "flat": surface(runs.posterior(prior="flat", nugget=NUGGET)),
        "none": surface(runs.posterior(nugget=0.0)),
    }
    modes = grid_modes(surfaces["reference"])
    tests = make_tests(simulator, settings)
    found: dict[str, dict[str, Fit]] = {"fits": {}, "fixed": {}}
    errors: dict[tuple[str, str, str], Accuracy] = {}
    for kind, nugget in (("fits", "estimate"), ("fixed", NUGGET)):
        for scheme in settings.schemes:
            posterior = runs.posterior(nugget=nugget)
            n_samples = settings.points(scheme, N_SAMPLES)
            one = fit(runs, posterior, scheme, n_samples, settings.seed)
            found[kind][scheme] = one
            errors[kind, scheme, "best"] = accuracy(one, "best", tests)
            errors[kind, scheme, "mixture"] = accuracy(one, one.mixture, tests)
    return Planar(
        name=name,
        runs=runs,
        simulator=simulator,
        settings=settings,
        published=published,
        surfaces=surfaces,
        modes=letters(modes),
        n_peaks=(len(grid_modes(surfaces["none"])), len(modes)),
        tests=tests,
        fits=found["fits"],
        fixed=found["fixed"],
        errors=errors,
        truth=quadrature(runs.posterior(), _LOWER, _UPPER),
    )


def rows(planar: Planar, why_best: str, why_mixture: str) -> list[Row]:
    """The paper's table with ours beside it.

    Parameters
    ----------
    planar : Planar
    why_best, why_mixture : str
        Why the errors differ from the paper's.
    """
    schemes, published = planar.settings.schemes, planar.published
    levels = {scheme: planar.fits[scheme].n_levels for scheme in schemes}
    out = [
        Row(
            "number of levels",
            published.n_levels,
            levels,
            "The paper stops by the coefficient of variation of the negative log posterior, which "
            "depends on the constant that is added to it. Here the standard deviation has to fall "
            "to a tenth of that at level 0 (paper scheme) or at temperature 1 (default). "
            + levels_to_one(planar.fits),
        )
    ]
    for part, figure, why in (
        ("best", published.rmse_best, why_best),
        ("mixture", published.rmse_mixture, why_mixture),
    ):
        label = {"best": "RMSE of the best point", "mixture": "RMSE of the mixture"}[part]
        for kind, nugget in (("fits", "nugget estimated"), ("fixed", f"nugget {NUGGET:g}")):
            errors = {scheme: planar.errors[kind, scheme, part] for scheme in schemes}
            out.append(
                Row(
                    f"{label}, {nugget}",
                    figure,
                    {scheme: error.rmse for scheme, error in errors.items()},
                    f"{_place(errors, figure)} {why if kind == 'fits' else ''}".strip(),
                )
            )
    return out


def _place(errors: Mapping[str, Accuracy], figure: float) -> str:
    """Where the paper's figure lies among test sets of its size."""
    texts: dict[str, list[str]] = {}
    for scheme, error in errors.items():
        texts.setdefault(spread_of(error.rmse_small, figure), []).append(scheme)
    return " ".join(f"{text} ({', '.join(schemes)})." for text, schemes in texts.items())


def spread_of(rmse: FloatArray, figure: float) -> str:
    """Range over the small test sets, and how many of them are below a figure."""
    return (
        f"{rmse.min():.3g} to {rmse.max():.3g} on test sets of 25 points, {np.sum(rmse < figure)} "
        f"of {len(rmse)} below the paper's figure"
    )


def mean_at(planar: Planar, location: FloatArray, X: FloatArray) -> FloatArray:
    """Predictive mean with a single point (log phi1, log phi2) at the least nugget."""
    ensemble = planar.fixed[planar.shown].ensembles["best"]
    block = ensemble.posterior.predict(location[None], X)
    return ensemble.output.value(block.mean[0])


def rmse_at(planar: Planar, location: FloatArray) -> tuple[float, FloatArray]:
    """RMSE of a single point there: on the large test set, and on each of the small ones."""
    tests = planar.tests
    flat = tests.X_small.reshape(-1, tests.X.shape[1])
    small = mean_at(planar, location, flat).reshape(tests.y_small.shape)
    return (
        float(np.sqrt(np.mean((tests.y - mean_at(planar, location, tests.X)) ** 2))),
        np.sqrt(np.mean((tests.y_small - small) ** 2, axis=1)),
    )


def mode_table(planar: Planar) -> Table:
    """Modes of the grid beside those of the sampler."""
    found = planar.sampled_modes(planar.shown)
    body: list[list[str | float]] = []
    for letter, mode in planar.modes.items():
        near = [m for m in found if np.max(np.abs(m.location - mode.location)) < 0.25]
        sampled = max(near, key=lambda m: m.mass) if near else None
        body.append(
            [
                letter,
                _pair(mode.location),
                "not found" if sampled is None else _pair(sampled.location),
                mode.log_density - planar.surfaces["reference"].log_density.max(),
                f"{mode.mass:.5f}",
                "" if sampled is None else f"{sampled.mass:.5f} ± {sampled.mass_error:.5f}",
                rmse_at(planar, mode.location)[0],
            ]
        )
    return Table(
        f"Modes at nugget {NUGGET:g}, reference prior ({planar.shown} scheme)",
        (
            "mode", "(log phi1, log phi2) on the grid", "found by the sampler",
            "log density below the highest", "mass on the grid", "mass by the sampler",
            "RMSE of that point",
        ),
        body,
    )  # fmt: skip


def _pair(location: FloatArray) -> str:
    return f"({location[0]:.2f}, {location[1]:.2f})"


def checks(planar: Planar, n_modes: int) -> list[Check]:
    """The findings that concern two inputs; ``n_modes`` is what the paper tells apart."""
    name, surfaces = planar.name, planar.surfaces
    out = [
        _checks.several_modes(
            name,
            list(planar.modes.values()),
            [(mode.location, mode.mass) for mode in planar.sampled_modes(planar.shown)],
            n_expected=n_modes,
            mass_error=_mass_error(planar.fixed[planar.shown]),
        )
    ]
    for scheme in planar.settings.schemes:
        errors = [planar.errors["fits", scheme, part].residuals for part in ("best", "mixture")]
        out.append(_checks.in_bands(name, scheme, *errors))
    out += [
        _checks.removes_mass(
            name, surfaces["reference"].mass(_NEAR), surfaces["flat"].mass(_NEAR), _NEAR
        ),
        _checks.stabilises(
            name,
            (surfaces["none"].failed_share, surfaces["reference"].failed_share),
            planar.n_peaks,
            NUGGET,
        ),
    ]
    for scheme, one in planar.fits.items():
        draws = one.at_one
        allowed = _ALLOWED_PAPER if scheme == "paper" else monte_carlo_error(one)
        out.append(
            _checks.at_temperature_one(name, scheme, draws.mean, draws.sd, planar.truth, allowed)
        )
    return out


def monte_carlo_error(one: Fit) -> float:
    """Four standard errors of a mean, in standard deviations, and of a relative one."""
    return 4.0 / float(np.sqrt(one.at_one.effective_size))


def _mass_error(one: Fit) -> float:
    """Four standard errors of a mass of one half, and what the grid and the paper's bias add."""
    extra = 0.01 if one.scheme == "default" else 0.1
    return 2.0 / float(np.sqrt(one.at_one.effective_size)) + extra
