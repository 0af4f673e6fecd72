"""Every Python block of the README runs as printed, and its tables are those of the benchmarks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks.functions import comparison
from benchmarks.functions.summary import overall
from benchmarks.peers.cells import Store
from benchmarks.real.summary import of

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


def table_after(text: str) -> dict[str, list[str]]:
    """Cells of the first table after a text of the README, by the first of each row."""
    rest = README.read_text(encoding="utf-8").split(text)[1]
    lines = re.search(r"(\|.*\n)+", rest)
    assert lines is not None
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[0].splitlines()]
    return {row[0]: row[1:] for row in rows[2:]}


def results(part: str) -> list[dict[str, Any]]:
    path = README.parent / "benchmarks" / "peers" / "results.json"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))[part]
    return found


def test_emulators_are_those_of_the_benchmarks() -> None:
    shown = table_after("## What it changes")
    store = Store(README.parent / "benchmarks" / "functions.jsonl")
    found = {row["method"]: row for row in overall(of(store, comparison.__name__))}
    # All, but for what was tried on the way to the default.
    assert found.keys() - shown.keys() == {"paims, spike from 1e-8"}
    for name, (functions, nlpd, mine, inside, least, rmse) in shown.items():
        row = found[name]
        assert int(functions) == row["functions"]
        assert float(nlpd) == pytest.approx(row["nlpd"], abs=0.0051)
        assert float(mine) == pytest.approx(row["mine"], abs=0.0051)
        assert float(rmse) == pytest.approx(row["rmse"], abs=0.00051)
        assert inside == f"{100 * row['coverage']:.1f} %"
        assert least == f"{100 * row['least']:.0f} %"


SAMPLERS = {
    "paims, 2000 points": ("paims", "N = 2000"),
    "nautilus, 1000 live points": ("nautilus", "n_live = 1000"),
    "dynesty, 500 live points": ("dynesty", "nlive = 500"),
    "emcee": ("emcee", "100k evaluations"),
    "BlackJAX, tempered SMC, 4000 particles": ("blackjax", "4000 particles"),
}


def test_samplers_are_those_of_the_benchmarks() -> None:
    rows = {
        (r["method"], r["setting"]): r for r in results("samplers") if r["case"] == "GP branin"
    }
    shown = table_after("The sampler beside others")
    assert list(shown) == list(SAMPLERS)
    for name, (evaluations, seconds, rms) in shown.items():
        row = rows[SAMPLERS[name]]
        assert int(evaluations.replace(",", "")) == pytest.approx(row["n_evaluations"], rel=0.03)
        assert float(seconds) == pytest.approx(row["seconds"], rel=0.05)
        assert float(rms) == pytest.approx(row["rms"], abs=0.00051)
