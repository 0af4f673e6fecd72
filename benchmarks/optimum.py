"""Does the annealing find the optimum and every mode? `python -m benchmarks.optimum`.

GP posteriors of random Latin hypercubes (n = 18, nugget 1e-12) of Branin and of the 2D model. The
best log density of a run with goal="optimum" is compared with the best of 200 local optimisations
from random starts, and the modes that it lists with those of a fine grid of the posterior.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from numpy.typing import NDArray

import paims
from paims import simulators
from paims.gp import Posterior
from paims.sampling._modes import _climb

Floats = NDArray[np.float64]
LOWER, UPPER = -7.0, 11.0


def posterior_of(name: str, seed: int) -> Posterior:
    """The posterior of a design of 18 runs, scaled as the emulator does."""
    simulator = simulators.get(name)
    X = simulator.design(18, random_state=seed)
    y = simulator(X)
    scaled = (X - X.min(0)) / (X.max(0) - X.min(0))
    return Posterior(scaled, (y - y.mean()) / y.std(), nugget=1e-12)


def best_of_local_searches(posterior: Posterior, n_starts: int, seed: int) -> float:
    """The highest log density that compass searches find, run side by side from random starts."""
    u = np.random.default_rng(seed).uniform(LOWER, UPPER, (n_starts, 2))
    value, step = posterior(u), np.full(n_starts, 1.0)
    compass = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]])
    while np.any(step > 1e-5):
        active = np.flatnonzero(step > 1e-5)
        around = u[active, None] + step[active, None, None] * compass
        found = posterior(around.reshape(-1, 2)).reshape(len(active), -1)
        best = np.argmax(found, axis=1)
        top = found[np.arange(len(active)), best]
        better = top > value[active]
        u[active[better]] = around[np.flatnonzero(better), best[better]]
        value[active[better]] = top[better]
        step[active[~better]] /= 2
    return float(value.max())


def grid_modes(posterior: Posterior, step: float = 0.06) -> tuple[Floats, Floats, Floats]:
    """Grid axis, basin of each grid point, and the mass of each basin.

    Basins are joined where the lower peak stands out by less than 0.1: round-off makes the surface
    rough at this nugget.
    """
    axis = np.arange(LOWER - 2, UPPER + 4, step)
    u = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    log_p = posterior(u)
    log_p = np.where(np.isfinite(log_p), log_p, -1e10)
    n = len(axis)
    index = np.arange(n * n).reshape(n, n)
    padded = np.pad(index, 1, mode="edge")
    around = [
        padded[1 + i : n + 1 + i, 1 + j : n + 1 + j].ravel()
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    ]
    root = _climb(np.stack(around, axis=1), log_p, 0.1)
    peaks, basin = np.unique(root, return_inverse=True)
    weight = np.exp(log_p - log_p.max())
    mass = np.bincount(basin.ravel(), weights=weight / weight.sum(), minlength=len(peaks))
    return axis, basin.reshape(n, n), mass


def main() -> None:
    """Run the comparison and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=20)
    parser.add_argument("--starts", type=int, default=200)
    options = parser.parse_args()
    reference = paims.SoftUniform([-6.0, -6.0], [10.0, 10.0], 1.0)
    shortfalls, missed, n_modes = [], 0, 0
    for name in ("branin", "two_d_model"):
        for seed in range(options.designs):
            posterior = posterior_of(name, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", paims.SamplingWarning)
                result = paims.sample(
                    posterior, reference, 2000, goal="optimum", random_state=seed
                )
            local = best_of_local_searches(posterior, options.starts, seed)
            shortfalls.append(local - result.best[1])
            axis, basin, mass = grid_modes(posterior)
            listed = set()
            for mode in result.modes():
                i, j = (int(np.argmin(np.abs(axis - x))) for x in mode.location)
                listed.add(int(basin[i, j]))
            wanted = np.flatnonzero(mass >= 0.02)
            lost = [round(float(mass[k]), 3) for k in wanted if int(k) not in listed]
            n_modes += len(wanted)
            missed += len(lost)
            print(
                f"{name:12} {seed:3d}: best {result.best[1]:9.4f}, local {local:9.4f}, short by "
                f"{shortfalls[-1]:8.4f}; levels {len(result.levels):2d}, evaluations "
                f"{result.n_evaluations:6d}; modes of >= 2 %: {len(wanted)}, missed {lost}",
                flush=True,
            )
    print(
        f"largest shortfall {max(shortfalls):.4f} (asked for: 0.02 at most); "
        f"{missed} of {n_modes} modes missed"
    )


if __name__ == "__main__":
    main()
