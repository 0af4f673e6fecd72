"""Resampling by weight."""

from __future__ import annotations

import numpy as np

from paims._arrays import Array


def systematic(weight: Array, n: int, rng: np.random.Generator) -> Array:
    """Systematic resampling: ``n`` indices, each point within one of its expected number."""
    edges = np.cumsum(weight)
    ticks = (rng.random() + np.arange(n)) / n * edges[-1]
    return np.asarray(np.minimum(np.searchsorted(edges, ticks, side="right"), len(weight) - 1))
