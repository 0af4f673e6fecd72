"""From thousands of weighted draws to a mixture of few components.

Equal draws are merged. The others are put in an order in which neighbours are alike, by halving
the cloud again and again across its widest direction (a k-d tree with equal masses), and
resampled systematically along it: each of the n components stands for a compact cell that holds
1/n of the mass. This is unbiased, and less noisy than independent resampling. The two halves come
in random order: always the lower first, and the even steps of systematic resampling would fall on
the same side of all cells.
"""

from __future__ import annotations

import numpy as np

from paims._arrays import FloatArray, IndexArray
from paims.sampling._path import systematic


def merge_equal(draws: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct draws in lexicographic order, with the sums of their weights."""
    distinct, inverse = np.unique(draws, axis=0, return_inverse=True)
    return distinct, np.bincount(inverse.ravel(), weights).astype(np.float64)


def thin(
    draws: FloatArray, weights: FloatArray, n_components: int, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray]:
    """Choose at most ``n_components`` of the draws, with weights, to stand for all.

    Parameters
    ----------
    draws : (m, n_params) ndarray
        Distinct.
    weights : (m,) ndarray
        Sum to 1.
    n_components : int
    rng : Generator

    Returns
    -------
    index : (c,) ndarray
        Of the chosen draws, ascending.
    weights : (c,) ndarray
        Multiples of 1/n_components; the weights themselves if all draws are kept.
    """
    if len(draws) <= n_components:
        return np.arange(len(draws)), weights
    order = cell_order(draws, weights, n_components, rng)
    chosen = systematic(weights[order], n_components, rng)
    index, count = np.unique(order[chosen], return_counts=True)
    return index, count / n_components


def cell_order(
    draws: FloatArray, weights: FloatArray, n_cells: int, rng: np.random.Generator
) -> IndexArray:
    """Order in which any stretch that holds 1/n_cells of the mass is a compact cell."""
    mean = weights @ draws
    sd = np.sqrt(weights @ (draws - mean) ** 2)
    scaled = (draws - mean) / np.where(sd > 0.0, sd, 1.0)
    smallest = weights.sum() / n_cells
    parts: list[IndexArray] = []
    stack: list[IndexArray] = [np.arange(len(draws))]
    while stack:
        index = stack.pop()
        w = weights[index]
        mass = float(w.sum())
        if len(index) < 2 or mass <= smallest:
            parts.append(index)
            continue
        points = scaled[index]
        centre = (w @ points) / mass
        widest = int(np.argmax(w @ (points - centre) ** 2))
        along = np.argsort(points[:, widest], kind="stable")
        if rng.random() < 0.5:
            along = along[::-1]
        index = index[along]
        half = int(np.searchsorted(np.cumsum(w[along]), 0.5 * mass)) + 1
        half = min(max(half, 1), len(index) - 1)
        stack += [index[half:], index[:half]]
    return np.concatenate(parts)
