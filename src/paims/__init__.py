"""Gaussian-process emulators that tell the truth about their own uncertainty.

Public names are loaded on first use, so that ``import paims`` is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paims._version import __version__ as __version__

if TYPE_CHECKING:
    from paims.emulator import Emulator, load_emulator
    from paims.sampling import (
        Normal,
        Product,
        SampleResult,
        SamplingWarning,
        SoftUniform,
        Uniform,
        anneal,
        resume,
        sample,
    )

_MODULES = (
    "datasets",
    "diagnostics",
    "experiments",
    "gp",
    "plots",
    "report",
    "sampling",
    "simulators",
)

__all__ = [
    "Emulator",
    "Normal",
    "Product",
    "SampleResult",
    "SamplingWarning",
    "SoftUniform",
    "Uniform",
    "anneal",
    "load_emulator",
    "resume",
    "sample",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        home = "emulator" if name in ("Emulator", "load_emulator") else "sampling"
        return getattr(import_module(f"paims.{home}"), name)
    if name in _MODULES:
        return import_module(f"paims.{name}")
    raise AttributeError(f"module 'paims' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
