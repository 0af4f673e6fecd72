"""The comparison with the peers: what needs none of them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers import goals, report, summary
from benchmarks.peers.cells import Cell, Record, Store
from benchmarks.peers.engines import octave
from benchmarks.peers.options import Options
from benchmarks.peers.problems import Draws, with_truth
from benchmarks.peers.runner import Worker, run
from benchmarks.peers.scoring import Mixture, normal, score
from scipy import stats
from tests import targets

CELLS = [Cell("samplers", "paims", "eggbox", "N = 500", seed) for seed in range(4)]


class FakeWorker:
    """Gives the statuses that it was told to give and remembers what it was asked."""

    def __init__(self, *statuses: str) -> None:
        self.statuses, self.asked = list(statuses), []

    def run(self, cell: Cell, limit: float) -> Record:
        del limit
        self.asked.append(cell)
        return {"status": self.statuses.pop(0) if self.statuses else "ok", "rms": 0.5}

    def close(self) -> None:
        pass


def test_a_rerun_goes_on_where_the_first_was_interrupted(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "cells.jsonl")
    run(CELLS[:2], store, 1.0, worker=FakeWorker("ok", "failed"))
    with store.path.open("a") as file:
        file.write('{"experiment": "samp')  # torn by the interruption
    second = FakeWorker()
    run(CELLS, store, 1.0, worker=second)
    assert second.asked == CELLS[2:]
    assert [record["status"] for record in store] == ["ok", "failed", "ok", "ok"]
    again = FakeWorker()
    run(CELLS, store, 1.0, retry=True, worker=again)
    assert again.asked == CELLS[1:2]
    assert store.done(retry=True) == set(CELLS)


def test_after_two_timeouts_the_setting_is_left_alone(tmp_path: Path) -> None:
    store, worker = Store(tmp_path / "cells.jsonl"), FakeWorker("timeout", "timeout")
    other = Cell("samplers", "paims", "eggbox", "N = 1000", 0)
    run([*CELLS, other], store, 1.0, worker=worker)
    assert worker.asked == [*CELLS[:2], other]


SERVER = """
import json, sys
for line in sys.stdin:
    seed = json.loads(line)["seed"]
    if seed == 1: sys.exit(3)
    if seed == 2: sys.stdin.read()      # no answer until it is ended
    print(json.dumps({"status": "ok", "seed": seed}), flush=True)
"""


def test_worker_survives_a_crash_and_a_hang() -> None:
    worker = Worker([sys.executable, "-c", SERVER])
    try:
        assert worker.run(CELLS[0], 120.0) == {"status": "ok", "seed": 0}
        assert worker.run(CELLS[1], 120.0) == {
            "status": "failed",
            "error": "the process ended with code 3",
        }
        assert worker.run(CELLS[2], 0.2)["status"] == "timeout"
        assert worker.run(CELLS[3], 120.0) == {"status": "ok", "seed": 3}
    finally:
        worker.close()


def test_error_of_a_known_sample() -> None:
    target = targets.two_gaussians(2)
    problem = with_truth(target)
    # The two centres with the masses of the modes: right means and masses, sds without the width.
    draws = np.array([[-0.5, -0.5], [0.5, 0.5]])
    errors = problem.errors(Draws(draws, np.array([0.1, 0.9])))
    lost = np.sqrt(0.09) / np.sqrt(0.09 + 0.01) - 1.0
    np.testing.assert_allclose(errors, [0, 0, lost, lost, 0, 0], atol=1e-12)
    # Masses the wrong way round.
    errors = problem.errors(Draws(draws, np.array([0.9, 0.1])))
    np.testing.assert_allclose(errors[-2:], [0.8, -0.8], atol=1e-12)
    np.testing.assert_allclose(errors[:2], -0.8 / np.sqrt(0.1), atol=1e-12)


def test_likelihood_times_reference_is_the_density() -> None:
    problem = with_truth(targets.himmelblau())
    u = np.random.default_rng(0).random((20, 2))
    x = problem.reference.quantile(u)
    expected = problem.density_fn(x) - problem.reference.log_density(x)
    np.testing.assert_allclose(problem.log_likelihood_in_cube(u), expected)
    assert problem.n_evaluations == 20


def test_scores_do_not_depend_on_the_unit_of_the_outputs() -> None:
    y, mean = np.array([0.1, -0.4, 2.0]), np.array([0.0, 0.0, 0.5])
    found = score(normal(mean, np.full(3, 0.7)), y, unit=2.0)
    law = stats.norm(mean / 2.0, 0.35)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)) / 2.0)
    assert found["nlpd"] == pytest.approx(-np.mean(law.logpdf(y / 2.0)))
    assert found["coverage"] == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="not finite"):
        score(Mixture(np.full((1, 3), np.nan), np.ones((1, 3)), np.ones(1)), y, 1.0)


def sampler_record(method: str, setting: str, seed: int, **values: float) -> Record:
    cell = Cell("samplers", method, "GP branin", setting, seed)
    return {**cell.__dict__, "status": "ok", "seconds": 9.0, "load": 1.0, **values}


RECORDS = [
    sampler_record("paims", "N = 1", 0, n_evaluations=100, cpu_seconds=1.0, rms=0.03),
    sampler_record("paims", "N = 1", 1, n_evaluations=100, cpu_seconds=1.0, rms=0.04),
    sampler_record("paims", "N = 2", 0, n_evaluations=900, cpu_seconds=5.0, rms=0.01),
    sampler_record("nautilus", "a", 0, n_evaluations=800, cpu_seconds=40.0, rms=0.04),
    sampler_record("nautilus", "b", 0, n_evaluations=50, cpu_seconds=20.0, rms=0.005),
]


def test_comparisons_use_our_runs_as_they_are_and_count_against_us() -> None:
    rows = {(row["method"], row["setting"]): row for row in summary.samplers(RECORDS)}
    assert rows["paims", "N = 1"]["rms"] == pytest.approx(np.sqrt(0.00125))
    a, b = rows["nautilus", "a"], rows["nautilus", "b"]
    # 900 evaluations are more than 800, so the cheaper run of ours stands for it.
    assert a["rms_ours"] == pytest.approx(np.sqrt(0.00125))
    assert a["times_faster"] == pytest.approx(40.0)
    assert b["rms_ours"] is None
    assert b["times_faster"] is None
    verdict = goals.faster(list(rows.values()), "nautilus", 30.0)
    assert verdict[2] == "missed"
    assert "its accuracy not reached" in verdict[1]
    assert goals.faster([rows["paims", "N = 1"], a], "nautilus", 30.0)[2] == "reached"
    assert goals.faster([a], "dynesty", 30.0)[2] == "not measured"


def emulator_record(method: str, seed: int, rmse: float, nlpd: float, **other: object) -> Record:
    cell = Cell("emulators", method, "branin", "adapter", seed)
    values = {"rmse": rmse, "nlpd": nlpd, "crps": 0.1, "coverage": 0.95, "cpu_seconds": 2.0}
    return {**cell.__dict__, "status": "ok", "seconds": 2.0, "load": 3.0, **values, **other}


def test_emulators_are_compared_on_the_same_designs() -> None:
    records = [
        emulator_record("paims", 0, rmse=0.1, nlpd=-1.0),
        emulator_record("paims", 1, rmse=0.7, nlpd=2.0),
        emulator_record("paims, Matérn 5/2", 0, rmse=0.01, nlpd=-2.0),  # ours, so no yardstick
        emulator_record("BoTorch, SAAS", 0, rmse=0.2, nlpd=-0.5, cpu_seconds=7.0),
        emulator_record("SMT", 1, rmse=0.2, nlpd=0.0),
        {**emulator_record("SMT", 0, 0, 0), "status": "failed", "rmse": None, "nlpd": None},
    ]
    rows = {row["method"]: row for row in summary.emulators(records)}
    assert rows["BoTorch, SAAS"]["nlpd_ours"] == -1.0
    assert rows["SMT"]["nlpd_ours"] == 2.0
    assert (rows["SMT"]["n"], rows["SMT"]["failed"]) == (1, 1)
    assert rows["paims"]["trapped"] == 1  # 0.7 against 0.2 on design 1
    assert rows["BoTorch, SAAS"]["trapped"] == 0
    assert goals.never_trapped(list(rows.values()), "paims")[2] == "missed"
    assert goals.faster_than_bayesian(list(rows.values()), "paims")[2] == "reached"
    overall = summary.overall(list(rows.values()))
    names = [row["method"] for row in overall]
    assert names == ["paims, Matérn 5/2", "BoTorch, SAAS", "SMT", "paims"]
    assert goals.best_nlpd(overall, "paims")[2] == "missed"
    # Other variants of ours neither count for us nor against us.
    worse = {**overall[1], "nlpd": 3.0}
    assert goals.best_nlpd([overall[0], overall[3], worse], "paims")[2] == "reached"


def test_goals_are_judged_for_both_variants_of_ours() -> None:
    chosen = "paims, kernel by evidence"
    records = [
        emulator_record("paims", 0, rmse=0.9, nlpd=-0.1),
        emulator_record(chosen, 0, rmse=0.1, nlpd=-1.0, cpu_seconds=3.0),
        emulator_record("BoTorch, SAAS", 0, rmse=0.2, nlpd=-0.5, cpu_seconds=9.5),
    ]
    found = goals.verdicts(records)[-6:]
    assert [verdict for _, _, verdict in found] == ["missed"] * 3 + ["reached"] * 3
    assert [goal.split(":")[0] for goal, _, _ in found] == ["defaults"] * 3 + ['kernel="auto"'] * 3
    assert "3.2 times, nlpd ours -1.000" in found[4][1]
    assert found[5][1] == "0 of 1 designs"


def test_tables_are_written_whole(tmp_path: Path) -> None:
    store = Store(tmp_path / "cells.jsonl")
    for record in RECORDS:
        values = {k: v for k, v in record.items() if k not in Cell.__dataclass_fields__}
        store.add(Cell(**{k: record[k] for k in Cell.__dataclass_fields__}), **values)
    report.write(store, tmp_path)
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "| nautilus | a | 1 | 0 | 800 | 40.00 | - | 0.0400 | - | 0.0354 | 1.00 | 40.0 |" in page
    widths = {line.count("|") for line in page.splitlines() if line.startswith("| nautilus")}
    assert widths == {len(report.SAMPLERS) + 1}
    stored = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(stored["samplers"]) == 4
    assert str(tmp_path) not in page + json.dumps(stored)
    with pytest.raises(ValueError, match="no results yet"):
        report.write(Store(tmp_path / "none.jsonl"), tmp_path)


def test_only_is_searched_in_the_text_of_a_cell() -> None:
    assert Options(only=r"paims .*on egg").wants(CELLS[0])
    assert not Options(only="dynesty").wants(CELLS[0])


LIKELIHOOD = """
function out = likelihood(X, y, trend, kernel, phi, delta, flag)
  n = rows(X); H = [ones(n, 1) X]; t = zeros(n);
  for i = 1:columns(X)
    t += 0.5 * (X(:, i) - X(:, i)').^2 / phi(i);
  end
  L = chol(exp(-t) + delta * eye(n), 'lower');
  r = (L \\ H) \\ (L \\ y);
  out = norm(L \\ (y - H * r));
end
"""


def octave_rate(folder: Path) -> float:
    rng = np.random.default_rng(0)
    X = rng.random((9, 2))
    return octave.rate(folder, X, X.sum(axis=1), rng.random((70, 2)) + 0.1, np.full(70, 0.1))


@pytest.mark.skipif(shutil.which("octave-cli") is None, reason="GNU Octave is not installed")
def test_octave_runs_the_code_that_the_user_brings(tmp_path: Path) -> None:
    (tmp_path / "published code").mkdir()
    (tmp_path / "published code" / "likelihood.m").write_text(LIKELIHOOD, encoding="utf-8")
    assert octave_rate(tmp_path) > 1.0


def test_octave_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "octave-cli")
    with pytest.raises(FileNotFoundError, match="has no likelihood"):
        octave_rate(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="octave is not installed"):
        octave_rate(tmp_path)


def test_a_page_of_rates_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "cells.jsonl")
    store.add(Cell("pointwise", "a", "n = 18", "a", 0), status="ok", rate=10.0, load=1.0)
    report.write(store, tmp_path)
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "median 1.0. Seeds" in page
    assert "nan" not in page


def test_growth_has_a_column_for_each_size() -> None:
    def record(method: str, size: int, **values: object) -> Record:
        cell = Cell("scaling", method, f"runs (p = 8): {method}", str(size), 0)
        return {**cell.__dict__, "status": "ok", "load": 1.0, **values}

    records = [
        record("paims", 30, cpu_seconds=1.0, rms=0.1),
        record("paims", 120, cpu_seconds=64.0, rms=0.1),
        record("SMT", 30, cpu_seconds=0.5, rms=0.1),
        {**record("SMT", 120), "status": "timeout"},
    ]
    lines = report.growth(summary.growth(records), "###").splitlines()
    assert lines == [
        "### runs (p = 8)",
        "",
        "| method | 30 | 120 | grows as size to the |",
        "|---|---:|---:|---:|",
        "| paims | 1.00 (0.1) | 64.00 (0.1) | 3.0 |",
        "| SMT | 0.50 (0.1) | - | - |",
    ]
