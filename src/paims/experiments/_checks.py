"""The six findings of the paper, each as a check that can fail.

Every function takes the numbers that an experiment has computed and says whether the finding holds
in them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paims._arrays import FloatArray
from paims.experiments._grids import GridMode, Moments
from paims.experiments._outcome import Check

#: The reference prior has to leave at most this share of what the flat prior has near the origin.
_REMOVED = 0.5
#: Correlation from end to end of an input from which on the output counts as insensitive to it.
_INSENSITIVE = 0.9
#: A mode that the sampler has to find, by its mass on the grid.
_WORTH_FINDING = 0.01


def several_modes(
    where: str,
    modes: Sequence[GridMode],
    found: Sequence[tuple[FloatArray, float]],
    *,
    n_expected: int,
    mass_error: float,
) -> Check:
    """Several modes exist, and the sampler finds those that have mass.

    Parameters
    ----------
    where : str
        Name of the experiment.
    modes : sequence of GridMode
        Of the grid.
    found : sequence of (location, mass)
        Modes of the sampler, in the same coordinates.
    n_expected : int
        Modes that the paper tells apart.
    mass_error : float
        Largest difference of a mass that Monte-Carlo error explains.
    """
    parts = [f"the grid has {len(modes)} modes, the paper tells {n_expected} apart"]
    passed = len(modes) >= n_expected
    for mode in modes:
        if mode.mass < _WORTH_FINDING:
            continue
        at = np.round(mode.location, 2).tolist()
        near = [mass for place, mass in found if np.max(np.abs(place - mode.location)) < 0.25]
        if not near:
            passed = False
            parts.append(f"the sampler has none near {at}")
            continue
        passed &= abs(sum(near) - mode.mass) <= mass_error
        parts.append(
            f"mass at {at}: grid {mode.mass:.3f}, sampler {sum(near):.3f} (allowed "
            f"+-{mass_error:.3f})"
        )
    finding = "The posterior of the length-scales has several modes."
    return Check(f"{where}: several modes", finding, bool(passed), "; ".join(parts) + ".")


def in_bands(where: str, scheme: str, best: FloatArray, mixture: FloatArray) -> Check:
    """The mixture's standardised residuals stay in the 95 % bands more often.

    Parameters
    ----------
    where, scheme : str
    best, mixture : (k,) ndarray
        Standardised residuals of the best point and of the mixture.
    """
    inside = [float(np.mean(np.abs(values) <= 1.96)) for values in (best, mixture)]
    detail = (
        f"inside +-1.96: best point {inside[0]:.1%}, mixture {inside[1]:.1%} of {len(best)} "
        f"residuals ({scheme} scheme)."
    )
    finding = "The mixture's standardised residuals stay in the bands more often than the best "
    return Check(
        f"{where}: residuals in the bands ({scheme} scheme)",
        finding + "point's.",
        inside[1] > inside[0],
        detail,
    )


def removes_mass(where: str, reference: float, flat: float, below: float) -> Check:
    """The reference prior removes mass near the origin of the length-scales.

    Parameters
    ----------
    where : str
    reference, flat : float
        Share of the posterior mass there, with each prior.
    below : float
        Both log length-scales are below this.
    """
    return Check(
        f"{where}: mass near the origin",
        "The reference prior removes probability mass from the neighbourhood of the origin.",
        bool(0.0 <= reference < _REMOVED * flat),
        f"share of the mass with both log phi below {below:g}: {reference:.2g} with the "
        f"reference prior, {flat:.2g} with the flat one.",
    )


def stabilises(
    where: str, failed: tuple[float, float], n_peaks: tuple[int, int], nugget: float
) -> Check:
    """The nugget stabilises the surface.

    Parameters
    ----------
    where : str
    failed : tuple of float
        Share of the grid without a value, without and with the nugget.
    n_peaks : tuple of int
        Local minima of the negative log posterior, without and with the nugget.
    nugget : float
    """
    return Check(
        f"{where}: the nugget stabilises",
        "Adding the nugget results in a numerically stable surface.",
        failed[1] == 0.0 and failed[0] > 0.0 and n_peaks[1] < n_peaks[0],
        f"without a nugget {failed[0]:.1%} of the grid cannot be computed and the rest has "
        f"{n_peaks[0]} local minima; with {nugget:g}, {failed[1]:.1%} and {n_peaks[1]}.",
    )


def at_temperature_one(
    where: str, scheme: str, mean: FloatArray, sd: FloatArray, truth: Moments, allowed: float
) -> Check:
    """Stopping at temperature 1 gives the posterior.

    Parameters
    ----------
    where, scheme : str
    mean, sd : (d,) ndarray
        Of the draws at temperature 1.
    truth : Moments
        By quadrature.
    allowed : float
        Largest difference of a mean, in standard deviations, and of a standard deviation,
        relative.
    """
    off_mean = float(np.max(np.abs(mean - truth.mean) / truth.sd))
    off_sd = float(np.max(np.abs(sd / truth.sd - 1.0)))
    return Check(
        f"{where}: temperature 1 ({scheme} scheme)",
        "Stopped at temperature 1 the algorithm samples the posterior.",
        max(off_mean, off_sd) <= allowed,
        f"against quadrature on {truth.n_points} points, means are off by up to {off_mean:.3f} "
        f"standard deviations, standard deviations by up to {off_sd:.1%} ({scheme} scheme; "
        f"allowed {allowed:.3f}).",
    )


def insensitive(
    where: str,
    scheme: str,
    quartiles: FloatArray,
    correlation: FloatArray,
    wide: tuple[int, ...] = (2, 3),
    tight: int = 4,
) -> Check:
    """Some length-scales are wide and large, one is concentrated.

    Parameters
    ----------
    where, scheme : str
    quartiles : (2, p) ndarray
        Of the log length-scales.
    correlation : (p,) ndarray
        Median correlation from end to end of each input.
    wide : tuple of int
        Inputs that the output is insensitive to.
    tight : int
        Input with the concentrated length-scale.
    """
    spread = quartiles[1] - quartiles[0]
    others = [i for i in range(len(spread)) if i not in wide]
    flat = min(correlation[list(wide)]) >= _INSENSITIVE > max(correlation[others])
    wider = min(spread[list(wide)]) > max(spread[others])
    tighter = all(spread[tight] < spread[i] for i in range(len(spread)) if i != tight)
    names = " and ".join(f"phi{i + 1}" for i in wide)
    listed = ", ".join(f"phi{i + 1} {value:.2f}" for i, value in enumerate(spread))
    ends = ", ".join(f"{value:.3f}" for value in correlation)
    return Check(
        f"{where}: {names} ({scheme} scheme)",
        f"The output is insensitive to inputs with {names}, whose draws are wide; phi{tight + 1} "
        "is concentrated.",
        bool(flat and wider and tighter),
        f"interquartile ranges of log phi: {listed}; correlation from end to end: {ends} "
        f"({scheme} scheme).",
    )
