"""Small emulators whose mean can be integrated by brute force."""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from paims.gp import Posterior


def smooth_function(X: np.ndarray) -> np.ndarray:
    first = np.sin(3.0 * X[:, 0]) + 0.5 * X[:, -1]
    return np.asarray(first + X[:, 0] * X[:, 1])


def emulator(
    kernel: str = "squared_exponential", mean: str = "linear", n: int = 25, p: int = 2
) -> Posterior:
    X = qmc.LatinHypercube(p, rng=1).random(n)
    return Posterior(X, smooth_function(X), kernel, mean)


def draws(posterior: Posterior, m: int = 3, seed: int = 0) -> np.ndarray:
    """Draws of moderate length; phi is a squared length for the squared exponential only."""
    rng = np.random.default_rng(seed)
    log_length = rng.normal(-0.5, 0.4, (m, posterior.n_inputs))
    return np.column_stack([posterior.kernel.phi_power * log_length, rng.uniform(-14.0, -6.0, m)])


def gauss_grid(box: np.ndarray, n_panels: int = 40) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Nodes and weights of Gauss rules with four nodes in each of many panels, one per input."""
    node, weight = np.polynomial.legendre.leggauss(4)
    nodes, weights = [], []
    for low, high in box:
        edges = np.linspace(low, high, n_panels + 1)
        half = 0.5 * np.diff(edges)
        nodes.append((0.5 * (edges[1:] + edges[:-1])[:, None] + half[:, None] * node).ravel())
        weights.append(np.tile(0.5 * weight / n_panels, n_panels))
    return nodes, weights


def brute_force(values: np.ndarray, weights: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Parts of the variance of values on a 2-D grid: first-order and total; and the variance."""
    w1, w2 = weights
    mean = w1 @ values @ w2
    along_1, along_2 = values @ w2, w1 @ values
    variance = w1 @ (values - mean) ** 2 @ w2
    first = np.array([w1 @ (along_1 - mean) ** 2, w2 @ (along_2 - mean) ** 2])
    total = np.array(
        [w1 @ (values - along_2) ** 2 @ w2, w1 @ (values - along_1[:, None]) ** 2 @ w2]
    )
    return np.concatenate([first, total]), np.array(variance)
