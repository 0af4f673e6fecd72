"""The sampler against known truths: `python -m benchmarks.sampler EXPERIMENT`.

Each experiment sweeps seeds and prints rms errors beside what is asked for, with the numbers of
evaluations. `truths` needs nothing; `gp` needs the published designs (see ``paims.datasets``).
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests import targets

import paims
from benchmarks import hard
from paims import datasets, simulators
from paims.gp import Posterior
from paims.sampling import Reference, SampleResult, Scheme, default_scheme

Run = Callable[[int], SampleResult]


def reference_of(target: targets.Target) -> Reference:
    """The reference of a test target as one of ours."""
    where = target.reference
    if isinstance(where, targets.Box):
        return paims.Uniform(where.lower, where.upper)
    from scipy import stats  # noqa: PLC0415

    return paims.Product(
        *(stats.lognorm(s, scale=np.exp(m)) for m, s in zip(where.mean, where.sd, strict=True))
    )


def gp_reference(p: int) -> Reference:
    """The reference of the GP posterior on inputs scaled to [0, 1]."""
    return paims.SoftUniform([-6.0] * p + [-24.0], [10.0] * p + [2.0], 1.0)


def truths(seeds: range, scheme: str | Scheme, only: str) -> None:
    """Targets with closed-form or quadrature truth."""
    cases = [
        (targets.two_gaussians(2), 2000),
        (targets.two_gaussians(5), 2000),
        (targets.two_gaussians(10), 2000),
        (targets.himmelblau(), 2000),
        (targets.eggbox(), 2000),
        (targets.gaussian_shells(2), 2000),
        (targets.gaussian_shells(5), 2000),
        (targets.rosenbrock(), 2000),
        (targets.ten_gaussians(), 2000),
        (targets.shear_building(), 2000),
        (targets.two_gaussians(20), 6000),
    ]
    print(
        f"{'target':24} {'N':>5} {'evaluations':>11} {'log Z bias':>10} {'rms':>7} "
        f"{'mass rms':>8} {'mean rms':>8} {'sd rms':>7} {'k max':>6} {'modes':>6} {'notes':>5} "
        f"{'s/run':>6}"
    )
    for target, n_samples in cases:
        if only not in target.name:
            continue
        rows, seconds = [], []
        for seed in seeds:
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", paims.SamplingWarning)
                result = paims.sample(
                    target.log_density,
                    reference_of(target),
                    n_samples,
                    scheme=scheme,
                    random_state=seed,
                )
            seconds.append(time.perf_counter() - start)
            mode = target.assign_modes(result.draws)
            mass = np.array(
                [result.weights[mode == k].sum() for k in range(len(target.mode_masses))]
            )
            rows.append(
                (
                    result.n_evaluations,
                    result.log_evidence - target.log_evidence,
                    np.sqrt(np.mean((mass - target.mode_masses) ** 2)),
                    np.sqrt(np.mean(((result.mean - target.mean) / target.sd) ** 2)),
                    np.sqrt(np.mean((result.sd / target.sd - 1) ** 2)),
                    result.pareto_k,
                    len(result.modes(min_mass=0.01)),
                    len(result.warnings),
                )
            )
        a = np.array(rows)
        rms = np.sqrt(np.mean(a**2, axis=0))
        print(
            f"{target.name:24} {n_samples:5d} {a[:, 0].max():11.0f} {a[:, 1].mean():10.4f} "
            f"{rms[1]:7.4f} {rms[2]:8.4f} {rms[3]:8.4f} {rms[4]:7.4f} {a[:, 5].max():6.2f} "
            f"{a[:, 6].min():.0f}-{a[:, 6].max():<4.0f} {a[:, 7].mean():5.1f} "
            f"{np.min(seconds):6.2f}",
            flush=True,
        )


def gp(seeds: range, scheme: str | Scheme, only: str) -> None:
    """The two published designs against quadrature, both nugget priors."""
    path = Path(__file__).parent.parent / "tests" / "data" / "gp-truth.json"
    loaders = {"branin": datasets.load_branin, "two_d_model": datasets.load_two_d_model}
    print(
        f"{'posterior':24} {'evaluations':>11} {'rms':>7} {'log Z bias':>10} {'sd':>7} "
        f"{'largest mean, sd, tail error':>30} {'notes':>6} {'s/run':>6}"
    )
    for case in json.loads(path.read_text())["cases"]:
        name = f"{case['design']} {case['nugget_prior']}"
        if only not in name:
            continue
        data = loaders[case["design"]]()
        y = (data.y - data.y.mean()) / data.y.std()
        posterior = Posterior(data.X, y, nugget_prior=case["nugget_prior"])
        reference = gp_reference(2)
        posterior(reference.sample(64, np.random.default_rng(0)))
        errors, logz, n_evaluations, seconds, notes = [], [], [], [], 0
        for seed in seeds:
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", paims.SamplingWarning)
                result = paims.sample(posterior, reference, 2000, scheme=scheme, random_state=seed)
            seconds.append(time.perf_counter() - start)
            mean, sd = np.array(case["mean"]), np.array(case["sd"])
            tail = [
                result.weights[result.draws[:, i] > event["above"]].sum() - event["mass"]
                for i, event in enumerate(case["tails"])
            ]
            errors.append(np.concatenate([(result.mean - mean) / sd, result.sd / sd - 1, tail]))
            logz.append(result.log_evidence - case["log_evidence"])
            n_evaluations.append(result.n_evaluations)
            notes += len(result.warnings)
        e = np.array(errors)
        worst = np.sqrt(np.mean(e**2, axis=0)).reshape(3, 3).max(axis=1)
        print(
            f"{name:24} {max(n_evaluations):11d} {np.sqrt(np.mean(e**2)):7.4f} "
            f"{np.mean(logz):10.4f} {np.std(logz, ddof=1):7.4f} "
            f"{np.array2string(worst, precision=4):>30} {notes:6d} {min(seconds):6.2f}",
            flush=True,
        )


def stability(seeds: range, scheme: str | Scheme, only: str) -> None:
    """Runs of the GP posteriors of standard functions must agree with each other."""
    print(
        f"{'posterior':20} {'evaluations':>11} {'log Z':>9} {'range':>7} {'mean range/sd':>13} "
        f"{'effective size':>15} {'k max':>6} {'notes':>6} {'s/run':>6} {'density':>8}"
    )
    for name, n in (("friedman", 50), ("piston", 60), ("borehole", 60)):
        if only not in name:
            continue
        posterior = standard_posterior(name, n)
        reference = gp_reference(posterior.n_params - 1)
        posterior(reference.sample(64, np.random.default_rng(0)))
        results, seconds, inside = [], [], []
        for seed in seeds:
            clock = Clock(posterior)
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", paims.SamplingWarning)
                results.append(paims.sample(clock, reference, scheme=scheme, random_state=seed))
            seconds.append(time.perf_counter() - start)
            inside.append(clock.seconds)
        logz = np.array([r.log_evidence for r in results])
        means = np.array([r.mean for r in results])
        sd = np.mean([r.sd for r in results], axis=0)
        size = [r.effective_size for r in results]
        print(
            f"{name:20} {max(r.n_evaluations for r in results):11d} {logz.mean():9.3f} "
            f"{np.ptp(logz):7.3f} {np.max(np.ptp(means, axis=0) / sd):13.3f} "
            f"{min(size):7.0f}-{max(size):<7.0f} {max(r.pareto_k for r in results):6.2f} "
            f"{sum(len(r.warnings) for r in results):6d} {min(seconds):6.2f} {min(inside):8.2f}",
            flush=True,
        )


class Clock:
    """A density that knows how long it took."""

    def __init__(self, density: Callable[[Any], Any]) -> None:
        self._density, self.seconds = density, 0.0

    def __call__(self, x: Any) -> Any:
        """Evaluate and add up the time."""
        start = time.perf_counter()
        value = self._density(x)
        self.seconds += time.perf_counter() - start
        return value


def standard_posterior(name: str, n: int) -> Posterior:
    """The GP posterior of a simulator on a Latin hypercube, scaled as the emulator does."""
    simulator = simulators.get(name)
    X = simulator.design(n, random_state=0)
    y = simulator(X)
    return Posterior((X - X.min(0)) / (X.max(0) - X.min(0)), (y - y.mean()) / y.std())


def moves(seeds: range, scheme: str | Scheme, only: str) -> None:
    """Moving three times as much must not move the answer (d = 10)."""
    del scheme, only
    target = targets.two_gaussians(10)
    base = default_scheme()
    print(
        f"{'sweeps':10} {'log Z bias':>10} {'rms':>7} {'path bias':>9} {'mass rms':>8} {'sd':>7}"
    )
    for label, scheme_ in (
        ("once", replace(base, max_sweeps=1, max_correlation=None)),
        ("3 times", replace(base, max_sweeps=3, max_correlation=None)),
    ):
        rows = []
        for seed in seeds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", paims.SamplingWarning)
                result = paims.sample(
                    target.log_density, reference_of(target), 2000, scheme=scheme_,
                    random_state=seed,
                )  # fmt: skip
            mode = target.assign_modes(result.draws)
            mass = result.weights[mode == 0].sum() - target.mode_masses[0]
            path = np.logaddexp.reduce(result.island_log_evidence) - np.log(2)
            rows.append(
                (
                    result.log_evidence - target.log_evidence,
                    path - target.log_evidence,
                    mass,
                    np.mean(result.sd / target.sd - 1),
                )
            )
        a = np.array(rows)
        print(
            f"{label:10} {a[:, 0].mean():10.4f} {np.sqrt(np.mean(a[:, 0] ** 2)):7.4f} "
            f"{a[:, 1].mean():9.3f} {np.sqrt(np.mean(a[:, 2] ** 2)):8.4f} {a[:, 3].mean():7.4f}",
            flush=True,
        )


def cost(seeds: range, scheme: str | Scheme, only: str) -> None:
    """The sampler's own time against that of the density, and how it grows with N."""
    del only
    posterior = standard_posterior("friedman", 50)
    reference = gp_reference(5)
    posterior(reference.sample(64, np.random.default_rng(0)))
    print("GP posterior with n = 50, d = 6, N = 2000 (best of the seeds)")
    rows = []
    for seed in seeds:
        clock = Clock(posterior)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", paims.SamplingWarning)
            result = paims.sample(clock, reference, 2000, scheme=scheme, random_state=seed)
        rows.append((time.perf_counter() - start - clock.seconds, clock.seconds))
        print(
            f"  sampler {rows[-1][0]:.2f} s, density {rows[-1][1]:.2f} s, ratio "
            f"{rows[-1][0] / rows[-1][1]:.2f}, {result.n_evaluations} evaluations"
        )
    print(f"  least ratio {min(a / b for a, b in rows):.2f} (asked for: below 0.5)")
    print("three dimensions, Gaussian mixture")
    target = targets.two_gaussians(3)
    for n_samples in (500, 2000, 8000, 20000):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", paims.SamplingWarning)
            result = paims.sample(
                target.log_density, reference_of(target), n_samples, scheme=scheme, random_state=0
            )
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"  N = {n_samples:6d}: {seconds:6.2f} s, {result.n_evaluations} evaluations, log Z "
            f"error {result.log_evidence - target.log_evidence:.4f}, peak memory of the process "
            f"{peak:.2f} GB"
        )


def hard_targets(seeds: range, scheme: str | Scheme, only: str) -> None:
    """Targets that the sampler was not tuned on; ``--only`` names a part, or ``report``."""
    del scheme
    if only != "report":
        hard.run((only,) if only else hard.PARTS, len(seeds))
    print(hard.report())


EXPERIMENTS = {
    "hard": hard_targets,
    "truths": truths,
    "gp": gp,
    "stability": stability,
    "moves": moves,
    "cost": cost,
}


def main() -> None:
    """Run one experiment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--scheme", choices=("default", "paper"), default="default")
    parser.add_argument("--only", default="", help="part of a target's name")
    options = parser.parse_args()
    EXPERIMENTS[options.experiment](range(options.seeds), options.scheme, options.only)


if __name__ == "__main__":
    main()
