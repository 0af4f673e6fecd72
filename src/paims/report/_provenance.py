"""Where an emulator comes from: kept beside it in its file, shown in the report."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version

import paims
from paims.emulator import Emulator
from paims.emulator._storage import load_provenance, save_emulator

_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "h5py")


def _versions() -> dict[str, str]:
    found = {"paims": paims.__version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@dataclass(frozen=True)
class Provenance:
    """What the emulator's own file does not say.

    Attributes
    ----------
    output : str
        Name of the output.
    source : str
        Name of the file (without its folder) that the runs were read from; empty if unknown.
    seconds : float or None
        How long the fit took.
    versions : dict of str
        Of the packages that made the emulator.
    warnings : tuple of str
        What was said during the fit.
    """

    output: str = "y"
    source: str = ""
    seconds: float | None = None
    versions: dict[str, str] = field(default_factory=_versions)
    warnings: tuple[str, ...] = ()


def save_with_provenance(
    emulator: Emulator, path: str | os.PathLike[str], provenance: Provenance
) -> None:
    """Save an emulator with its provenance, whole or not at all.

    :func:`paims.load_emulator` reads the file as any other.
    """
    save_emulator(emulator, path, asdict(provenance))


def read_provenance(path: str | os.PathLike[str]) -> Provenance:
    """Provenance in an emulator's file; what is not there is left unknown."""
    stored = load_provenance(path)
    known = {item.name for item in fields(Provenance)}
    values = {key: value for key, value in stored.items() if key in known}
    values.setdefault("versions", {"paims": stored["version"]})
    values["warnings"] = tuple(values.get("warnings", ()))
    return Provenance(**values)
