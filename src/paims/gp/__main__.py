"""``python -m paims.gp``: the posterior of a Gaussian process for 18 runs of Branin's function."""

from __future__ import annotations

import numpy as np

from paims._arrays import FloatArray
from paims.gp import Posterior


def branin(X: FloatArray) -> FloatArray:
    """Branin's function on the unit square with the term ``5 x1`` (Forrester et al. 2008)."""
    x1, x2 = 15.0 * X[:, 0] - 5.0, 15.0 * X[:, 1]
    bowl = (x2 - 5.1 / (4.0 * np.pi**2) * x1**2 + 5.0 / np.pi * x1 - 6.0) ** 2
    values: FloatArray = (
        bowl + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x1) + 10.0 + 5.0 * X[:, 0]
    )
    return values


def latin_hypercube(n: int, p: int, rng: np.random.Generator) -> FloatArray:
    """``n`` points in the unit cube, one in each of the n slices of every axis."""
    slices = np.column_stack([rng.permutation(n) for _ in range(p)])
    points: FloatArray = (slices + rng.random((n, p))) / n
    return points


def main() -> None:
    """Print the log posterior and its parts at a few points."""
    X = latin_hypercube(18, 2, np.random.default_rng(2016))
    posterior = Posterior(X, branin(X))
    log_phi = np.array([[-2.0, -2.0], [-2.5, 0.5], [0.0, 0.0], [-1.0, 10.0], [7.0, 7.0]])
    u = posterior.from_physical(np.exp(log_phi), [1e-4, 1e-8, 1e-6, 1e-11, 0.5])
    _, nugget = posterior.to_physical(u)
    parts = posterior.parts(u)
    print("Posterior of the hyper-parameters, 18 runs of Branin's function:")
    print(f"{posterior!r}\n")
    print("".join(f"{title:>17}" for title in ["log phi", "nugget", "log posterior", *parts]))
    for row, log_density in enumerate(posterior(u)):
        ranges = ", ".join(f"{value:g}" for value in log_phi[row])
        cells = [nugget[row], log_density, *(part[row] for part in parts.values())]
        print(f"{f'({ranges})':>17}" + "".join(f"{cell:17.6g}" for cell in cells))


if __name__ == "__main__":
    main()
