"""What is published says one version, one set of requirements and one licence."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import paims

ROOT = Path(__file__).resolve().parents[1]


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(lines: list[str]) -> dict[str, str]:
    """Floors by package; conda's name of Matplotlib without its windows is that of pip."""
    pairs = (re.fullmatch(r"([\w-]+?)(?:-base)? *>=([\d.]+)", line) for line in lines)
    return {pair[1]: pair[2] for pair in pairs if pair is not None}


def test_version_is_said_in_one_place() -> None:
    assert project()["dynamic"] == ["version"]
    for name in ("pyproject.toml", "CITATION.cff", ".zenodo.json", "conda/meta.yaml"):
        assert paims.__version__ not in (ROOT / name).read_text(encoding="utf-8")


def test_changelog_has_a_section_for_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (\S+)(?: \((.+)\))?$", text, flags=re.MULTILINE)
    assert paims.__version__ in [version for version, _ in sections]
    # Only what comes next is unreleased.
    assert [note for _, note in sections].count("unreleased") <= 1
    assert all(note != "unreleased" for _, note in sections[1:])


def test_conda_asks_for_what_pip_asks_for() -> None:
    recipe = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    run = recipe.split("  run:\n")[1].split("\ntest:")[0]
    found = requirements(re.findall(r"^    - (.+)$", run, flags=re.MULTILINE))
    wanted = requirements([*project()["dependencies"], *project()["optional-dependencies"]["app"]])
    assert found.pop("python") == project()["requires-python"].removeprefix(">=")
    assert found == wanted
    assert len(wanted) == 12


def test_zenodo_and_citation_agree() -> None:
    zenodo = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'title: "{zenodo["title"]}"' in citation
    assert f"license: {zenodo['license']}" in citation
    assert zenodo["license"] == project()["license"]
    assert zenodo["related_identifiers"][0]["identifier"] in citation
    # The day of the release is that of the changelog.
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    day = re.search(rf"^## {re.escape(paims.__version__)} \((.+)\)$", text, flags=re.MULTILINE)
    assert day is not None
    assert zenodo["publication_date"] == day[1]
    assert f"date-released: {day[1]}\n" in citation
