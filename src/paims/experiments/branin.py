"""The paper's section 5.1: Branin's function from 18 runs, four modes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paims import datasets, simulators
from paims.experiments._fits import Runs
from paims.experiments._outcome import Outcome, Settings
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
from paims.experiments._planar_pictures import pictures
from paims.experiments._surface import GridMode

PUBLISHED = Published(n_levels=7, rmse_best=7.068, rmse_mixture=15.099)
# Log length-scale from which on an input hardly bends the output: correlation from end to end of
# the unit interval is above 0.98.
_LONG = 3.4


def letters(modes: Sequence[GridMode]) -> dict[str, GridMode]:
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


def run(settings: Settings) -> Outcome:
    """Run the experiment."""
    data = datasets.load_branin()
    runs = Runs(data.X, data.y, data.input_names)
    planar = study("branin", runs, simulators.branin, settings, PUBLISHED, letters)
    why_best, why_mixture = _explanations(planar)
    return Outcome(
        name=planar.name,
        title="Branin's function (the paper's section 5.1)",
        rows=rows(planar, why_best, why_mixture),
        tables=[mode_table(planar)],
        checks=checks(planar, n_modes=4),
        pictures=pictures(planar),
        notes=[f"{s} scheme: {text}" for s, one in planar.fits.items() for text in one.notes],
    )


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
        f" ({spread_of(small_a, PUBLISHED.rmse_best)}): the paper's best point behaves as A, "
        f"though B is higher by {b.log_density - a.log_density:.2f} in log density and has "
        f"{b.mass / a.mass:.1f} times the mass."
    )
    mixture = (
        "A mixture of the points A and B has the paper's RMSE with "
        f"{share_for(planar, PUBLISHED.rmse_mixture):.0%} in A; the posterior at nugget "
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
