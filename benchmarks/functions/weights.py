"""How to weigh kernels: all ways, from one fit of each member to the same runs.

Members are kernels with the linear trend; those of one scaled distance, and a constant trend, are
there to see whether they would earn a place. Evidences of different trends do not compare (the
prior of the coefficients has no total), so trends are only stacked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import t as student

import paims
from benchmarks.functions.cases import CASES, DESIGNS, INPUTS, runs
from benchmarks.peers.cells import Cell
from benchmarks.peers.clock import Clock
from benchmarks.peers.designs import Floats
from benchmarks.peers.scoring import Mixture, score
from paims.emulator._evidence import comparable_evidence

LIMIT = 900.0
SMOOTH = ("squared_exponential", "matern72", "matern52")
RADIAL = ("radial_matern72", "radial_matern52")
CONSTANT = tuple(f"{name}, constant" for name in SMOOTH)
KERNELS, WIDER = "kernels", "wider"
#: The way of :class:`paims.Emulator`.
DEFAULT = "evidence and stacked"
SETTINGS = {KERNELS: SMOOTH, WIDER: SMOOTH + RADIAL + CONSTANT}


def cells() -> Iterator[Cell]:
    """Every function with the kernels; the wider set where a design is small."""
    for setting in SETTINGS:
        for case in CASES:
            if setting == KERNELS or INPUTS[case] <= 8:
                for design in range(DESIGNS):
                    yield Cell(__name__, "paims", case, setting, design)


def measure(cell: Cell) -> dict[str, Any]:
    """Fit each member once, and score all mixtures of them."""
    data = runs(cell.case, cell.seed)
    names = SETTINGS[cell.setting]
    members = {name: Member(name, data.X, data.y, cell.seed, data.X_test) for name in names}
    ways: dict[str, dict[str, float]] = {name: {name: 1.0} for name in names}
    ways["chosen"] = _best(_by_evidence(members, SMOOTH))
    ways["reference evidence"] = _by_evidence(members, SMOOTH, "reference")
    ways["evidence"] = _by_evidence(members, SMOOTH)
    ways["stacked"] = _stacked(members, SMOOTH)
    ways["equal"] = dict.fromkeys(SMOOTH, 1.0 / len(SMOOTH))
    ways[DEFAULT] = _halved(ways["evidence"], ways["stacked"])
    if cell.setting == WIDER:
        separable_and_radial = SMOOTH + RADIAL
        ways["evidence, with radial"] = _by_evidence(members, separable_and_radial)
        ways["stacked, with radial"] = _stacked(members, separable_and_radial)
        ways["evidence and stacked, with radial"] = _halved(
            ways["evidence, with radial"], ways["stacked, with radial"]
        )
        ways["evidence, radial and squared exponential"] = _by_evidence(
            members, (SMOOTH[0], *RADIAL)
        )
        ways["stacked, with constant"] = _stacked(members, SMOOTH + CONSTANT)
        ways["evidence, constant"] = _by_evidence(members, CONSTANT)
    return {
        "ways": {
            way: score(_mixed(members, weights), data.y_test, data.unit)
            for way, weights in ways.items()
        },
        "weights": {
            way: {k: round(w, 4) for k, w in found.items()} for way, found in ways.items()
        },
        "evidence": {name: member.comparable for name, member in members.items()},
        "evidence_error": {name: member.error for name, member in members.items()},
        "reference_evidence": {name: member.reference for name, member in members.items()},
        "cpu_seconds": {name: member.seconds for name, member in members.items()},
    }


class Member:
    """A fit under one kernel and trend: its evidences, predictions, and runs left out."""

    def __init__(self, name: str, X: Floats, y: Floats, seed: int, X_test: Floats) -> None:
        kernel, _, trend = name.partition(", ")
        n_samples = max(500, max(2000, 300 * (X.shape[1] + 1)) // 3)
        emulator = paims.Emulator(
            kernel, trend or "linear", n_samples=n_samples, random_state=seed, n_jobs=1
        )
        with Clock() as clock:
            emulator.fit(X, y)
        self.seconds = clock.cpu_seconds
        posterior, ensemble = emulator.posterior_, emulator.ensemble_
        evidence = comparable_evidence(posterior, emulator.output_, emulator.result_)
        self.comparable, self.error = evidence.log_evidence, evidence.error
        self.reference = emulator.log_evidence_
        self.prediction = emulator.predict_distribution(X_test)
        left = posterior.leave_one_out(ensemble.draws)
        each = student(left.dof).logpdf((posterior.y - left.mean) / np.sqrt(left.scale2))
        each -= 0.5 * np.log(left.scale2)
        self.left_out = logsumexp(each, b=ensemble.weights[:, None], axis=0)


def _by_evidence(
    members: dict[str, Member], names: tuple[str, ...], which: str = "comparable"
) -> dict[str, float]:
    log_evidence = np.array([getattr(members[name], which) for name in names])
    weights = np.exp(log_evidence - logsumexp(log_evidence))
    weights[weights < 0.01] = 0.0
    return dict(zip(names, (weights / weights.sum()).tolist(), strict=True))


def _best(weights: dict[str, float]) -> dict[str, float]:
    return {max(weights, key=lambda name: weights[name]): 1.0}


def _stacked(members: dict[str, Member], names: tuple[str, ...]) -> dict[str, float]:
    """Weights with the highest mean log density of the runs, each left out (Yao et al. 2018)."""
    log_p = np.array([members[name].left_out for name in names])
    log_p = log_p[:, np.isfinite(log_p).all(axis=0)]
    weights = np.full(len(names), 1.0 / len(names))
    for _ in range(2000):  # expectation and maximisation: the problem is concave
        joint = weights[:, None] * np.exp(log_p - log_p.max(axis=0))
        weights = (joint / joint.sum(axis=0)).mean(axis=1)
    return dict(zip(names, weights.tolist(), strict=True))


def _halved(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: 0.5 * (one[name] + other[name]) for name in one}


def _mixed(members: dict[str, Member], weights: dict[str, float]) -> Mixture:
    kept = {name: weight for name, weight in weights.items() if weight > 1e-6}
    components = [members[name].prediction.components for name in kept]
    dofs = {part.dof for part in components}
    inner = [w * members[name].prediction.weights for name, w in kept.items()]
    total = np.concatenate(inner)
    # Constant and linear trends leave different degrees of freedom; the fewer are taken for all.
    return Mixture(
        np.vstack([part.means for part in components]),
        np.vstack([part.scales for part in components]),
        total / total.sum(),
        min(dofs),
    )
