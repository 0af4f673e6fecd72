"""The functions, the number of their runs, and the designs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.stats import qmc

from benchmarks.peers.designs import Floats, Runs, scaled

# Inputs of each. The three that take any number have that of their names here; of the outputs of
# the coffee cup, its temperature over time, the last one counts.
INPUTS = {
    "Ackley": 2, "Alemazkoor20D": 20, "Alemazkoor2D": 2, "Borehole": 8, "Cheng2D": 2,
    "CoffeeCup": 2, "CurrinSine": 1, "DampedCosine": 1, "DampedOscillator": 7, "Dette8D": 8,
    "DetteCurved": 3, "DetteExp": 3, "Flood": 8, "Forrester1D": 1, "Franke1": 2, "Franke2": 2,
    "Franke3": 2, "Franke4": 2, "Franke5": 2, "Franke6": 2, "Friedman10D": 10, "Friedman6D": 6,
    "GenzCornerPeak": 3, "GramacySine": 1, "HigdonSine": 1, "HolsclawSine": 1, "LimNonPoly": 2,
    "LimPoly": 2, "LinkletterDecCoeffs": 10, "LinkletterLinear": 10, "LinkletterSine": 10,
    "McLainS1": 2, "McLainS2": 2, "McLainS3": 2, "McLainS4": 2, "McLainS5": 2, "OTLCircuit": 6,
    "Oakley1D": 1, "Piston": 7, "RobotArm": 8, "Rosenbrock": 3, "SolarCell": 5, "Sulfur": 9,
    "UndampedOscillator": 6, "Webster2D": 2, "Welch20D": 20, "WingWeight": 10,
}  # fmt: skip
_ANY_NUMBER = ("Ackley", "GenzCornerPeak", "Rosenbrock")
N_TEST = 500
DESIGNS = 10
#: From few inputs to many: the quick ones first.
CASES = tuple(sorted(INPUTS, key=lambda name: (INPUTS[name], name)))
#: What is decided by these ...
CHOOSING = tuple(sorted(INPUTS))[::2]
#: ... is shown on these.
SHOWING = tuple(sorted(INPUTS))[1::2]


def n_runs(p: int) -> int:
    """Runs of a design of ``p`` inputs: few, so that something is left to be unsure of."""
    return {1: 8, 2: 20, 3: 30}.get(p, 10 * p if p <= 6 else 8 * p)


@cache
def function(name: str) -> Any:
    """The function; needs its package."""
    import uqtestfuns  # noqa: PLC0415 - not everyone who reads the tables has it

    return uqtestfuns.create(name, INPUTS[name] if name in _ANY_NUMBER else None)


def runs(name: str, design: int) -> Runs:
    """A random Latin hypercube in the distribution of the inputs, and 500 test runs."""
    made = function(name)

    def at(n: int, seed: int) -> tuple[Floats, Floats]:
        unit = qmc.LatinHypercube(INPUTS[name], rng=seed).random(n)
        marginals = made.prob_input.marginals
        X = np.column_stack([m.icdf(u) for m, u in zip(marginals, unit.T, strict=True)])
        y = np.asarray(made(X), dtype=float)
        return X, y[:, -1] if y.ndim == 2 else y

    return scaled(*at(n_runs(INPUTS[name]), design), *at(N_TEST, 10_000))
