"""Public functions: designs, ways to weigh kernels, and goals, on records that are made up."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks.functions import __main__ as command
from benchmarks.functions import cases, comparison, named, summary, weights
from benchmarks.peers.cells import Cell, Record, Store

from paims import datasets


def record(method: str, case: str, nlpd: float, rmse: float = 0.1, **values: Any) -> Record:
    cell = Cell(comparison.__name__, method, case, "", 0)
    found = {"status": "ok", "nlpd": nlpd, "rmse": rmse, "crps": 0.05, "coverage": 0.95}
    return {**cell.__dict__, **found, "cpu_seconds": 1.0, **values}


def test_functions_and_halves() -> None:
    assert len(cases.INPUTS) == 47
    assert sorted(cases.CHOOSING + cases.SHOWING) == sorted(cases.INPUTS)
    assert not set(cases.CHOOSING) & set(cases.SHOWING)
    assert [cases.n_runs(p) for p in (1, 2, 3, 5, 6, 7, 20)] == [8, 20, 30, 50, 60, 56, 160]
    assert cases.INPUTS[cases.CASES[0]] == 1
    assert cases.INPUTS[cases.CASES[-1]] == 20


def test_designs_follow_the_inputs_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    marginals = [SimpleNamespace(icdf=lambda u: 10.0 + 5.0 * u), SimpleNamespace(icdf=np.exp)]

    class Made:
        prob_input = SimpleNamespace(marginals=marginals)

        def __call__(self, X: np.ndarray) -> np.ndarray:
            assert 10.0 <= X[:, 0].min() <= X[:, 0].max() <= 15.0
            assert 1.0 <= X[:, 1].min() <= X[:, 1].max() <= np.e
            return np.column_stack([X[:, 1], X.sum(axis=1)])

    monkeypatch.setattr(cases, "function", lambda name: Made())
    data = cases.runs("Franke1", 3)
    assert data.X.shape == (20, 2)
    assert data.X_test.shape == (500, 2)
    np.testing.assert_array_equal(cases.runs("Franke1", 3).y, data.y)
    assert not np.array_equal(cases.runs("Franke1", 4).y, data.y)
    np.testing.assert_array_equal(cases.runs("Franke1", 4).y_test.shape, (500,))


def test_all_ways_of_one_design(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)

    def member(name: str, *arguments: Any) -> SimpleNamespace:
        k = weights.SMOOTH.index(name)
        means = np.full((2, 30), float(k))
        components = SimpleNamespace(means=means, scales=np.ones((2, 30)), dof=5.0)
        prediction = SimpleNamespace(components=components, weights=np.array([0.5, 0.5]))
        return SimpleNamespace(
            comparable=[0.0, -1.0, -9.0][k], error=0.1, reference=0.0, seconds=1.0,
            left_out=np.array([-3.0, -1.0, -3.0])[k] + 0.01 * rng.random(20),
            prediction=prediction,
        )  # fmt: skip

    data = SimpleNamespace(
        X=np.zeros((5, 2)), y=np.zeros(5), X_test=np.zeros((30, 2)), y_test=np.ones(30), unit=1.0
    )
    monkeypatch.setattr(weights, "Member", member)
    monkeypatch.setattr(weights, "runs", lambda case, seed: data)
    found = weights.measure(Cell(weights.__name__, "paims", "Franke1", weights.KERNELS, 0))
    assert found["weights"]["evidence"] == {
        "squared_exponential": pytest.approx(0.731, abs=1e-3),
        "matern72": pytest.approx(0.269, abs=1e-3),
        "matern52": 0.0,
    }
    assert found["weights"]["stacked"]["matern72"] > 0.999
    assert found["weights"]["evidence and stacked"]["matern72"] == pytest.approx(0.634, abs=2e-3)
    assert found["weights"]["chosen"] == {"squared_exponential": 1.0}
    # The outputs are 1, which the second kernel predicts.
    best = min(found["ways"], key=lambda way: found["ways"][way]["nlpd"])
    assert best in ("matern72", "stacked")


def test_goals() -> None:
    peer = "gpmp, Matérn 7/2"
    records = [
        record("paims", "Franke1", -2.0), record("paims", "Franke2", -1.0, 0.5),
        record(peer, "Franke1", -1.9), record(peer, "Franke2", -0.8, 0.1),
        record("paims, squared exponential", "Franke1", -1.5),
    ]  # fmt: skip
    found = [row["verdict"] for row in summary.verdicts(records)]
    assert found == ["reached", "missed", "reached", "reached"]
    assert summary.worst_ratio(records)[1] == "Franke2, design 0"
    # Each is compared with ours on what it was tried on.
    rows = {row["method"]: row for row in summary.overall(records)}
    assert rows["paims, squared exponential"]["mine"] == -2.0
    assert rows[peer]["mine"] == -1.5
    worse = [*records, record("BoTorch, MAP", "Franke1", -3.0)]
    assert summary.verdicts(worse)[0]["verdict"] == "missed"
    low = [*records, record("paims", "Franke3", -1.0, coverage=0.7)]
    assert [row["verdict"] for row in summary.verdicts(low)][2:] == ["missed", "missed"]
    assert "| Franke1 | 2 | -2.00 |" in summary.report(records)


def test_ways_are_shown_by_halves() -> None:
    def way(case: str, nlpd: float) -> Record:
        cell = Cell(weights.__name__, "paims", case, weights.KERNELS, 0)
        scores = {"nlpd": nlpd, "rmse": 0.1, "crps": 0.1, "coverage": 0.9}
        return {**cell.__dict__, "status": "ok", "ways": {"evidence": scores, "equal": scores}}

    records = [way(cases.CHOOSING[0], -1.0), way(cases.SHOWING[0], -3.0)]
    for names, nlpd in ((cases.CHOOSING, -1.0), (cases.SHOWING, -3.0)):
        (first, _) = summary.weighing(records, names, weights.KERNELS)
        assert (first["nlpd"], first["functions"]) == (nlpd, 1)
    assert summary.report(records).count("Ways to weigh kernels") == 2


def test_ours_has_its_defaults_and_others_the_options_of_their_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named_so = {"paims": {"kernel": "squared_exponential"}, "BoTorch, MAP": {"fully": False}}
    monkeypatch.setattr(comparison, "adapter", lambda name: SimpleNamespace(METHODS=named_so))
    monkeypatch.setattr(comparison, "warm_up", lambda *arguments: None)
    monkeypatch.setattr(comparison, "runs", lambda case, design: None)
    monkeypatch.setattr(comparison.metadata, "version", lambda package: "1")
    monkeypatch.setattr(
        comparison, "fit_and_score", lambda module, options, data, seed: {"given": options}
    )
    for method, options in (
        ("paims", {}),
        ("paims, best point", {"goal": "map"}),
        ("BoTorch, MAP", {"fully": False}),
    ):
        cell = Cell(comparison.__name__, method, "Franke1", "", 0)
        assert comparison.measure(cell)["given"] == options


def test_spikes_are_compared_by_halves_on_common_designs() -> None:
    spike, low = comparison.SPIKE, cases.CHOOSING[0]
    records = [
        record("paims", low, -2.0), record(spike, low, -1.5),
        record("paims", cases.SHOWING[0], -3.0), record(spike, cases.SHOWING[1], -9.0),
    ]  # fmt: skip
    found = summary.spikes(records, cases.CHOOSING)
    assert [(row["method"], row["nlpd"]) for row in found] == [("paims", -2.0), (spike, -1.5)]
    assert summary.spikes(records, cases.SHOWING) == []
    assert summary.report(records).count("Where the spike begins") == 1


def test_only_common_designs_are_compared() -> None:
    peer = "gpmp, Matérn 7/2"
    records = [
        record("paims", "Franke1", -2.0), record("paims", "Franke2", -1.0),
        record(peer, "Franke1", -2.5), record(peer, "Franke3", 9.0),
        record(peer, "Franke2", 5.0, status="failed"),
    ]  # fmt: skip
    rows = {row["method"]: row for row in summary.overall(records)}
    assert (rows[peer]["nlpd"], rows[peer]["mine"], rows[peer]["failed"]) == (-2.5, -2.0, 1)
    assert (rows[peer]["won"], rows["paims"]["won"]) == (0.0, None)
    common = {row["method"]: row for row in summary.on_common(records)}
    assert common["paims"]["nlpd"] == -2.0
    assert common["paims"]["designs"] == common[peer]["designs"] == 1
    assert summary.on_common(records[:2]) == []


def test_named_runs() -> None:
    def row(case: str, design: int, setting: str, **values: float) -> Record:
        cell = Cell(named.__name__, "paims", case, setting, design)
        found = {"nlpd": -3.0, "rmse": 0.1, "coverage": 0.95, "cpu_seconds": 2.0}
        return {**cell.__dict__, "status": "ok", **found, **values}

    records = [
        row(named.BRANIN, 0, named.DEFAULT, coverage=0.5),
        row(named.BRANIN, 1, named.DEFAULT, cpu_seconds=9.0),  # alone, so without a ratio
        row(named.BRANIN, 0, named.SINGLE, cpu_seconds=4.0, coverage=0.1),
        row(named.FRIEDMAN, 0, named.DEFAULT, nlpd=-3.5),
    ]
    assert named.times(records) == {named.BRANIN: 0.5}
    first = named.rows(records)[0]
    assert (first["designs"], first["least"], first["coverage"]) == (2, 0.5, 0.725)
    found = [(row["goal"], row["verdict"]) for row in summary.named_verdicts(records)]
    assert [verdict for _, verdict in found] == ["missed", "reached", "reached"]
    assert "Named runs" in summary.report(records)


def test_named_runs_are_measured_in_their_units(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = np.array([0.0, 6.0])
    monkeypatch.setattr(named, "warm_up", lambda *arguments: None)
    monkeypatch.setattr(named, "runs", lambda case, design: case)
    monkeypatch.setattr(
        named, "fit_and_score", lambda *arguments: {"nlpd": -1.0, "data": arguments[2]}
    )
    monkeypatch.setattr(datasets, "load_nilson_kuusk", lambda: SimpleNamespace(y_test=truth))
    cells = list(named.cells())
    assert len(cells) == 2 * (12 + 10 + 3)
    found = {cell.case: named.measure(cell) for cell in cells}
    assert found["nilson_kuusk"]["nlpd"] == pytest.approx(-1.0 + np.log(3.0))
    assert found[named.FRIEDMAN]["nlpd"] == -1.0
    assert found[named.BRANIN]["data"].X.shape == (15, 2)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["functions", *options])
        command.main()
        return capsys.readouterr().out

    listed = run("--list", "--design", "0", "--most-inputs", "1", "--method", "^paims$")
    assert len(listed.splitlines()) == 7
    assert len(run("--list", "--weights", "--case", "Franke1").splitlines()) == 20
    assert len(run("--list", "--named").splitlines()) == 50
    monkeypatch.setattr(command, "PAGE", tmp_path / "functions.md")
    store = Store(tmp_path / "functions.jsonl")
    made = record("paims", "Franke1", -2.0)
    store.add(Cell(*(made.pop(name) for name in Cell.__dataclass_fields__)), **made)
    assert "Franke1" in run("--summary", "--results", str(store.path))
    with pytest.raises(SystemExit):
        run("--list", "--design", "99")


def test_what_is_kept_is_what_the_page_says() -> None:
    root = Path(command.__file__).parents[1]
    store = Store(root / "functions.jsonl")
    assert (root / "functions.md").read_text(encoding="utf-8") == summary.report(store) + "\n"
