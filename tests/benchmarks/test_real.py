"""Real simulators: splits, cells, ranks and goals, on records that are made up."""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers.cells import Cell, Record, Store
from benchmarks.real import __main__ as command
from benchmarks.real import comparison, named, sets, summary

from benchmarks import wheel
from paims import SamplingWarning

ROOT = Path(__file__).parents[2]
A, B, C = "paims", "gpmp, Matérn 7/2", "BoTorch, SAAS"


def record(method: str, case: str, crps: float, setting: str = "0", seed: int = 0) -> Record:
    """One measurement; a CRPS that is infinite stands for a failure."""
    cell = Cell(comparison.__name__, method, case, setting, seed)
    ended = {"status": "ok", "crps": crps, "nlpd": -1.0, "rmse": 0.1, "coverage": 0.95,
             "cpu_seconds": 2.0, "version": "1", "warnings": []}  # fmt: skip
    return {**cell.__dict__, **(ended if math.isfinite(crps) else {"status": "timeout"})}


def fit(case: str, setting: str, seed: int = 0, **values: float) -> Record:
    """One of the fits with a time as a goal."""
    cell = Cell(named.__name__, "paims", case, setting, seed)
    return {**cell.__dict__, "status": "ok", "warnings": [], **values}


def verdict(records: list[Record], start: str) -> str:
    (found,) = [r["verdict"] for r in summary.verdicts(records) if r["goal"].startswith(start)]
    return str(found)


def test_splits_are_of_the_same_runs_for_every_method(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).random((50, 2))
    Y = np.column_stack([np.arange(50.0), np.arange(50.0) ** 2])
    monkeypatch.setattr(sets, "_loaded", lambda name: wheel.RealRuns(name, X, Y, (), ()))
    train, y, test, y_test = sets.held_out("cardiac6", 0, 3)
    assert (len(train), len(test)) == (40, 10)
    # Rows and outputs stay together, and no run is on both sides.
    np.testing.assert_array_equal(X[y.astype(int)], train)
    assert sorted([*y, *y_test]) == list(range(50))
    np.testing.assert_array_equal(sets.held_out("cardiac6", 1, 3)[0], train)
    assert not np.array_equal(sets.held_out("cardiac6", 0, 4)[1], y)
    scaled = sets.runs("cardiac6", 0, 3)
    assert scaled.X.min() == 0.0
    assert scaled.X.max() == 1.0
    assert abs(scaled.y.mean()) < 1e-12


def test_outputs_that_count() -> None:
    found = {name: sets.n_outputs(name) for name in sets.SETS}
    assert found == {
        "reactiondiffusion1": 4, "cardiac5": 6, "cardiac6": 2, "cardiac4": 4, "cardiac3": 4,
        "climate1": 4, "engineering1": 2, "cardiac2": 4, "cardiac1": 4,
    }  # fmt: skip
    cells = list(comparison.cells())
    assert len(cells) == len(set(cells)) == 34 * sets.SPLITS * len(comparison.METHODS)
    assert {cell.seed for cell in cells[: len(cells) // sets.SPLITS]} == {0}


def test_ranks_share_places_and_put_failures_last() -> None:
    records = [
        record(A, "cardiac6", 0.2), record(B, "cardiac6", 0.1), record(C, "cardiac6", np.inf),
        record(A, "cardiac6", 0.1, seed=1), record(B, "cardiac6", 0.1, seed=1),
        record(C, "cardiac6", 0.3, seed=1),
    ]  # fmt: skip
    found = summary.ranks(records)
    assert found[A, "cardiac6"] == pytest.approx((2 + 1.5) / 2)
    assert found[B, "cardiac6"] == pytest.approx((1 + 1.5) / 2)
    assert found[C, "cardiac6"] == 3.0


def test_methods_are_compared_where_all_were_tried() -> None:
    records = [
        record(A, "cardiac6", 0.3), record(B, "cardiac6", 0.2), record(C, "cardiac6", 0.1),
        # C was not tried on these, where A is better.
        record(A, "cardiac6", 0.1, seed=1), record(B, "cardiac6", 0.2, seed=1),
        record(A, "cardiac6", 0.1, seed=2), record(B, "cardiac6", 0.2, seed=2),
    ]  # fmt: skip
    every = summary.overall(summary.shared(records, summary.GROUPS["all methods"]))
    assert [row["method"] for row in every] == [C, B, A]
    few = summary.overall(summary.shared(records, summary.GROUPS["without the samplers"]))
    assert [row["method"] for row in few] == [A, B]
    assert few[0]["crps"] == pytest.approx(0.5 / 3)
    # A set that ours was not tried on decides nothing.
    elsewhere = [record(B, "cardiac5", 0.1), record(C, "cardiac5", 0.2)]
    assert len(summary.shared([*records, *elsewhere], (A, B, C))) == 3
    assert verdict(records, "mean CRPS rank first, all") == "missed"
    assert verdict(records, "mean CRPS rank first, without") == "reached"


def test_a_set_without_a_result_gives_no_mean() -> None:
    records = [
        record(A, "cardiac6", 0.1), record(B, "cardiac6", 0.2),
        record(A, "cardiac5", 0.1), record(B, "cardiac5", np.inf),
    ]  # fmt: skip
    first, second = summary.overall(summary.shared(records, (A, B)))
    assert (first["method"], first["failed"], first["crps"]) == (A, 0, pytest.approx(0.1))
    assert (second["method"], second["failed"], second["crps"]) == (B, 1, None)
    assert f"| {B} | - | 0.2000 |" in summary.by_set(records, "crps", ".4f")


def test_sets_that_end_without_a_word() -> None:
    goal = "every set finishes"
    records = [record(A, name, 0.1) for name in sets.SETS]
    assert verdict([], goal) == "not measured"
    assert verdict(records[:-1], goal) == "missed"
    assert verdict(records, goal) == "reached"
    assert verdict(records, "95 % intervals") == "reached"
    records[0]["warnings"] = ["LongFitWarning: the fit will take"]
    assert verdict(records, goal) == "reached"
    records[0]["warnings"] = ["SamplingWarning: the islands disagree"]
    assert verdict(records, goal) == "missed"
    assert verdict([*records[1:], record(A, sets.SETS[0], np.inf)], goal) == "missed"
    for r in records:
        r["coverage"] = 0.98
    assert verdict(records, "95 % intervals") == "missed"


def test_times_and_the_exact_run() -> None:
    records = [
        fit("nilson_kuusk", named.DEFAULTS, 0, seconds=4.0, nlpd=-2.59, coverage=0.93),
        fit("nilson_kuusk", named.DEFAULTS, 1, seconds=2.9, nlpd=-2.62, coverage=0.93),
        fit("borehole 240", named.ONE_KERNEL, seconds=9.0, nlpd=-3.0),
        fit("borehole 240", named.REFERENCE, log_evidence=10.0, log_evidence_error=0.03),
        fit("borehole 240", named.EXACT, nlpd=-3.009, log_evidence=10.14, log_evidence_error=0.04),
    ]
    assert verdict(records, "nilson_kuusk: <= 3 s") == "reached"
    assert verdict(records, "nilson_kuusk: nlpd") == "reached"
    assert verdict(records, "nilson_kuusk: coverage") == "reached"
    assert verdict(records, "borehole 240: nlpd") == "reached"
    assert verdict(records, "borehole 240: log evidence") == "reached"
    records[-1] |= {"nlpd": -3.011, "log_evidence": 10.16}
    assert verdict(records, "borehole 240: nlpd") == "missed"
    assert verdict(records, "borehole 240: log evidence") == "missed"
    assert verdict(records, "cardiac6") == "not measured"


def test_forecasts_are_judged_by_the_quickest_fit() -> None:
    goal = "seconds within a factor of 2"
    records = [fit("cardiac6", named.DEFAULTS, n, seconds=9.0 - n, forecast=4.1) for n in (0, 1)]
    assert verdict(records[:1], goal) == "missed"
    assert verdict(records, goal) == "reached"
    assert verdict([fit("cardiac6", named.DEFAULTS, seconds=4.0)], goal) == "not measured"


def test_warnings_are_kept_in_short() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            warnings.warn("islands\n  disagree " + "x" * 300, SamplingWarning, stacklevel=1)
    (text,) = comparison.worded(caught)
    assert text.startswith("SamplingWarning: islands disagree x")
    assert len(text) < 200
    assert comparison.means_wrong({"warnings": [text]})


def test_one_of_the_named_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named, "N_TEST", 20)
    monkeypatch.setattr(named, "warm_up", lambda: None)
    monkeypatch.setitem(named.CASES, "tiny", lambda: named.borehole(30))
    monkeypatch.setitem(named.SETTINGS, "few", {"goal": "map", "mean": "constant"})
    found = named.measure(Cell(named.__name__, "paims", "tiny", "few", 0))
    assert found["seconds"] > 0
    assert found["forecast"] > 0
    assert 0 <= found["coverage"] <= 1
    assert math.isfinite(found["nlpd"])


def chosen(*arguments: str) -> list[Cell]:
    return command.chosen(command.parser().parse_args(arguments))


def test_options_choose() -> None:
    found = chosen("--set", "cardiac6", "cardiac5", "--output", "0", "--split", "0", "2",
                   "--method", "paims|MAP")  # fmt: skip
    assert {(c.method, c.case, c.setting, c.seed) for c in found} == {
        (method, name, "0", split)
        for method in ("paims", "BoTorch, MAP")
        for name in ("cardiac6", "cardiac5")
        for split in (0, 2)
    }
    assert {c.case for c in chosen("--named", "--case", "cardiac")} == {
        "cardiac6", "cardiac5", "cardiac3, all runs",
    }  # fmt: skip


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "real.jsonl"
    Store(path).add(Cell(comparison.__name__, A, "cardiac6", "0", 0), **record(A, "cardiac6", 0.1))

    def call(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["real", *arguments, "--results", str(path)])
        command.main()

    monkeypatch.setattr(command, "PAGE", tmp_path / "real.md")
    call("--summary")
    assert "| paims | 1 | 1.00 | 0.1000 |" in capsys.readouterr().out
    call("--list", "--set", "cardiac6", "--split", "4", "--method", "paims")
    assert capsys.readouterr().out.count("\n") == 2
    with pytest.raises(SystemExit):
        call("--method", "nobody")
    asked: list[Cell] = []
    monkeypatch.setattr(wheel, "locate", lambda folder: folder)
    monkeypatch.setattr(command, "run", lambda cells, *_, **__: asked.extend(cells))
    monkeypatch.setattr(command, "installed", lambda package: package == "paims")
    call("--set", "cardiac6", "--split", "0", "--output", "1")
    assert [cell.method for cell in asked] == ["paims"]
    assert "left out: BoTorch, MAP" in capsys.readouterr().out


def test_the_page_shows_the_results() -> None:
    assert (
        command.PAGE.read_text(encoding="utf-8") == summary.report(Store(command.RESULTS)) + "\n"
    )
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "{include} ../benchmarks/real.md" in page
