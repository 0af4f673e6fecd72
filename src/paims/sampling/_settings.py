"""What fixes the draws of a run, as data that a checkpoint can hold and compare."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paims.sampling._references import Normal, Reference, SoftUniform, Uniform
from paims.sampling._scheme import Scheme
from paims.sampling._target import Target

_REFERENCES: dict[str, tuple[type, tuple[str, ...]]] = {
    "Uniform": (Uniform, ("lower", "upper")),
    "SoftUniform": (SoftUniform, ("lower", "upper", "width")),
    "Normal": (Normal, ("mean", "cov")),
}


@dataclass(frozen=True)
class Plan:
    """How a target is sampled.

    Attributes
    ----------
    n_samples : int
    goal : str
    scheme : Scheme
    names : tuple of str
    seed : int or None
        None leaves it to the checkpoint.
    """

    n_samples: int
    goal: str
    scheme: Scheme
    names: tuple[str, ...]
    seed: int | None


def as_settings(plan: Plan, target: Target) -> dict[str, Any]:
    """Everything that the draws depend on, as JSON."""
    scheme = asdict(plan.scheme)
    del scheme["n_jobs"]
    return {
        "random_state": plan.seed,
        "n_samples": plan.n_samples,
        "goal": plan.goal,
        "scheme": scheme,
        "names": list(plan.names),
        "vectorized": target.vectorized,
        "times_reference": target.times_reference,
        "reference": _encoded(target.reference),
        "density": getattr(target.log_density, "description", None),
    }


def plan_of(settings: dict[str, Any], n_jobs: int | None) -> Plan:
    """Read the plan of a checkpoint."""
    return Plan(
        settings["n_samples"],
        settings["goal"],
        Scheme(**settings["scheme"], n_jobs=n_jobs),
        tuple(settings["names"]),
        settings["random_state"],
    )


def stored_reference(settings: dict[str, Any]) -> Reference | None:
    """The reference of a checkpoint; None if it is a program of the user's."""
    stored = settings["reference"]
    if stored["class"] not in _REFERENCES or "arguments" not in stored:
        return None
    made: Reference = _REFERENCES[stored["class"]][0](**stored["arguments"])
    return made


def _encoded(reference: Reference) -> dict[str, Any]:
    name = type(reference).__name__
    known, arguments = _REFERENCES.get(name, (None, ()))
    if known is not type(reference):
        return {"class": name}
    return {
        "class": name,
        "arguments": {key: np.asarray(getattr(reference, key)).tolist() for key in arguments},
    }
