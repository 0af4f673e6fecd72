"""Pictures of the experiments and how they become files: PNG and SVG, and GIF for a film."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 200
_FILM_DPI = 110


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
