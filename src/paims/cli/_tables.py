"""Tables in, files out.

Tables are CSV, TSV or Parquet; every error names file, row and column, and rows are counted as an
editor or a spreadsheet shows them: the header is row 1. Files are never overwritten unasked, and
written whole or not at all.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paims._arrays import FloatArray
from paims._names import listed
from paims._sealed import whole_file
from paims.cli._running import CommandError
from paims.cli._streams import read_input, write_output

STANDARD = "-"
_PARQUET = (".parquet", ".pq")
_TABBED = (".tsv", ".tab")
_EXACT = 2**53  # From here on two integers can be one double.


@dataclass(frozen=True)
class Table:
    """A table of texts, or of what Parquet holds.

    Attributes
    ----------
    name : str
        Of the file, for messages.
    columns : tuple of str
    rows : list of sequences
        One entry for each column.
    numbers : list of int
        Number of each row in the file.
    """

    name: str
    columns: tuple[str, ...]
    rows: list[Sequence[Any]]
    numbers: list[int]

    def __len__(self) -> int:
        return len(self.rows)

    def check_columns(self, wanted: Iterable[str]) -> None:
        """Raise unless all these columns are there."""
        missing = [name for name in wanted if name not in self.columns]
        if missing:
            raise CommandError(
                f"{self.name} has no column {listed([repr(name) for name in missing])}; its "
                f"columns are {listed(self.columns)}."
            )

    def values(
        self, names: Sequence[str], advice: str = "", *, missing: bool = False
    ) -> FloatArray:
        """Numbers of some columns, ``(n_rows, n_names)``; NaN for none, where that may be."""
        self.check_columns(names)
        where = [self.columns.index(name) for name in names]
        out = np.empty((len(self.rows), len(names)))
        for i, row in enumerate(self.rows):
            for j, column in enumerate(where):
                if missing and _is_missing(row[column]):
                    out[i, j] = np.nan
                    continue
                try:
                    out[i, j] = _number(row[column])
                except ValueError as error:
                    raise CommandError(
                        f"{self.name}, row {self.numbers[i]}, column '{names[j]}': {error}."
                        + (f" {advice}" if advice else "")
                    ) from None
        return out


def _is_missing(cell: Any) -> bool:
    """Whether a cell says that there is no number."""
    if isinstance(cell, str):
        return cell.strip().lower() in ("", "nan", "na", "null", "none")
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _number(cell: Any) -> float:
    """A finite number; the error completes '<file>, row, column: ...'."""
    text = cell.strip() if isinstance(cell, str) else cell
    if text is None or text == "":
        raise ValueError("the cell is empty")
    try:
        value = None if isinstance(text, bytes) else float(text)
    except (TypeError, ValueError):
        value = None
    except OverflowError:
        value = math.inf
    if value is None or (isinstance(text, str) and "_" in text):
        hint = ""
        if isinstance(text, str) and text.count(",") == 1:
            hint = "; write decimals with a point"
        raise ValueError(f"{text!r} is not a number{hint}")
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    if abs(value) >= _EXACT and _is_rounded(text, value):
        raise ValueError(f"{text!r} has more digits than a number here can keep; is it a label?")
    return value


def _is_rounded(text: Any, value: float) -> bool:
    """Whether a whole number is not what a double makes of it."""
    try:
        return int(text) != int(value)
    except ValueError:
        return False  # 1e300, or 12345678901234567890.5


def read_table(source: str) -> Table:
    """Read a table from a file or, for ``-``, from standard input."""
    if source == STANDARD:
        return _from_text("standard input", _decoded("standard input", read_input()), None)
    path = Path(source)
    if path.is_dir():
        raise CommandError(f"{source} is a folder; give a table of runs (CSV, TSV or Parquet).")
    if not path.exists():
        raise CommandError(f"There is no file {source}.")
    if path.is_char_device() or path.is_block_device():  # it may have no end
        raise CommandError(f"{source} is a device; give a file, or - for standard input.")
    suffix = path.suffix.lower()
    if suffix in _PARQUET:
        return _from_parquet(path)
    if suffix in (".xls", ".xlsx", ".ods"):
        raise CommandError(f"{path.name} is a spreadsheet; save it as CSV first.")
    if suffix in (".h5", ".hdf5"):
        raise CommandError(f"{path.name} is not a table: an HDF5 file (an emulator?).")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path.name} cannot be read: {error.strerror}.") from None
    return _from_text(path.name, _decoded(path.name, content), "\t" if suffix in _TABBED else None)


def _decoded(name: str, content: bytes) -> str:
    """Text of a table, without a byte-order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{name} is not text in UTF-8 (byte {error.start}); save it as CSV in UTF-8."
        ) from None


def _from_text(name: str, text: str, delimiter: str | None) -> Table:
    if not text.strip():
        raise CommandError(f"{name} is empty; a table has a header row and rows of numbers.")
    if delimiter is None:
        delimiter = _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    header: tuple[str, ...] | None = None
    rows: list[Sequence[Any]] = []
    numbers: list[int] = []
    before = 0
    try:
        for row in reader:
            number, before = before + 1, reader.line_num
            if not any(cell.strip() for cell in row):
                continue
            if header is None:
                header = _header(name, row)
                continue
            if len(row) != len(header):
                raise CommandError(
                    f"{name}, row {number}: {len(row)} values, but the header has "
                    f"{len(header)} columns."
                )
            rows.append(row)
            numbers.append(number)
    except csv.Error as error:
        raise CommandError(f"{name}, row {before + 1}: {error}.") from None
    if header is None or not rows:
        raise CommandError(f"{name} has a header but no rows.")
    return Table(name, header, rows, numbers)


def _delimiter(text: str) -> str:
    """What separates the columns of the header: comma, else semicolon or tab."""
    header = text.lstrip().splitlines()[0]
    if "," in header:
        return ","
    return max(";\t", key=header.count) if any(c in header for c in ";\t") else ","


def _header(name: str, row: Sequence[str]) -> tuple[str, ...]:
    header = tuple(cell.strip() for cell in row)
    for place, cell in enumerate(header, 1):
        if not cell:
            raise CommandError(f"{name}, row 1: column {place} has no name.")
        if header.count(cell) > 1:
            raise CommandError(f"{name}, row 1: two columns are called '{cell}'.")
    try:
        for cell in header:
            float(cell)
    except ValueError:
        return header
    raise CommandError(
        f"{name}, row 1: {', '.join(header[:4])} are numbers; the first row has to name the "
        "columns."
    )


def _from_parquet(path: Path) -> Table:
    import pandas as pd  # noqa: PLC0415 - an extra, and slow to import

    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise CommandError(
            f"{path.name}: reading Parquet needs pyarrow; pip install pyarrow, or save the table "
            "as CSV."
        ) from None
    except (OSError, ValueError) as error:
        raise CommandError(f"{path.name} cannot be read as Parquet: {error}.") from None
    if frame.empty:
        raise CommandError(f"{path.name} has no rows.")
    rows: list[Sequence[Any]] = [list(row) for row in frame.itertuples(index=False)]
    columns = tuple(str(name) for name in frame.columns)
    return Table(path.name, columns, rows, list(range(2, len(rows) + 2)))


def delimiter_of(target: str) -> str:
    """What separates the columns of a file to be written, by its name."""
    return "\t" if target.lower().endswith(_TABBED) else ","


def format_csv(header: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str = ",") -> str:
    """A table as text; floats with all the digits that they need, no more."""
    buffer = io.StringIO()
    plain = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    # A carriage return ends a line for every reader, but not for a writer of other ends.
    quoted = csv.writer(buffer, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in itertools.chain([header], rows):
        cells = [_cell(value) for value in row]
        (quoted if any("\r" in cell for cell in cells) else plain).writerow(cells)
    return buffer.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def check_target(target: str, force: bool, *sources: str | None) -> None:
    """Raise if a file could not be written, before the work that fills it.

    Parameters
    ----------
    target : str
    force : bool
        Whether a file that exists may be replaced.
    *sources : str or None
        What the command reads: these files are never replaced.
    """
    if target == STANDARD:
        return
    path = Path(target)
    path.absolute()  # Raises in a working directory that was deleted.
    if path.is_dir():
        raise CommandError(f"{target} is a folder; give the name of a file.")
    for source in sources:
        if is_same_file(path, source):
            raise CommandError(f"{target} is what is read from ({source}): name another file.")
    if path.exists() and not path.is_file():
        raise CommandError(f"{target} is not a regular file; give the name of one, or -.")
    if path.exists() and not force:
        raise CommandError(f"{target} exists already; --force replaces it.")
    if not path.parent.is_dir():
        raise CommandError(f"There is no folder {path.parent} to write {path.name} into.")
    if not os.access(path.parent, os.W_OK):
        raise CommandError(f"The folder {path.parent} cannot be written to.")


def is_same_file(path: Path, other: str | None) -> bool:
    """Whether two paths, by whatever names and links, are one file."""
    if other is None or other == STANDARD:
        return False
    try:
        return path.samefile(other)
    except OSError:
        return False


def make_folder(folder: Path, names: Iterable[str], force: bool) -> None:
    """Make the folder that files of these names go into; raise if it holds one of them."""
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file; give --out a folder.")
    there = [name for name in names if (folder / name).exists()]
    if there and not force:
        raise CommandError(
            f"{folder} already holds {', '.join(there)}; --force replaces them, --out takes "
            "another folder."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"The folder {folder} cannot be made: {error.strerror}.") from None


def write_text(target: str, text: str) -> None:
    """Write a file whole, or to standard output for ``-``."""
    if target == STANDARD:
        write_output(text)
        return
    try:
        with whole_file(Path(target)) as out:
            # Half a character, which Python's texts can have, is no reason to lose the rest.
            out.write(text.encode(errors="backslashreplace"))
    except OSError as error:
        raise CommandError(f"{target} cannot be written: {error.strerror}.") from None
