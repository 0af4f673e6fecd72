"""Targets that the sampler was not tuned on: `python -m benchmarks.sampler hard [--only PART]`.

Every run is one line in `benchmarks/hard.json`, so that a sweep can be stopped and go on; runs
that are there are not made again. `--only report` prints the tables.
Choices were made on members 0 to 160 of the random family and on a few seeds of the named
targets; the table shows members 200 to 399, of which those that were wrong were looked at, and
400 to 459, which were not.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammaln
from tests import targets

import paims
from paims.sampling import SampleResult

RESULTS = Path(__file__).with_name("hard.json")
Floats = targets.Floats


@dataclass(frozen=True)
class Case:
    """A density with its truth.

    Attributes
    ----------
    name : str
    log_density : callable
    reference : Reference
    log_evidence : float
    masses, assign : optional
        Masses of the modes, and the mode of each point.
    """

    name: str
    log_density: Callable[[Floats], Floats]
    reference: paims.Uniform
    log_evidence: float
    masses: Floats | None = None
    assign: Callable[[Floats], Any] | None = None


def of(target: targets.Target) -> Case:
    """A test target as a case."""
    box = target.reference
    assert isinstance(box, targets.Box)
    return Case(
        target.name,
        target.log_density,
        paims.Uniform(box.lower, box.upper),
        target.log_evidence,
        target.mode_masses,
        target.assign_modes,
    )


def like_the_two(number: int) -> Case:
    """Two Gaussians in ten dimensions as in ``unequal_gaussians``, with other numbers."""
    if number == 0:
        return of(targets.unequal_gaussians())
    rng = np.random.default_rng(500 + number)
    small = rng.uniform(0.05, 0.3)
    width = rng.uniform(0.08, 0.12)
    sds = width * np.array([1.0, rng.uniform(1.1, 1.4)])
    centres = np.array([rng.uniform(-0.8, -0.3, 10), rng.uniform(0.2, 0.7, 10)])
    target = targets._gaussian_mixture(
        f"two_like_{number}",
        centres,
        np.array([small, 1.0 - small]),
        targets._round(10, *sds),
        targets._cube(-2.0, 2.0, 10),
    )
    return of(target)


def offset_spike(d: int, sd: float) -> Case:
    """Half a spike that stands one off the slab's centre in the first coordinate, half a slab."""
    centres = np.zeros((2, d))
    centres[0, 0] = 1.0
    target = targets._gaussian_mixture(
        f"spike_{sd:g}_offset_{d}d",
        centres,
        np.array([0.5, 0.5]),
        targets._round(d, sd, 1.0),
        targets._cube(-8.0, 8.0, d),
    )
    return of(target)


def funnel(d: int) -> Case:
    """Neal's funnel: v ~ N(0, 9), the others N(0, e^v); box of 12 and 40."""
    lower, upper = np.full(d, -40.0), np.full(d, 40.0)
    lower[0], upper[0] = -12.0, 12.0

    def log_density(x: Floats) -> Floats:
        v = x[:, 0]
        rest = -0.5 * np.sum(x[:, 1:] ** 2 * np.exp(-v)[:, None], axis=1)
        return stats.norm.logpdf(v, 0, 3) + rest - 0.5 * (d - 1) * (v + math.log(2 * math.pi))

    def inside(v: float) -> float:
        within = 2 * stats.norm.cdf(40.0 * math.exp(-v / 2)) - 1
        return float(stats.norm.pdf(v, 0, 3) * within ** (d - 1))

    truth = math.log(quad(inside, -12, 12, points=[0.0, 6.0], limit=200)[0])
    return Case(f"funnel_{d}d", log_density, paims.Uniform(lower, upper), truth)


def even_rosenbrock(d: int) -> Case:
    """Pairs of Rosenbrock's function, 100 (y - x^2)^2 + (1 - x)^2."""
    lower, upper = np.full(d, -5.0), np.full(d, 5.0)
    upper[1::2] = 25.0

    def log_density(x: Floats) -> Floats:
        a, b = x[:, 0::2], x[:, 1::2]
        return -np.sum(100 * (b - a * a) ** 2 + (1 - a) ** 2, axis=1)

    truth = d // 2 * math.log(math.pi / 10)
    return Case(f"rosenbrock_{d}d", log_density, paims.Uniform(lower, upper), truth)


def log_gamma(d: int) -> Case:
    """Four modes of log-gamma and normal factors (Buchner 2016), U[-30, 30]^d."""

    def one(z: Floats) -> Floats:
        return z - np.exp(z)

    def log_density(x: Floats) -> Floats:
        out = np.logaddexp(one(x[:, 0] - 10), one(x[:, 0] + 10)) - math.log(2)
        out += np.logaddexp(
            stats.norm.logpdf(x[:, 1], 10, 1), stats.norm.logpdf(x[:, 1], -10, 1)
        ) - math.log(2)
        for j in range(2, d):
            first_half = j + 1 <= (d + 2) // 2
            out += one(x[:, j] - 10) if first_half else stats.norm.logpdf(x[:, j], 10, 1)
        return out

    return Case(
        f"log_gamma_{d}d",
        log_density,
        paims.Uniform(np.full(d, -30.0), np.full(d, 30.0)),
        0.0,
        np.full(4, 0.25),
        lambda x: 2 * (x[:, 0] > 0) + (x[:, 1] > 0),
    )


def rastrigin(d: int) -> Case:
    """exp(-sum of 10 + x^2 - 10 cos(2 pi x)), U[-5.12, 5.12]^d."""

    def one(t: float) -> float:
        return math.exp(-(10 + t * t - 10 * math.cos(2 * math.pi * t)))

    total = quad(one, -5.12, 5.12, points=list(range(-5, 6)), limit=400)[0]
    return Case(
        f"rastrigin_{d}d",
        lambda x: -np.sum(10 + x * x - 10 * np.cos(2 * np.pi * x), axis=1),
        paims.Uniform(np.full(d, -5.12), np.full(d, 5.12)),
        d * math.log(total),
    )


def corner(d: int) -> Case:
    """exp(-sum(x) / 0.01) on the unit cube: piled into a corner."""
    return Case(
        f"corner_{d}d",
        lambda x: -np.sum(x, axis=1) / 0.01,
        paims.Uniform(np.zeros(d), np.ones(d)),
        d * math.log(0.01),
    )


def simplex_ridge(d: int) -> Case:
    """A ridge of width 0.01 along the simplex sum(x) = 1 in the unit cube."""
    return Case(
        f"simplex_{d}d",
        lambda x: -0.5 * ((x.sum(axis=1) - 1) / 0.01) ** 2,
        paims.Uniform(np.zeros(d), np.ones(d)),
        math.log(0.01 * math.sqrt(2 * math.pi)) - float(gammaln(d)),
    )


def twisted(d: int) -> Case:
    """Haario's twisted Gaussian, b = 0.1."""
    lower, upper = np.full(d, -10.0), np.full(d, 10.0)
    lower[:2], upper[:2] = [-50.0, -200.0], [50.0, 30.0]

    def log_density(x: Floats) -> Floats:
        y = x[:, 1] + 0.1 * x[:, 0] ** 2 - 10.0
        rest = np.sum(stats.norm.logpdf(x[:, 2:]), axis=1)
        return stats.norm.logpdf(x[:, 0], 0, 10) + stats.norm.logpdf(y) + rest

    return Case(f"twisted_{d}d", log_density, paims.Uniform(lower, upper), 0.0)


def named() -> list[Case]:
    """Every target that once failed, and a few that did not."""
    return [
        of(targets.spike_and_slab(5)),
        of(targets.spike_and_slab(10)),
        offset_spike(2, 0.01),
        funnel(5),
        funnel(10),
        even_rosenbrock(4),
        rastrigin(5),
        corner(5),
        corner(10),
        simplex_ridge(5),
        simplex_ridge(10),
        twisted(10),
        log_gamma(10),
        of(targets.gaussian_shells(5)),
        of(targets.eggbox()),
    ]


def calibrated() -> list[Case]:
    """Ten targets on which the error of the evidence is judged over many seeds."""
    return [
        of(targets.two_gaussians(2)),
        of(targets.two_gaussians(5)),
        of(targets.two_gaussians(10)),
        of(targets.ten_gaussians()),
        of(targets.himmelblau()),
        of(targets.gaussian_shells(2)),
        of(targets.rosenbrock()),
        of(targets.random_mixture(20)),
        simplex_ridge(5),
        twisted(10),
    ]


def plan(  # noqa: PLR0912 - a table of the parts
    part: str, seeds: int
) -> Iterator[tuple[Case, int, dict[str, Any]]]:
    """Cases, seeds and settings of a part of the benchmark."""
    if part in ("family", "fresh"):
        for number in range(200, 400) if part == "family" else range(400, 460):
            with suppress(ValueError):  # a few have no room for all their modes
                yield of(targets.random_mixture(number)), 0, {}
    elif part == "two":
        for number in range(11):
            for seed in range(seeds):
                yield like_the_two(number), seed, {}
    elif part == "named":
        for case in named():
            for seed in range(seeds):
                yield case, seed, {}
    elif part == "z":
        for seed in range(20 * seeds):
            for case in calibrated():
                yield case, seed, {}
    elif part == "spike":
        for seed in range(seeds):
            yield offset_spike(5, 0.1), seed, {"search": 12.0}
    elif part == "far":
        for case in (even_rosenbrock(10), log_gamma(20), log_gamma(30), funnel(20)):
            for seed in range(min(seeds, 3)):
                yield case, seed, {"max_evaluations": 1_500_000}
    else:
        raise ValueError(f"part must be one of {', '.join(PARTS)}; got {part!r}.")


PARTS = ("two", "spike", "named", "family", "fresh", "z", "far")


def measured(case: Case, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Run one case and compare it with its truth."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", paims.SamplingWarning)
        result: SampleResult = paims.sample(
            case.log_density, case.reference, random_state=seed, progress=False, **settings
        )
    row: dict[str, Any] = {
        "name": case.name,
        "seed": seed,
        "error": result.log_evidence - case.log_evidence,
        "reported": result.log_evidence_error,
        "n_evaluations": result.n_evaluations,
        "pareto_k": result.pareto_k,
        "warnings": len(result.warnings),
        "seconds": time.perf_counter() - start,
    }
    if case.masses is not None and case.assign is not None:
        mode = case.assign(result.draws)
        mass = np.bincount(mode, weights=result.weights, minlength=len(case.masses))
        row["mass_error"] = float(np.max(np.abs(mass - case.masses)))
    return row


def run(parts: tuple[str, ...], seeds: int, path: Path = RESULTS) -> None:
    """Make the runs that are not in the file yet."""
    rows = json.loads(path.read_text()) if path.exists() else []
    done = {(row["part"], row["name"], row["seed"]) for row in rows}
    for part in parts:
        for case, seed, settings in plan(part, seeds):
            if (part, case.name, seed) in done:
                continue
            rows.append({"part": part, **measured(case, seed, settings)})
            path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def report(path: Path = RESULTS) -> str:
    """Tables of the results, in Markdown."""
    rows = json.loads(path.read_text())
    lines = [
        "| part | target | runs | right | warned | silent | worst log Z error | worst mass error "
        "| evaluations, median and most |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for part in PARTS:
        if part == "z":
            continue
        own = [row for row in rows if row["part"] == part]
        groups = (
            ["all"] if part in ("family", "fresh") else list(dict.fromkeys(r["name"] for r in own))
        )
        for group in groups if own else []:
            lines.append(_line(part, group, [r for r in own if group in ("all", r["name"])]))
    lines += ["", "| target | seeds | mean of z | sd of z | sd of log Z | reported |",
              "|---|---|---|---|---|---|"]  # fmt: skip
    for name in dict.fromkeys(row["name"] for row in rows if row["part"] == "z"):
        own = [row for row in rows if row["part"] == "z" and row["name"] == name]
        z = np.array([row["error"] / row["reported"] for row in own])
        error = np.array([row["error"] for row in own])
        reported = np.mean([row["reported"] for row in own])
        lines.append(
            f"| {name} | {len(own)} | {z.mean():+.2f} | {z.std():.2f} | {error.std():.4f} | "
            f"{reported:.4f} |"
        )
    return "\n".join(lines)


def is_right(row: dict[str, Any]) -> bool:
    """Whether log evidence and masses are within 0.05 and 0.02."""
    return abs(row["error"]) < 0.05 and row.get("mass_error", 0.0) < 0.02


def is_silent(row: dict[str, Any]) -> bool:
    """Whether a run is wrong, beyond three reported errors, without a warning."""
    return not is_right(row) and not row["warnings"] and abs(row["error"]) > 3 * row["reported"]


def _line(part: str, group: str, rows: list[dict[str, Any]]) -> str:
    mass = max((row["mass_error"] for row in rows if "mass_error" in row), default=float("nan"))
    worst = max((row["error"] for row in rows), key=abs)
    evaluations = [row["n_evaluations"] for row in rows]
    return (
        f"| {part} | {group} | {len(rows)} | {sum(map(is_right, rows))} | "
        f"{sum(row['warnings'] > 0 for row in rows)} | {sum(map(is_silent, rows))} | "
        f"{worst:+.3f} | {mass:.3f} | {np.median(evaluations):,.0f}, {max(evaluations):,} |"
    )
