"""Where an emulator comes from: kept beside it in its file, shown in the report."""

from __future__ import annotations

import os

from paims.emulator import Emulator
from paims.emulator._description import Provenance
from paims.emulator._storage import load_provenance, save_emulator

__all__ = ["Provenance", "read_provenance", "save_with_provenance"]


def save_with_provenance(
    emulator: Emulator, path: str | os.PathLike[str], provenance: Provenance
) -> None:
    """Save an emulator with its provenance, whole or not at all.

    :func:`paims.load_emulator` reads the file as any other.
    """
    save_emulator(emulator, path, provenance)


def read_provenance(path: str | os.PathLike[str]) -> Provenance:
    """Provenance in an emulator's file; what is not there is left unknown."""
    return load_provenance(path)
