"""Every Python block of the README runs as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block_runs(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(compile(BLOCKS[number], f"README block {number}", "exec"), names)
    assert capsys.readouterr().out.strip()
    if "covered" in names:
        assert names["covered"] > 0.8
    if "masses" in names:
        assert names["masses"] == pytest.approx([0.9, 0.1], abs=0.01)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_to_files(name: str) -> None:
    text = (README.parent / name).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#]+)", text):
        if "://" not in link:
            assert (README.parent / link).is_file(), link


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 2
