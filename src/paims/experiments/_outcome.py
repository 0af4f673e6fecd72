"""What an experiment gives back: a table beside the paper's, checks, and pictures as files.

Pictures are PNG and SVG, a film is a GIF.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Format of the results file; raised when a field changes its meaning.
FORMAT_VERSION = 1
_DPI = 200
_FILM_DPI = 110


@dataclass(frozen=True)
class Settings:
    """How the experiments are run.

    Attributes
    ----------
    schemes : tuple of str
        "paper", "default" or both; the last one is shown where there is room for one.
    seed : int
        The same seed gives the same results, to the bit.
    n_samples : int or None
        Points of each level; by default the paper's number for its scheme and the library's own
        for the default scheme.
    n_tests : int
        Sobol' points of the large test set.
    n_designs : int
        Latin hypercubes of 25 points, the size of the paper's test sets.
    """

    schemes: tuple[str, ...] = ("paper", "default")
    seed: int = 0
    n_samples: int | None = None
    n_tests: int = 10_000
    n_designs: int = 50

    def points(self, scheme: str, paper: int) -> int | None:
        """Points of each level for a scheme, where the paper has ``paper``."""
        if self.n_samples is not None:
            return self.n_samples
        return paper if scheme == "paper" else None


@dataclass(frozen=True)
class Row:
    """One quantity: the paper's figure, ours by scheme, and why they differ."""

    quantity: str
    paper: float | None
    ours: Mapping[str, float]
    difference: str = ""


@dataclass(frozen=True)
class Table:
    """Further figures that the paper has no number for."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[str | float]]


@dataclass(frozen=True)
class Check:
    """A finding of the paper, as something that can fail.

    Attributes
    ----------
    key : str
        Short name.
    finding : str
        What the paper says.
    passed : bool
    detail : str
        The numbers behind it.
    """

    key: str
    finding: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Outcome:
    """The result of one experiment.

    Attributes
    ----------
    name, title : str
    rows : list of Row
    tables : list of Table
    checks : list of Check
    pictures : list of Picture or Film
    notes : list of str
        What is to be known about the run, such as the sampler's warnings.
    """

    name: str
    title: str
    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    pictures: list[Picture | Film] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[Check]:
        """The checks that did not pass."""
        return [check for check in self.checks if not check.passed]

    def as_dict(self) -> dict[str, Any]:
        """Everything but the pictures themselves, for JSON."""
        return {
            "title": self.title,
            "rows": [asdict(row) for row in self.rows],
            "tables": [asdict(table) for table in self.tables],
            "checks": [asdict(check) for check in self.checks],
            "figures": [
                {"files": list(picture.files), "caption": picture.caption}
                for picture in self.pictures
            ],
            "notes": list(self.notes),
        }

    def as_markdown(self) -> str:
        """A section with the tables, the checks and the pictures."""
        schemes = list(dict.fromkeys(scheme for row in self.rows for scheme in row.ours))
        parts = [f"## {self.title}"]
        if self.rows:
            header = ["", "paper", *(f"ours, {scheme} scheme" for scheme in schemes), "difference"]
            body = [
                [row.quantity, _cell(row.paper), *(_cell(row.ours.get(s)) for s in schemes),
                 row.difference]
                for row in self.rows
            ]  # fmt: skip
            parts.append(_table(header, body))
        for table in self.tables:
            parts.append(f"### {table.title}")
            parts.append(_table(table.header, [[_cell(v) for v in row] for row in table.rows]))
        if self.checks:
            parts.append("### The paper's findings")
            body = [[_mark(c.passed), c.finding, c.detail] for c in self.checks]
            parts.append(_table(("", "finding", "what was found"), body))
        for picture in self.pictures:
            parts.append(f"![{picture.name}]({picture.files[0]})")
            parts.append(f"*{picture.caption}*")
        parts += [f"Note: {note}" for note in self.notes]
        return "\n\n".join(parts) + "\n"


def _mark(passed: bool) -> str:
    return "holds" if passed else "**fails**"


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or not math.isfinite(value):
        return str(value)
    return f"{value:.4g}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
                     for line in lines)  # fmt: skip


def canvas(width: float, height: float) -> Figure:
    """An empty figure that belongs to no window system."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise ImportError(
            "The experiments draw figures, which needs Matplotlib: install it with pip install "
            "'paims[app]'."
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with its caption.

    Attributes
    ----------
    name : str
        Folder and name of its files, without an ending.
    caption : str
    figure : Figure
    """

    name: str
    caption: str
    figure: Any

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that :meth:`save` writes."""
        return f"{self.name}.png", f"{self.name}.svg"

    def save(self, folder: Path) -> None:
        """Write the figure as PNG and as SVG."""
        from matplotlib import rc_context  # noqa: PLC0415 - an extra, and slow to import

        for file in self.files:
            kind = file.rsplit(".", 1)[1]
            # A fixed salt and no date: the same figure gives the same bytes.
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            with rc_context({"svg.hashsalt": self.name}), _whole(folder / file) as path:
                self.figure.savefig(
                    path,
                    format=kind,
                    dpi=_DPI,
                    metadata=metadata,
                    bbox_inches="tight",
                    pad_inches=0.08,
                )


@dataclass(frozen=True, eq=False)
class Film:
    """Frames on one figure, with a caption.

    Attributes
    ----------
    name, caption : str
    figure : Figure
    frames : sequence of callable
        Each draws its frame on the figure, which stays for a second.
    """

    name: str
    caption: str
    figure: Any
    frames: Sequence[Callable[[], None]]

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that :meth:`save` writes."""
        return (f"{self.name}.gif",)

    def save(self, folder: Path) -> None:
        """Write the frames as an animated GIF that starts again."""
        from matplotlib.animation import PillowWriter  # noqa: PLC0415 - an extra

        writer = PillowWriter(fps=1)
        with (
            _whole(folder / self.files[0]) as path,
            writer.saving(self.figure, str(path), _FILM_DPI),
        ):
            for frame in self.frames:
                frame()
                writer.grab_frame()


class _whole:
    """A path to write to that takes its final name only when the writing has succeeded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.part = path.with_name(f".{uuid.uuid4().hex}.part{path.suffix}")

    def __enter__(self) -> Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self.part

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if kind is None:
                os.replace(self.part, self.path)
        finally:
            with suppress(FileNotFoundError):
                self.part.unlink()
