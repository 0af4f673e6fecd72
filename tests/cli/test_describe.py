"""The table of modes that commands print."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from paims.cli._describe import _print_modes


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
