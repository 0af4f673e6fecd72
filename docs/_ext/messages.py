"""``{messages}`` in a page lists every error and warning that the source can give.

They are taken from the syntax trees of the source, so the page cannot drift from it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "paims"
GROUPS = {
    "The sampler": ("sampling", "inference.py"),
    "The emulator": ("emulator",),
    "The Gaussian process": ("gp",),
    "Diagnostics, figures and reports": ("diagnostics", "plots", "report"),
    "The command line": ("cli",),
    "Simulators and data sets": ("simulators", "datasets.py", "experiments"),
    "Files and threads": (".",),
}
_ABSTRACT = ("NotImplementedError", "AttributeError")
_ERROR = re.compile(r"(Error|Interrupt|Interrupted|TooFewAlive)$")


def messages() -> dict[str, list[tuple[str, str]]]:
    """Messages by group: kind (the error's class, or a warning) and text, with … for values."""
    claimed = {name for names in GROUPS.values() for name in names}
    found: dict[str, list[tuple[str, str]]] = {}
    for group, names in GROUPS.items():
        paths: list[Path] = []
        for name in names:
            place = SOURCE / name
            if name == ".":
                paths += [path for path in SOURCE.glob("*.py") if path.name not in claimed]
            elif place.suffix:
                paths += [place] if place.is_file() else []
            else:
                paths += place.rglob("*.py")
        listed = [item for path in sorted(paths) for item in _in_file(path)]
        if listed:
            found[group] = list(dict.fromkeys(listed))
    return found


def _in_file(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and _ERROR.search(ast.unparse(node.func)) and node.args:
            kind = ast.unparse(node.func).rpartition(".")[2]
            if kind not in _ABSTRACT and (text := _text(node.args[0])):
                yield kind, text
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
            if text := _text(node.args[0]):
                yield "warning", text
        elif isinstance(node, ast.FunctionDef) and node.name.startswith(_NOTES):
            for part in ast.walk(node):
                if isinstance(part, ast.JoinedStr) and len(text := _text(part)) > 60:
                    yield "SamplingWarning", text


# Functions of the sampler that put warnings together.
_NOTES = ("_notes_of_", "_gap", "_heavy_tail", "_cluster_shares")


def _text(node: ast.expr) -> str:
    """Text of a literal, with … for what is filled in; empty if it is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    if isinstance(node, ast.BinOp):
        return _text(node.left) + (_text(node.right) or "…")
    return ""


class Messages(Directive):
    """The directive ``{messages}``."""

    def run(self) -> list[nodes.Node]:
        """One foldable list for each group."""
        result: list[nodes.Node] = []
        for group, listed in messages().items():
            head = f"<details><summary>{group} ({len(listed)})</summary>"
            items = nodes.bullet_list()
            for kind, text in listed:
                paragraph = nodes.paragraph(
                    "", "", nodes.strong("", kind), nodes.Text(f": {text}")
                )
                items += nodes.list_item("", paragraph)
            result += [
                nodes.raw("", head, format="html"),
                items,
                nodes.raw("", "</details>", format="html"),
            ]
        return result


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("messages", Messages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
