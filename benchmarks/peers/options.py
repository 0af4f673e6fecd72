"""What the command was asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.cells import Cell


@dataclass(frozen=True)
class Options:
    """Numbers of seeds (samplers) and designs (emulators), and what to leave out.

    Attributes
    ----------
    seeds, designs : int
    only : str
        Regular expression; cells whose text it is not found in are left out.
    with_botorch : bool
        Whether BoTorch's fully Bayesian emulators take part.
    octave : Path or None
        Folder with the published MATLAB code, which Octave is to run.
    """

    seeds: int = 10
    designs: int = 20
    only: str = ""
    with_botorch: bool = False
    octave: Path | None = None

    def wants(self, cell: Cell) -> bool:
        """Whether a cell is to be measured."""
        return re.search(self.only, str(cell)) is not None
