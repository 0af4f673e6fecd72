"""Truth of Gaussian-process posteriors by quadrature, for samplers to be measured against.

`python -m tests.gp_truth` computes evidence, means, standard deviations and tail masses of the
posteriors of the paper's two designs of two inputs, under two priors of the nugget, and writes
them with the evidence of convergence to `tests/data/gp-truth.json`. The designs are found as
`paims.datasets` finds them (see `PAIMS_DATA_DIR` there).

The rule is the trapezoidal one on a regular grid. For a smooth density that has faded at the edge
of the grid its error falls faster than any power of the step. The tails in log phi and z are
exponential, so the box is wide (the density falls by e^-1 or e^-1/2 per unit) and the grid
sparse: a step is halved only where the coarser grid found density, or a neighbour of it. Each grid
has a companion, shifted by half a step along every axis. Two independent rules show the error
without another refinement, and together they sample every marginal at half the step, which tail
masses need: an integral up to a threshold feels frequencies half as high as the whole one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation
from scipy.special import sici

from paims import datasets
from paims.gp import Posterior

Floats = NDArray[np.float64]
LogDensity = Callable[[Floats], Floats]
Event = tuple[int, float]

PATH = Path(__file__).parent / "data" / "gp-truth.json"
LOADERS = {"branin": datasets.load_branin, "two_d_model": datasets.load_two_d_model}
NUGGET_PRIORS = ("uniform", "beta")
PARAMETERS = ("log_phi_1", "log_phi_2", "z")
# Mass of parameter > threshold, between 0.02 and 0.3 in all four posteriors.
EVENTS: dict[str, tuple[Event, ...]] = {
    "branin": ((0, -1.0), (1, 0.0), (2, -3.0)),
    "two_d_model": ((0, -3.0), (1, 2.0), (2, -2.0)),
}
LOWER, UPPER = np.array([-13.0, -13.0, -55.0]), np.array([30.0, 30.0, 50.0])
WIDER = np.array([3.0, 3.0, 10.0])


@dataclass(frozen=True)
class Truth:
    """What a grid of one step found; `masses` are those of the events `parameter > threshold`."""

    step: float
    n_points: int
    n_zero: int
    log_evidence: float
    mean: list[float]
    sd: list[float]
    masses: list[float]


@dataclass(frozen=True)
class Grid:
    """Log densities at the points `lower + step * index` that were evaluated."""

    lower: Floats
    step: float
    shape: tuple[int, ...]
    index: NDArray[np.int64]
    log_density: Floats

    def coordinates(self, axis: int) -> Floats:
        return self.lower[axis] + self.step * np.arange(self.shape[axis])


def _evaluate(
    log_density: LogDensity, lower: Floats, step: float, shape: tuple[int, ...], mask: Any
) -> Grid:
    index = np.argwhere(mask)
    values = [
        log_density(lower + step * index[start : start + 20_000])
        for start in range(0, len(index), 20_000)
    ]
    return Grid(lower, step, shape, index, np.concatenate(values))


def first_grid(log_density: LogDensity, lower: Floats, upper: Floats, step: float) -> Grid:
    """Every point of the box at the given step."""
    shape = tuple(int(n) for n in np.round((upper - lower) / step).astype(int) + 1)
    return _evaluate(log_density, lower, step, shape, np.ones(shape, dtype=bool))


def refined(log_density: LogDensity, grid: Grid, depth: float) -> Grid:
    """Half the step, around the points whose log density is within `depth` of the maximum."""
    shape = tuple(2 * n - 1 for n in grid.shape)
    mask = np.zeros(shape, dtype=bool)
    high = grid.log_density > grid.log_density.max() - depth
    mask[tuple(2 * grid.index[high].T)] = True
    # Two fine steps, that is one coarse neighbour, in every direction.
    mask = binary_dilation(mask, np.ones((5,) * len(shape), dtype=bool))
    return _evaluate(log_density, grid.lower, grid.step / 2, shape, mask)


def companion(log_density: LogDensity, grid: Grid) -> Grid:
    """Grid through the centres of the cells of another."""
    mask = np.zeros(grid.shape, dtype=bool)
    mask[tuple(grid.index.T)] = True
    return _evaluate(log_density, grid.lower + grid.step / 2, grid.step, grid.shape, mask)


def upper_mass(x: Floats, density: Floats, step: float, threshold: float) -> float:
    """Integral of a density sampled at a step above a threshold.

    The band-limited interpolant sum_k f_k sinc((x - x_k)/h) is integrated exactly:
    sum_k h f_k [1/2 - Si(pi (threshold - x_k)/h)/pi]. An indicator on the grid would err by h.
    """
    sine_integral = sici(np.pi * (threshold - x) / step)[0]
    return float(step * density @ (0.5 - sine_integral / np.pi))


def summarise(grids: Sequence[Grid], events: Sequence[Event]) -> Truth:
    """Evidence, moments and tail masses from a grid, or from a grid and its companion."""
    step, shape = grids[0].step, grids[0].shape
    n_params = len(shape)
    values = np.concatenate([grid.log_density for grid in grids])
    top = float(values.max())
    weights = [np.exp(grid.log_density - top) for grid in grids]
    total = sum(float(w.sum()) for w in weights)
    mean, sd, masses = np.empty(n_params), np.empty(n_params), [0.0] * len(events)
    for axis in range(n_params):
        x = np.concatenate([grid.coordinates(axis) for grid in grids])
        marginal = np.concatenate(
            [
                np.bincount(grid.index[:, axis], w, minlength=shape[axis]) / total
                for grid, w in zip(grids, weights, strict=True)
            ]
        )
        mean[axis] = marginal @ x
        sd[axis] = np.sqrt(marginal @ (x - mean[axis]) ** 2)
        fine = step / len(grids)
        for k, (event_axis, threshold) in enumerate(events):
            if event_axis == axis:
                masses[k] = upper_mass(x, marginal / fine, fine, threshold)
    return Truth(
        step=step,
        n_points=len(values),
        n_zero=int(np.sum(np.isneginf(values))),
        log_evidence=top + float(np.log(total / len(grids))) + n_params * float(np.log(step)),
        mean=mean.tolist(),
        sd=sd.tolist(),
        masses=masses,
    )


def integrate(
    log_density: LogDensity,
    events: Sequence[Event],
    *,
    lower: Floats = LOWER,
    upper: Floats = UPPER,
    first_step: float = 1.0,
    n_halvings: int = 2,
    depth: float = 28.0,
) -> tuple[Truth, Truth, Truth]:
    """Truth from the last grid and its companion together, and from each of them alone.

    Parameters
    ----------
    log_density : callable
        Takes (m, d), returns (m,); any constant may be missing.
    events : sequence of (int, float)
        Parameter and threshold; the mass above the threshold is computed.
    lower, upper : ndarray, shape (d,)
        Box of the first grid; the density must have faded at its edge.
    first_step : float
        Step at which no feature can be missed.
    n_halvings : int
        Number of refinements.
    depth : float
        A refinement leaves out what is more than e^-depth below the maximum.
    """
    grid = first_grid(log_density, lower, upper, first_step)
    for _ in range(n_halvings):
        grid = refined(log_density, grid, depth)
    other = companion(log_density, grid)
    return (
        summarise([grid, other], events),
        summarise([grid], events),
        summarise([other], events),
    )


def posterior(design: str, nugget_prior: str) -> Posterior:
    """Posterior of a published design: inputs as they are, output standardised (sd with 1/n)."""
    data = LOADERS[design]()
    y = (data.y - data.y.mean()) / data.y.std()
    return Posterior(data.X, y, nugget_prior=nugget_prior)


def largest_difference(a: Truth, b: Truth, *, tails: bool = True) -> float:
    """Largest difference of two truths: of the log evidence, of means in sds, else relative."""
    sd = np.array(b.sd)
    differences = [
        abs(a.log_evidence - b.log_evidence),
        np.max(np.abs(np.subtract(a.mean, b.mean)) / sd),
        np.max(np.abs(np.divide(a.sd, sd) - 1.0)),
    ]
    if tails:
        differences.append(np.max(np.abs(np.divide(a.masses, b.masses) - 1.0)))
    return float(max(differences))


def case(design: str, nugget_prior: str) -> dict[str, Any]:
    """Truth of one posterior with the evidence that step, box and depth do not matter."""
    log_density = posterior(design, nugget_prior)
    events = EVENTS[design]
    best, grid, shifted = integrate(log_density, events)
    half = integrate(log_density, events, n_halvings=1)[0]
    wider = integrate(log_density, events, lower=LOWER - WIDER, upper=UPPER + WIDER, n_halvings=1)[
        0
    ]
    deeper = integrate(log_density, events, n_halvings=1, depth=34.0)[0]
    truth = asdict(best)
    truth["tails"] = [
        {"parameter": PARAMETERS[axis], "above": threshold, "mass": mass}
        for (axis, threshold), mass in zip(events, truth.pop("masses"), strict=True)
    ]
    return {
        "design": design,
        "nugget_prior": nugget_prior,
        **truth,
        "convergence": {
            "grid_to_companion": largest_difference(grid, shifted, tails=False),
            "tails_from_grid_alone": largest_difference(grid, best),
            "step_doubled": largest_difference(half, best),
            "box_wider_at_doubled_step": largest_difference(wider, half),
            "depth_34_at_doubled_step": largest_difference(deeper, half),
        },
    }


def stored(design: str, nugget_prior: str) -> tuple[Truth, dict[str, float]]:
    """Truth of one posterior as committed, and its evidence of convergence."""
    for entry in json.loads(PATH.read_text())["cases"]:
        if (entry["design"], entry["nugget_prior"]) == (design, nugget_prior):
            masses = [tail["mass"] for tail in entry["tails"]]
            numbers = ("step", "n_points", "n_zero", "log_evidence", "mean", "sd")
            return Truth(**{key: entry[key] for key in numbers}, masses=masses), entry[
                "convergence"
            ]
    raise ValueError(
        f"{PATH.name} has no posterior of {design!r} with nugget prior {nugget_prior!r}; it has "
        f"the designs {list(LOADERS)} with {list(NUGGET_PRIORS)}."
    )


def main() -> None:
    """Compute the four truths and write them."""
    cases = []
    for design in LOADERS:
        for nugget_prior in NUGGET_PRIORS:
            cases.append(case(design, nugget_prior))
            print(json.dumps(cases[-1], indent=1), flush=True)
    about = (
        "Posterior of u = (log_phi_1, log_phi_2, z) for the paper's published designs: squared "
        "exponential, basis (1, x1, x2), reference prior; X as published, y standardised with "
        "its mean and its standard deviation (1/n). log_evidence is the log of the integral of "
        "paims.gp.Posterior's density over u. Trapezoidal rule; convergence entries are the "
        "largest change of log evidence, of means in standard deviations, and relative of "
        "standard deviations and tail masses. Made by `python -m tests.gp_truth`."
    )
    PATH.write_text(json.dumps({"about": about, "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
