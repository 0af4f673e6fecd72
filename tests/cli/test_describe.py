"""What commands say of modes and of rows."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.console import Console

from paims.cli._describe import _print_modes
from paims.cli._emulators import extrapolation


def printed(n_modes: int, n_inputs: int) -> str:
    """The table for modes of equal mass, on 80 columns."""
    names = tuple(f"input_{i}" for i in range(n_inputs))
    modes = [
        {
            "mass": 1.0 / n_modes,
            "length_scales": {name: 1000.0 * (m + 1) + i for i, name in enumerate(names)},
            "nugget": 1.234e-10,
            "says": f"story {m} [bold]",
        }
        for m in range(n_modes)
    ]
    console = Console(width=80, file=StringIO())
    _print_modes(modes, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_many_inputs_and_modes_fit_on_a_terminal() -> None:
    text = printed(n_modes=5, n_inputs=12)
    assert max(map(len, text.splitlines())) <= 80
    (row,) = [line for line in text.splitlines() if "length input_11" in line]
    assert row.split()[2:] == ["1011", "2011", "3011", "4011", "5011"]
    assert text.count("1.23e-10") == 5
    assert "…" not in text
    assert "E: story 4 [bold]" in text
    assert "more modes" not in text


def test_modes_beyond_the_fifth_are_summed() -> None:
    text = printed(n_modes=8, n_inputs=1)
    assert "3 more modes have probability 0.375 together." in text
    assert "story 5" not in text


def test_rows_outside_the_box_are_counted_on_every_side() -> None:
    scaled = np.array([[0.0, 1.0], [0.5, 0.5], [1.001, 0.5], [0.5, -0.001], [3.0, -2.0]])
    inputs = SimpleNamespace(apply=lambda X: X, changed_constants=lambda X: np.array([], int))
    emulator: Any = SimpleNamespace(inputs_=inputs, n_features_in_=2)
    outside, notes = extrapolation(emulator, scaled)
    assert outside == 3
    assert notes == [
        "3 of 5 rows lie outside the range of the runs; there the emulator extrapolates."
    ]
    assert extrapolation(emulator, scaled[:2]) == (0, [])
