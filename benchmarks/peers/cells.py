"""Cells, the units of measurement, and the file in which their results are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One measurement: a method on a case, at a setting of the method (or a size), with a seed."""

    experiment: str
    method: str
    case: str
    setting: str
    seed: int

    def __str__(self) -> str:
        return f"{self.experiment}: {self.method} [{self.setting}] on {self.case}, {self.seed}"


def cell_of(record: Record) -> Cell:
    """The cell that a record is about."""
    return Cell(**{name: record[name] for name in Cell.__dataclass_fields__})


@dataclass
class Store:
    """Records of cells in a file of JSON lines: what was written survives an interruption.

    Parameters
    ----------
    path : Path
        Made if it does not exist. Of several records of a cell the last one counts.
    """

    path: Path

    def __iter__(self) -> Iterator[Record]:
        return iter(self._read().values())

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._read()

    def done(self, retry: bool = False) -> set[Cell]:
        """Cells with a record; with ``retry`` only those that succeeded."""
        found = self._read()
        return {cell for cell, record in found.items() if not retry or record["status"] == "ok"}

    def add(self, cell: Cell, **values: Any) -> None:
        """Append a record."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a", encoding="utf-8") as file:
            # A line that an interruption left unfinished must not swallow this one.
            file.write("\n" * torn + json.dumps({**asdict(cell), **values}) + "\n")

    def _read(self) -> dict[Cell, Record]:
        if not self.path.exists():
            return {}
        found: dict[Cell, Record] = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
                found[cell_of(record)] = record
            except (json.JSONDecodeError, KeyError, TypeError):
                continue
        return found
