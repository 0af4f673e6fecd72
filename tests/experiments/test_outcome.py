"""Tables as Markdown and as JSON, pictures as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paims import experiments
from paims.experiments import Check, Outcome, Row, Settings, Table

pytest.importorskip("matplotlib")

OUTCOME = Outcome(
    name="x",
    title="An experiment",
    rows=[
        Row("RMSE", 7.068, {"paper": 27.69321, "default": 28.0}, "a|b"),
        Row("levels", 7, {"default": 5}),
    ],
    tables=[Table("More", ("name", "value"), [["first", 0.123456], ["second", "none"]])],
    checks=[Check("x: one", "One.", True, "Yes."), Check("x: two", "Two.", False, "No.")],
    notes=["A warning."],
)


def test_markdown() -> None:
    text = OUTCOME.as_markdown()
    assert "|  | paper | ours, paper scheme | ours, default scheme | difference |" in text
    assert "| RMSE | 7.068 | 27.69 | 28 | a\\|b |" in text
    assert "| levels | 7 |  | 5 |  |" in text
    assert "| first | 0.1235 |\n| second | none |" in text
    assert "| holds | One. | Yes. |\n| **fails** | Two. | No. |" in text
    assert "Note: A warning." in text


def test_json() -> None:
    found = json.loads(json.dumps(OUTCOME.as_dict()))
    assert found["rows"][0] == {
        "quantity": "RMSE",
        "paper": 7.068,
        "ours": {"paper": 27.69321, "default": 28.0},
        "difference": "a|b",
    }
    assert [check["passed"] for check in found["checks"]] == [True, False]
    assert found["tables"][0]["rows"] == [["first", 0.123456], ["second", "none"]]


def test_failed() -> None:
    assert [check.key for check in OUTCOME.failed] == ["x: two"]


def test_points_of_a_level() -> None:
    assert Settings().points("paper", 5000) == 5000
    assert Settings().points("default", 5000) is None
    assert Settings(n_samples=300).points("paper", 5000) == 300


def test_one_d_is_as_the_paper_says_and_files_are_the_same_bytes(tmp_path: Path) -> None:
    outcomes = [experiments.run("one-d") for _ in range(2)]
    for outcome, folder in zip(outcomes, ("a", "b"), strict=True):
        for picture in outcome.pictures:
            picture.save(tmp_path / folder)
    names = sorted(str(p.relative_to(tmp_path / "a")) for p in (tmp_path / "a").rglob("*.*"))
    assert names == ["one-d/length-scale.png", "one-d/length-scale.svg"]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    correlations = [row[1] for row in outcomes[0].tables[0].rows]
    assert correlations == sorted(correlations)
    assert correlations[0] < 0.01
    assert correlations[-1] > 0.9


def test_unknown_experiment() -> None:
    with pytest.raises(ValueError, match=r"no experiment 'brannin'; use one of one-d, branin"):
        experiments.run("brannin")
