"""What the figures were measured with: processor, system and versions; no names, no paths."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = (
    "paims", "numpy", "scipy", "numba", "scikit-learn", "emcee", "dynesty", "nautilus-sampler",
    "pymc", "blackjax", "jax", "pylibkriging", "smt", "openturns", "mogp-emulator", "gpmp",
    "botorch", "torch",
)  # fmt: skip


def processor() -> str:
    """Name of the processor as the system knows it."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def memory() -> str:
    """Memory of the machine; empty where the system does not say."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return ""
    return f"{size / 2**30:.0f} GB"


def describe() -> dict[str, object]:
    """Machine and versions."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory": memory(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions,
    }
