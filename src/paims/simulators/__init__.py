"""Simulators to build emulators of: those of the paper and those of the field's comparisons.

Each is a :class:`Simulator`: called with ``(n_runs, n_inputs)`` it gives ``(n_runs,)``.

>>> from paims import simulators
>>> simulators.get("borehole").n_inputs
8
>>> X = simulators.piston.design(60, random_state=0)
>>> simulators.piston(X).shape
(60,)
"""

from paims.simulators._functions import (
    SIMULATORS,
    borehole,
    branin,
    branin_printed,
    branin_standard,
    friedman,
    ishigami,
    otl_circuit,
    piston,
    robot_arm,
    two_d_model,
    two_d_model_cited,
    wave,
    wing_weight,
)
from paims.simulators._simulator import Input, Output, Simulator

__all__ = [
    "Input",
    "Output",
    "Simulator",
    "borehole",
    "branin",
    "branin_printed",
    "branin_standard",
    "friedman",
    "get",
    "ishigami",
    "names",
    "otl_circuit",
    "piston",
    "robot_arm",
    "two_d_model",
    "two_d_model_cited",
    "wave",
    "wing_weight",
]

_REGISTRY = {simulator.name: simulator for simulator in SIMULATORS}


def names() -> tuple[str, ...]:
    """Names of all simulators, the paper's first."""
    return tuple(_REGISTRY)


def get(name: str) -> Simulator:
    """Return the simulator of that name.

    Parameters
    ----------
    name : str
        One of :func:`names`; hyphens and capitals are forgiven.
    """
    try:
        return _REGISTRY[name.lower().replace("-", "_")]
    except (KeyError, AttributeError):
        raise ValueError(
            f"There is no simulator {name!r}; use one of {', '.join(names())}."
        ) from None
