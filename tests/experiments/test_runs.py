"""The experiments on the published data, at a small size."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from paims import datasets, experiments
from paims.cli._app import app
from paims.experiments import Check, Outcome, Settings
from paims.experiments._checks import at_temperature_one
from paims.experiments._fits import Runs, fit
from paims.experiments._grids import quadrature
from paims.experiments._planar import _LOWER, _UPPER
from paims.inference import density, reference
from paims.sampling import anneal

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def data(shared_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(datasets.DATA_DIR_VARIABLE, str(shared_dir / "data"))


def call(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def test_branin_by_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "paper"
    code, said, _ = call("branin", "--scheme", "default", "--samples", 400, "--out", out)
    assert code == 0, said
    assert "5 of 5 findings of the paper hold" in said
    found = json.loads((out / "results.json").read_text())
    assert found["format_version"] == experiments.FORMAT_VERSION
    assert found["passed"] is True
    branin = found["experiments"]["branin"]
    rows = {row["quantity"]: row for row in branin["rows"]}
    assert rows["number of levels"]["paper"] == 7
    best = rows["RMSE of the best point, nugget estimated"]
    assert best["paper"] == 7.068
    # Of the densest point, which sampling noise does not move: 27.69 on 10,000 points.
    assert best["ours"]["default"] == pytest.approx(27.69, abs=0.05)
    assert rows["RMSE of the mixture, nugget estimated"]["paper"] == 15.099

    (modes,) = branin["tables"]
    assert [row[0] for row in modes["rows"]] == list("ABCD")
    masses = [float(row[4]) for row in modes["rows"]]
    assert masses[0] == pytest.approx(0.296, abs=0.002)
    assert masses[1] == pytest.approx(0.701, abs=0.002)
    assert modes["rows"][0][6] == pytest.approx(7.6, abs=0.1)  # mode A has the paper's error
    assert (
        "has the paper's RMSE with 74% in A"
        in rows["RMSE of the mixture, nugget estimated"]["difference"]
    )

    text = (out / "results.md").read_text()
    assert "| RMSE of the best point, nugget estimated | 7.068 | 27.69 |" in text
    for figure in branin["figures"]:
        assert figure["caption"]
        for file in figure["files"]:
            assert (out / file).stat().st_size > 2000
            if file.endswith(".gif"):
                assert (out / file).read_bytes()[:6] in (b"GIF87a", b"GIF89a")
                assert (out / file).stat().st_size < 2e6
    assert not list(out.rglob("*.part*"))


def test_nilson_kuusk() -> None:
    """The paper's table: RMSE 0.022 and 0.021 on the same test runs."""
    outcome = experiments.run("nilson-kuusk", Settings(schemes=("default",), n_samples=250))
    assert outcome.failed == []
    rows = {row.quantity: row for row in outcome.rows}
    assert rows["RMSE of the best point"].ours["default"] == pytest.approx(0.0207, abs=0.0003)
    assert rows["RMSE of the mixture"].ours["default"] == pytest.approx(0.0203, abs=0.0008)
    assert {p.name.split("/")[1] for p in outcome.pictures} == {
        "length-scales", "marginals", "residuals", "coverage", "tempering",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["paper", "default"])
@pytest.mark.parametrize("name", ["branin", "two-d-model"])
def test_findings_hold_with_either_scheme(name: str, scheme: str) -> None:
    for seed in (1, 2):
        outcome = experiments.run(name, Settings(schemes=(scheme,), seed=seed))
        assert outcome.failed == []


def test_only_temperature_one_is_the_posterior() -> None:
    """The last finding with real draws, and with those of other temperatures as controls."""
    data = datasets.load_branin()
    posterior = Runs(data.X, data.y, data.input_names).posterior()
    truth = quadrature(posterior, _LOWER, _UPPER)
    levels = list(
        anneal(density(posterior), reference(posterior), 1000, goal="optimum", random_state=0)
    )
    passed = {}
    for level in levels[1:]:
        points = level.state.points.theta
        check = at_temperature_one(
            "x", "default", points.mean(axis=0), points.std(axis=0), truth, 0.15
        )
        passed[level.info.temperature] = check.passed
    assert [temperature for temperature, holds in passed.items() if holds] == [1.0]
    assert min(passed) < 1.0 < max(passed)


def test_the_seed_decides() -> None:
    data = datasets.load_branin()
    runs = Runs(data.X, data.y, data.input_names)
    X = np.array([[0.2, 0.4], [0.7, 0.9]])
    one, same, other = (
        fit(runs, runs.posterior(), "default", 200, seed).moments(X, "posterior")
        for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


class TestErrors:
    def test_a_finding_that_does_not_hold(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checks = [Check("x: one", "One.", True, "Yes."), Check("x: two", "Two.", False, "No.")]
        outcome = Outcome("one-d", "An experiment", checks=checks)
        monkeypatch.setattr(experiments, "run", lambda name, settings: outcome)
        code, said, _ = call("one-d", "--out", tmp_path)
        assert code == 3
        assert "does not hold: x: two. No." in said
        assert "1 of 2 findings of the paper hold" in said
        assert json.loads((tmp_path / "results.json").read_text())["passed"] is False
        code, said, _ = call("one-d", "--out", tmp_path, "--force", "--json")
        assert code == 3
        assert json.loads(said)["passed"] is False

    def test_interrupted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(experiments, "run", interrupt)
        code, _, said = call("one-d", "--out", tmp_path)
        assert code == 130
        assert "results.json and results.md were not written" in said
        assert list(tmp_path.iterdir()) == []

    def test_unknown_names(self, tmp_path: Path) -> None:
        code, _, said = call("brannin", "--out", tmp_path)
        assert code == 1
        assert "no experiment 'brannin'; use one of one-d, branin, two-d-model" in said
        code, _, said = call("branin", "--scheme", "papers", "--out", tmp_path)
        assert code == 1
        assert "--scheme must be paper, default or both; got 'papers'" in said

    def test_results_that_exist(self, tmp_path: Path) -> None:
        assert call("one-d", "--out", tmp_path)[0] == 0
        before = (tmp_path / "results.md").read_text()
        code, _, said = call("one-d", "--out", tmp_path)
        assert code == 1
        assert "already holds results.json, results.md; --force replaces them" in said
        assert call("one-d", "--out", tmp_path, "--force")[0] == 0
        assert (tmp_path / "results.md").read_text() == before

    def test_a_file_in_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "taken").write_text("")
        code, _, said = call("one-d", "--out", tmp_path / "taken")
        assert code == 1
        assert "is a file; give --out a folder" in said

    def test_no_data(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(datasets.DATA_DIR_VARIABLE, str(tmp_path))
        code, _, said = call("branin", "--out", tmp_path / "out")
        assert code == 1
        assert "branin: PAIMS_DATA_DIR names the folder" in said
        assert "has no file 'branin_sample.mat'" in said

    def test_too_few_points(self, tmp_path: Path) -> None:
        code, _, said = call("branin", "--out", tmp_path, "--samples", 5)
        assert code == 1
        assert "n_samples must be an integer of at least" in said

    def test_without_matplotlib(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
        code, _, said = call("one-d", "--out", tmp_path)
        assert code == 1
        assert "needs Matplotlib: install it with pip install 'paims[app]'" in said
