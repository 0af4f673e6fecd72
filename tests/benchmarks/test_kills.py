"""What `benchmarks.kills` has found is what the page says, and nothing was lost."""

from __future__ import annotations

from pathlib import Path

from benchmarks import kills


def test_the_page_has_what_was_run() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert kills.table() in page


def test_nothing_was_lost() -> None:
    seen = kills.records()
    assert not [one for one in seen if one["lost"] or one["different"] or one["orphans"]]
    assert {one["kind"] for one in seen} == set(kills.KINDS)
    for executor in kills.EXECUTORS:
        for name in kills.SIGNALS:
            assert kills.n_sent(name, executor) >= 200
