"""The life of one fit as a picture, made from the code.

``{life}`` in a page becomes an SVG drawing: one box for each function that a fit passes, in order,
with its file and the first line of its docstring, both read from the source when the page is
built. A function that is gone stops the build.
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

SOURCE = Path(__file__).resolve().parents[2] / "src" / "paims"

# File and function, in the order of a fit; those of the second list are one level.
BEFORE = [
    ("emulator/_estimator.py", "fit"),
    ("emulator/_fit.py", "fit_runs"),
    ("emulator/_fit.py", "scaled_posteriors"),
    ("inference.py", "sample_posterior"),
    ("sampling/_run.py", "run"),
    ("sampling/_level.py", "first_state"),
]
LEVEL = [
    ("sampling/_level.py", "next_level"),
    ("sampling/_path.py", "next_beta"),
    ("sampling/_markers.py", "marker_mixtures"),
    ("sampling/_sweeps.py", "draw_candidates"),
    ("sampling/_transition.py", "step"),
    ("sampling/_recycling.py", "recycle"),
]
AFTER = [
    ("sampling/_level.py", "find_missed"),
    ("sampling/_assembly.py", "assemble"),
    ("sampling/_modes.py", "find_modes"),
    ("emulator/_ensemble.py", "ensemble_of_draws"),
    ("emulator/_modes.py", "describe"),
]

_WIDTH, _HEIGHT, _STEP, _LEFT = 560, 40, 54, 60


def summary(file: str, function: str) -> str:
    """Return the first line of a function's docstring."""
    for node in ast.walk(ast.parse((SOURCE / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return (ast.get_docstring(node) or "").split("\n")[0].replace("``", "")
    raise ValueError(f"{file} has no function {function}: correct docs/_ext/life.py.")


def drawing() -> str:
    """The picture as SVG text."""
    steps = [*BEFORE, *LEVEL, *AFTER]
    height = len(steps) * _STEP + 6
    parts = [
        f'<svg class="layers" viewBox="0 0 {_WIDTH + _LEFT + 10} {height}" role="img" '
        'aria-label="The functions that a fit passes, one below the other" '
        'xmlns="http://www.w3.org/2000/svg">'
    ]
    for i, (file, function) in enumerate(steps):
        y, middle = 6 + i * _STEP, _LEFT + _WIDTH / 2
        if i:
            parts.append(f'<path class="import" d="M{middle} {y - _STEP + _HEIGHT} V{y}"/>')
        parts.append(
            f'<g><rect x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5"/>'
            f'<text x="{middle}" y="{y + 17}" class="name">{escape(function)} '
            f'<tspan class="says">{escape(file)}</tspan></text>'
            f'<text x="{middle}" y="{y + 32}" class="says">{escape(summary(file, function))}'
            "</text></g>"
        )
    top = 6 + len(BEFORE) * _STEP
    bottom = top + (len(LEVEL) - 1) * _STEP + _HEIGHT
    middle = (top + bottom) / 2
    parts.append(
        f'<path class="import" d="M{_LEFT} {bottom - 20} H{_LEFT - 22} V{top + 20} H{_LEFT}"/>'
        f'<text class="says" transform="translate({_LEFT - 30} {middle}) rotate(-90)">'
        "each level, then each round at temperature 1</text></svg>"
    )
    return "\n".join(parts)


class Life(Directive):
    """The directive ``{life}``."""

    def run(self) -> list[nodes.Node]:
        """Put the picture; the table below it says the same in words."""
        return [nodes.raw("", drawing(), format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("life", Life)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
