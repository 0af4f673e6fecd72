"""The documentation: every public name is described and shown at work, every example runs.

The pages' cells are run by ``make docs``; here it is checked that nothing escapes it.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import paims

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
PUBLIC = (
    "paims",
    "paims.datasets",
    "paims.diagnostics",
    "paims.emulator",
    "paims.experiments",
    "paims.gp",
    "paims.inference",
    "paims.plots",
    "paims.report",
    "paims.sampling",
    "paims.simulators",
)
FENCE = re.compile(r"^(`{3,}|:{3,})\{?([\w-]*)\}?[^\n]*\n(.*?)^\1\s*$", re.DOTALL | re.MULTILINE)


def public_objects() -> dict[str, object]:
    """Everything in an ``__all__``, by its shortest public name."""
    found: dict[int, tuple[str, object]] = {}
    for name in PUBLIC:
        module = importlib.import_module(name)
        for item in module.__all__:
            value = getattr(module, item)
            found.setdefault(id(value), (f"{name}.{item}", value))
    return dict(found.values())


def modules() -> list[str]:
    """All modules but the command line's, whose examples are its help."""
    walked = pkgutil.walk_packages(paims.__path__, "paims.")
    return [m.name for m in walked if not re.search(r"\.cli|__main__|_compiled", m.name)]


def blocks(kind: str) -> list[tuple[Path, str]]:
    """Fenced blocks of a kind in all pages."""
    return [
        (page, body)
        for page in PAGES
        for _, name, body in FENCE.findall(page.read_text(encoding="utf-8"))
        if name == kind
    ]


def missing_docstrings(name: str, value: object) -> list[str]:
    """Names without a docstring: the object itself and the public members of a class."""
    names = [] if inspect.getdoc(value) else [name]
    if not inspect.isclass(value):
        return names
    for attribute, member in vars(value).items():
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "__func__", function)
        if not attribute.startswith("_") and inspect.isfunction(function):
            names += [] if inspect.getdoc(getattr(value, attribute)) else [f"{name}.{attribute}"]
    return names


def test_every_public_name_has_a_docstring():
    objects = public_objects()
    assert len(objects) > 100
    described = {
        name: value for name, value in objects.items() if callable(value) or inspect.isclass(value)
    }
    assert [
        gap for name, value in described.items() for gap in missing_docstrings(name, value)
    ] == []


def test_a_missing_docstring_is_seen():
    class Bare:
        def method(self):
            return 1

        @property
        def value(self):
            return 2

    assert missing_docstrings("Bare", Bare) == ["Bare", "Bare.method", "Bare.value"]


def test_every_public_name_is_in_the_reference():
    pages = [*(DOCS / "reference").glob("*.md"), DOCS / "paper.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for name in PUBLIC[1:]:
        assert f"automodule:: {name}\n" in text, name
    sampled = re.search(r"automodule:: paims.sampling\n +:members: (.*)", text)
    assert sampled is not None
    listed = set(sampled[1].split(", "))
    assert listed == set(importlib.import_module("paims.sampling").__all__)


def names_at_work() -> set[str]:
    """Identifiers in the pages' cells, in the README's blocks and in the docstrings' examples."""
    code = [body for _, body in blocks("code-cell") if "%%bash" not in body]
    code = [re.sub(r"\A(:.*\n)+", "", body) for body in code]
    code += re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    for name in modules():
        for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name)):
            code += [
                example.source
                for example in test.examples
                if not example.options.get(doctest.SKIP, False)
            ]
    names: set[str] = set()
    for text in code:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.Name):
                names.add(node.id)
    return names


def test_every_public_function_is_shown_at_work():
    functions = {
        name.rpartition(".")[2] for name, f in public_objects().items() if inspect.isfunction(f)
    }
    methods = {
        name
        for cls in (paims.Emulator, paims.SampleResult, paims.emulator.MixturePrediction)
        for name, member in vars(cls).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    assert len(functions) > 40
    assert sorted((functions | methods) - names_at_work()) == []


@pytest.mark.parametrize("name", modules())
def test_examples_of_docstrings_run(name: str):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


def test_every_python_block_of_a_page_is_a_cell():
    """A plain block would not be run. Terminal blocks may only install or call make."""
    for page, body in blocks("python"):
        pytest.fail(f"{page.name} has a block that is not executed: {body[:80]}")
    for page, body in blocks("console"):
        commands = re.findall(r"^\$ (.*)$", body, flags=re.MULTILINE)
        assert commands, page
        for command in commands:
            assert re.match(r"(python -m pip|pip|git clone|make|cd) ", command), (page, command)
    with_cells = {page for page, _ in blocks("code-cell")}
    for page in with_cells:
        assert page.read_text(encoding="utf-8").startswith("---\nfile_format: mystnb\n"), page
    assert len(with_cells) >= 12


def missing_places(page: str) -> list[str]:
    """Files, and functions in them, that a page names and the source does not have."""
    source = ROOT / "src" / "paims"
    found = re.findall(r"`([\w/]+\.py)(?:: (\w+))?`", page)
    return [
        f"{file}: {function}"
        for file, function in found
        if not (source / file).is_file()
        or (function and f"def {function}(" not in (source / file).read_text())
    ]


def test_the_architecture_names_what_is_there():
    page = (DOCS / "architecture.md").read_text()
    assert page.count(".py") > 10
    assert missing_places(page) == []


def test_a_missing_place_is_seen():
    page = "`inference.py: find_best`, `inference.py: find_worst`, `sampling/_lost.py`"
    assert missing_places(page) == ["inference.py: find_worst", "sampling/_lost.py: "]


def test_the_life_of_a_fit_is_drawn_from_the_code(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    life = importlib.import_module("life")
    steps = [*life.BEFORE, *life.LEVEL, *life.AFTER]
    assert all(life.summary(*step) for step in steps)
    assert life.drawing().count("<rect") == len(steps)
    with pytest.raises(ValueError, match="has no function lost"):
        life.summary("inference.py", "lost")
    sys.modules.pop("life")


def test_the_picture_shows_the_imports(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    layers = importlib.import_module("layers")
    rows, arrows = layers.layers(), layers.edges()
    height = {name: i for i, row in enumerate(rows) for name in row}
    assert {"gp", "sampling", "emulator", "inference", "cli"} <= set(height)
    assert {("inference", "gp"), ("inference", "sampling"), ("emulator", "inference")} <= set(
        arrows
    )
    assert all(height[above] < height[below] for above, below in arrows)
    assert ("gp", "sampling") not in arrows
    drawn = layers.reduced(arrows)
    assert layers.drawing().count("<title>") == len(drawn) < len(arrows)

    def below(name: str, pairs: dict[tuple[str, str], int]) -> set[str]:
        direct = {end for above, end in pairs if above == name}
        return direct.union(*(below(end, pairs) for end in direct))

    assert all(below(name, drawn) == below(name, arrows) for name in height)
    sys.modules.pop("layers")


def test_the_list_of_messages_has_what_the_source_can_say(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    catalogue = importlib.import_module("messages")
    found = catalogue.messages()
    texts = [text for listed in found.values() for _, text in listed]
    assert len(texts) > 150
    for part in (
        "The two islands disagree",
        "holds text where numbers",
        "is a damaged emulator file",
    ):
        assert any(part in text for text in texts), part
    raised = sum(
        len(re.findall(r"^\s*raise \w*Error\(", path.read_text(encoding="utf-8"), re.MULTILINE))
        for path in (ROOT / "src" / "paims").rglob("*.py")
    )
    assert (
        sum(kind.endswith("Error") for listed in found.values() for kind, _ in listed)
        > 0.8 * raised
    )
    sys.modules.pop("messages")


def test_troubleshooting_quotes_messages_that_exist(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    catalogue = importlib.import_module("messages")
    texts = [text for listed in catalogue.messages().values() for _, text in listed]
    page = (DOCS / "faq.md").read_text(encoding="utf-8")
    terms = [line for line in page.splitlines() if line.startswith('"')]
    quoted = [text for term in terms for text in re.findall(r'"([^"]*)"', term)]
    assert len(quoted) > 40

    def exists(text: str) -> bool:
        parts = [part.strip() for part in text.split("…")]
        return any(all(part in message for part in parts) for message in texts)

    assert [text for text in quoted if not exists(text)] == []
    sys.modules.pop("messages")


def test_the_link_check_finds_broken_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(DOCS))
    check_links = importlib.import_module("check_links")
    (tmp_path / "a.html").write_text(
        '<a href="b.html">1</a><a href="b.html#there">2</a><a href="b.html#gone">3</a>'
        '<img src="no.png"><a href="https://example.org">4</a>'
    )
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1><a href="#there">5</a>')
    pages = check_links.read_site(tmp_path)
    assert check_links.broken(pages) == [
        "a.html: b.html#gone leads to a page without that place",
        "a.html: no.png leads to no file",
    ]
    assert check_links.external(pages) == ["https://example.org"]
