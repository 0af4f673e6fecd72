"""Outputs and splits of the data sets."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from benchmarks.peers.designs import Floats, Runs, scaled
from benchmarks.wheel import SHAPES, RealRuns, load

# From few runs to many.
SETS = tuple(sorted(SHAPES, key=lambda name: SHAPES[name][0]))
SPLITS = 5
TRAINING = 0.8
_SMALL = 200
_OUTPUTS = 4


def n_outputs(name: str) -> int:
    """Outputs that count: every one of a small set, the first four of the others."""
    runs, _, outputs = SHAPES[name]
    # The 2500 outputs of the reaction and diffusion are the pixels of one picture.
    return outputs if runs < _SMALL and outputs < _SMALL else min(outputs, _OUTPUTS)


def held_out(name: str, output: int, split: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Inputs and one output of the training runs, and of those to be predicted."""
    data = _loaded(name)
    order = np.random.default_rng(split).permutation(len(data.X))
    train, test = np.split(order, [round(TRAINING * len(order))])
    y = data.Y[:, output]
    return data.X[train], y[train], data.X[test], y[test]


def runs(name: str, output: int, split: int) -> Runs:
    """The same, scaled as for every emulator."""
    return scaled(*held_out(name, output, split))


@lru_cache(maxsize=1)
def _loaded(name: str) -> RealRuns:
    return load(name)
