"""The benchmark of several outputs: what it keeps, and what its page shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import outputs


def test_the_page_shows_what_is_kept() -> None:
    assert outputs.RESULTS.with_suffix(".md").read_text("utf-8") == outputs.report(outputs.RESULTS)


def row(way: str, crps: float, **other: object) -> dict[str, object]:
    size = {"set": "cardiac6", "split": 1, "runs": 60, "outputs": 2, "samples": 400}
    scores = {"rmse": 0.1, "single": 0.95, "sum": 0.95, "control": 0.5, "cpu": 3.0}
    told = {"kernel": "auto", "n": 60, "p": 6, "m": 2, "chosen": "shared"}
    return {**size, **scores, **told, "way": way, "crps": crps, **other}


def test_ways_are_compared_on_the_same_runs(tmp_path: Path) -> None:
    path = tmp_path / "outputs.jsonl"
    rows = [
        row("separate", 0.1),
        row("shared", 0.2),
        row("auto", 0.1),
        row("shared", 0.01, runs=100),  # of which there is no separate fit
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    told = outputs.report(path)
    assert "CRPS of *auto* no worse than of separate fits: 1 of 1" in told
    assert "CRPS of *shared* no worse than of separate fits: 0 of 1" in told
    assert "| auto (shared) | 3 | 0.1000 | 0.1000 | 0.950 | 0.950 | 0.500 |" in told


def test_what_is_there_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "outputs.jsonl"
    monkeypatch.setattr(outputs, "_measured", lambda cell, _: row(cell["way"], 0.1))
    assert len(list(outputs.sweep(["cardiac6"], ["separate", "shared"], 1, False, path))) == 2
    monkeypatch.setattr(outputs, "_measured", lambda *_: pytest.fail("was measured again"))
    assert not list(outputs.sweep(["cardiac6"], ["separate", "shared"], 1, False, path))
    assert not list(outputs.sweep(["reactiondiffusion1"], ["shared"], 1, False, path))
