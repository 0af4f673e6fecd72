"""What the parts of :mod:`benchmarks.outputs` have in common: runs, scores, results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import wheel

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
# Outputs of a field that are fitted apart, and whose CRPS is looked at: a random choice, as the
# columns of a field on a grid, which an even one takes, are not like others.
_LOOKED_AT = 25


def rows_of(path: Path) -> list[dict[str, Any]]:
    """All that was measured."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def split_of(name: str, split: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Training and test runs, outputs in units of their standard deviations."""
    data = wheel.load(name)
    order = np.random.default_rng(split).permutation(len(data.X))
    train, test = np.split(order, [round(0.8 * len(order))])
    scale = data.Y[train].std(axis=0)
    Y = data.Y / np.where(scale > 0.0, scale, 1.0)
    return data.X[train], Y[train], data.X[test], Y[test]


def looked_at(m: int) -> Indices:
    """Some of m outputs."""
    if m <= _LOOKED_AT:
        return np.arange(m)
    return np.sort(np.random.default_rng(0).choice(m, _LOOKED_AT, replace=False))


def coverage(emulator: Any, X: Floats, Y: Floats, weights: Floats) -> list[float]:
    """Shares of 95 % intervals that hold: of outputs, of a sum, of the sum's control."""
    joint = emulator.predict_distribution(X)
    lower, upper = joint.interval()
    combined, truth = joint.combine(weights), Y @ weights
    low, high = combined.interval()
    narrow = 1.96 * np.sqrt((joint.std**2) @ weights**2)
    return [
        float(np.mean((lower <= Y) & (upper >= Y))),
        float(np.mean((low <= truth) & (truth <= high))),
        float(np.mean(np.abs(truth - combined.mean) <= narrow)),
    ]


def crps(joint: Any, Y: Floats) -> float:
    """Mean CRPS, from the quantiles 1/40, 3/40, ..., 39/40 (twice the mean pinball loss)."""
    levels = np.arange(0.0125, 1.0, 0.025)
    loss = 0.0
    for q, at in zip(levels, joint.quantile(levels), strict=True):
        loss += float(np.mean(np.maximum(q * (Y - at), (q - 1.0) * (Y - at))))
    return 2.0 * loss / len(levels)


class Some:
    """Some of the outputs of a joint prediction."""

    def __init__(self, joint: Any, outputs: Indices) -> None:
        self.joint, self.outputs = joint, outputs

    def quantile(self, levels: Floats) -> Floats:
        """As that of a joint prediction."""
        return np.stack([self.joint[j].quantile(levels) for j in self.outputs], axis=-1)
