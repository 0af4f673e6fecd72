"""Emulators from files, and tables in the order that they want."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paims._arrays import FloatArray
from paims.cli._errors import CommandError
from paims.cli._tables import Table

if TYPE_CHECKING:
    from paims.emulator import Emulator
    from paims.report import Provenance


def open_emulator(source: str) -> tuple[Emulator, Provenance]:
    """Emulator of a file, and where it comes from."""
    from paims.emulator import EmulatorFileError, load_emulator  # noqa: PLC0415 - slow to import
    from paims.report import read_provenance  # noqa: PLC0415

    path = Path(source)
    if not path.exists():
        raise CommandError(f"There is no file {source}; paims fit makes an emulator.")
    if path.is_dir():
        raise CommandError(f"{source} is a folder; give the file of an emulator.")
    try:
        return load_emulator(path), read_provenance(path)
    except EmulatorFileError as error:
        raise CommandError(str(error)) from None


def inputs_of(emulator: Emulator, table: Table) -> FloatArray:
    """The emulator's inputs in a table, ``(n_rows, n_features)``; other columns are ignored."""
    from paims.report import feature_names  # noqa: PLC0415 - slow to import

    return table.values(feature_names(emulator))


def n_outside(emulator: Emulator, X: FloatArray) -> int:
    """How many rows lie outside the box of the runs."""
    scaled = emulator.inputs_.apply(X)
    return int(((scaled < 0.0) | (scaled > 1.0)).any(axis=1).sum())


def changed_constants(emulator: Emulator, X: FloatArray) -> list[str]:
    """Inputs that took one value only in the runs, and have others in these rows."""
    from paims.report import feature_names  # noqa: PLC0415 - slow to import

    names = feature_names(emulator)
    return [names[int(i)] for i in emulator.inputs_.changed_constants(X)]
