"""The layers as a picture, drawn from the imports that the code really has.

``{layers}`` in a page becomes an SVG drawing: one row for each layer of the import contract in
``pyproject.toml``, one box for each package, an arrow from each to those that it imports, but for
arrows that follow from others. All are in the list below the drawing. Imports come from the
syntax trees of all source files, those inside functions too; those for type checkers only are
left out.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "paims"

_WIDTH, _HEIGHT, _ROW, _PAD = 132, 40, 104, 26
# What each part is for, under its name.
_SAYS = {
    "cli": "the commands",
    "report": "one HTML file",
    "experiments": "the paper's",
    "emulator": "scikit-learn face",
    "inference": "gp meets sampling",
    "diagnostics": "numbers",
    "plots": "figures",
    "gp": "algebra, priors",
    "sampling": "any density",
    "_student": "t mixtures",
    "simulators": "test functions",
    "datasets": "the paper's data",
    "_arrays": "types",
    "_parallel": "threads",
    "_sealed": "files",
    "_version": "its number",
}


def layers() -> list[list[str]]:
    """Rows of the import contract, highest first, of the parts that exist."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    rows = next(c["layers"] for c in contracts if c["type"] == "layers")
    parts = [[name.strip(" ()") for name in row.replace(":", "|").split("|")] for row in rows]
    there = {path.stem for path in (ROOT / "src" / PACKAGE).iterdir()}
    return [kept for row in parts if (kept := [name for name in row if name in there])]


def edges() -> dict[tuple[str, str], int]:
    """How many files of a part import another part: ``{(importer, imported): files}``."""
    found: dict[tuple[str, str], int] = {}
    base = ROOT / "src" / PACKAGE
    known = {name for row in layers() for name in row}
    for path in sorted(base.rglob("*.py")):
        part = path.relative_to(base).parts[0].removesuffix(".py")
        if part not in known:
            continue
        for other in sorted({name for name in _imports(path) if name in known} - {part}):
            found[part, other] = found.get((part, other), 0) + 1
    return found


def reduced(arrows: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """The imports without those that lead where a path of others leads too."""
    below: dict[str, set[str]] = {}
    for row in reversed(layers()):
        for name in row:
            direct = {other for part, other in arrows if part == name}
            below[name] = direct.union(*(below[other] for other in direct))
    return {
        (above, end): n_files
        for (above, end), n_files in arrows.items()
        if not any(part == above and end in below[other] for part, other in arrows)
    }


def _imports(path: Path) -> Iterator[str]:
    """Parts of the package that a file imports."""
    for module in _modules(ast.parse(path.read_text(encoding="utf-8"))):
        names = module.split(".")
        if names[0] == PACKAGE and len(names) > 1:
            yield names[1]


def _modules(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield child.module
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        yield from _modules(child)


def drawing() -> str:
    """The picture as SVG text; colours follow the page's."""
    rows, arrows = layers(), reduced(edges())
    width = max(len(row) for row in rows) * (_WIDTH + _PAD) + _PAD
    place = {}
    for i, row in enumerate(rows):
        left = (width - len(row) * (_WIDTH + _PAD) + _PAD) / 2
        for j, name in enumerate(row):
            place[name] = (left + j * (_WIDTH + _PAD), 6 + i * _ROW)
    height = len(rows) * _ROW - _ROW + _HEIGHT + 12
    parts = [
        f'<svg class="layers" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        'aria-label="Packages in layers, with an arrow from each to those that it imports" '
        'xmlns="http://www.w3.org/2000/svg">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
    ]
    for (above, below), n_files in sorted(arrows.items()):
        parts.append(_arrow(above, below, n_files, place))
    for name, (x, y) in place.items():
        parts.append(
            f'<g><rect x="{x:.0f}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5"/>'
            f'<text x="{x + _WIDTH / 2:.0f}" y="{y + 17}" class="name">{escape(name)}</text>'
            f'<text x="{x + _WIDTH / 2:.0f}" y="{y + 31}" class="says">'
            f"{escape(_SAYS.get(name, ''))}</text></g>"
        )
    return "\n".join([*parts, "</svg>"])


def _arrow(above: str, below: str, n_files: int, place: dict[str, tuple[float, int]]) -> str:
    """Draw one import from the lower edge of a box to the upper edge of another."""
    (x0, y0), (x1, y1) = place[above], place[below]
    # Ends spread over the edges, so that arrows of one box do not lie on each other.
    shift = max(-0.35, min(0.35, (x1 - x0) / 1200))
    start = (x0 + _WIDTH * (0.5 + shift), y0 + _HEIGHT)
    end = (x1 + _WIDTH * (0.5 - shift), y1)
    bend = (end[1] - start[1]) / 2
    # Those that pass a layer go round it.
    aside = 45.0 * max(0, round((y1 - y0) / _ROW) - 1) * (1 if x1 >= x0 else -1)
    noun = "file" if n_files == 1 else "files"
    return (
        f'<path class="import" d="M{start[0]:.1f} {start[1]:.1f} '
        f"C{start[0] + aside:.1f} {start[1] + bend:.1f} "
        f'{end[0] + aside:.1f} {end[1] - bend:.1f} {end[0]:.1f} {end[1]:.1f}" '
        f'marker-end="url(#tip)"><title>{escape(above)} imports {escape(below)} '
        f"({n_files} {noun})</title></path>"
    )


class Layers(Directive):
    """The directive ``{layers}``."""

    def run(self) -> list[nodes.Node]:
        """Put the picture, and the imports as words for those who cannot see it."""
        arrows = edges()
        items = nodes.bullet_list()
        for row in layers():
            for name in row:
                below = [other for part, other in sorted(arrows) if part == name]
                text = f"{name} imports {', '.join(below) if below else 'no other'}"
                items += nodes.list_item("", nodes.paragraph("", text))
        details = [
            nodes.raw("", "<details><summary>The same in words</summary>", format="html"),
            items,
            nodes.raw("", "</details>", format="html"),
        ]
        return [nodes.raw("", drawing(), format="html"), *details]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("layers", Layers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
