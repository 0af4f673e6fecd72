"""What the commands do when all is well."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import paims
from paims import gp, simulators
from paims.emulator._averaging import in_words

COMMANDS = ("demo", "fit", "predict", "report", "diagnose", "sample", "info")


def _new(n: int = 6, seed: int = 1) -> str:
    X = simulators.branin.design(n, seed)
    lines = [f"p{i},{b!r},{a!r}" for i, (a, b) in enumerate(X.tolist())]
    return "name,x2,x1\n" + "\n".join(lines) + "\n"


def read_exactly(source: Any) -> pd.DataFrame:
    """Numbers to their last digit, which pandas 2 rounds."""
    table = pd.read_csv(source, dtype=str)
    for name in table:
        with contextlib.suppress(ValueError):
            table[name] = table[name].map(float)
    return table


def test_fit_saves_an_emulator(invoke: Any, runs: Path, tmp_path: Path) -> None:
    result = invoke("fit", runs, "--output", "y", "--ignore", "label", "--samples", 300, "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["file"] == "emulator.h5"
    assert [item["name"] for item in told["inputs"]] == ["x1", "x2"]
    assert (told["n_runs"], told["output"], told["source"]) == (14, "y", "runs.csv")
    assert sum(mode["mass"] for mode in told["modes"]) == pytest.approx(1.0, abs=0.02)
    table = read_exactly(runs)
    alone = paims.Emulator(random_state=0, n_samples=300).fit(table[["x1", "x2"]], table["y"])
    saved = paims.load_emulator(tmp_path / "emulator.h5")
    X = table[["x1", "x2"]] * 0.9
    np.testing.assert_array_equal(saved.predict(X), alone.predict(X))


def test_fit_passes_the_prior_of_the_nugget_on(invoke: Any, runs: Path, tmp_path: Path) -> None:
    for options, expected in (((), "spike_slab"), (("--nugget-prior", "uniform"), "uniform")):
        result = invoke(
            "fit", runs, "-y", "y", "--ignore", "label", "--samples", 200, "--force", *options
        )
        assert result.exit_code == 0
        saved = paims.load_emulator(tmp_path / "emulator.h5")
        assert saved.nugget_prior == expected
        assert saved.posterior_.nugget.prior.name == expected


def test_fit_averages_kernels(invoke: Any, runs: Path, tmp_path: Path) -> None:
    fit = ("fit", runs, "-y", "y", "--ignore", "label", "--samples", 200, "--kernel")
    result = invoke(*fit, "matern52, matern32")
    assert result.exit_code == 0
    saved = paims.load_emulator(tmp_path / "emulator.h5")
    assert list(saved.kernel_evidence_) == ["matern52", "matern32"]
    line = f"kernels {in_words(saved.kernel_weights_, saved.kernel_evidence_)}; linear trend"
    assert line in " ".join(result.stdout.split())
    assert line in " ".join(invoke("info", "emulator.h5").stdout.split())
    assert "nugget estimated (spike slab prior)" in " ".join(result.stdout.split())
    about = json.loads(invoke(*fit, "auto", "--json", "--force").stdout)
    assert about["settings"]["kernel"] == ", ".join(about["kernel_weights"])
    assert sum(about["kernel_weights"].values()) == pytest.approx(1.0)
    assert about["kernel_weights"].keys() <= about["kernel_evidence"].keys()
    report = invoke("report", "emulator.h5")
    assert report.exit_code == 0
    assert "the emulator is their mixture" in (tmp_path / "report.html").read_text("utf-8")
    wrong = invoke(*fit, "matern52,rbf", "--force")
    assert wrong.exit_code == 1
    assert "got 'rbf'" in wrong.stderr


def test_fit_from_standard_input_with_options(invoke: Any, runs: Path) -> None:
    text = runs.read_text().replace(",", "\t")
    result = invoke(
        "fit", "-", "-y", "y", "-x", "x2", "-s", "one.h5", "--samples", 200, "--kernel",
        "matern52", "--mean", "constant", "--nugget", "0.001", "--seed", 7, "--json", stdin=text,
    )  # fmt: skip
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["source"] == "standard input"
    assert [item["name"] for item in told["inputs"]] == ["x2"]
    expected = {"kernel": "matern52", "mean": "constant", "nugget": 0.001, "random_state": 7}
    assert expected.items() <= told["settings"].items()


def test_fit_force_replaces(invoke: Any, runs: Path, tmp_path: Path) -> None:
    (tmp_path / "emulator.h5").write_text("old")
    arguments = ("fit", runs, "-y", "y", "--ignore", "label", "--samples", 200)
    assert invoke(*arguments).exit_code == 1
    assert (tmp_path / "emulator.h5").read_text() == "old"
    result = invoke(*arguments, "--force")
    assert result.exit_code == 0
    assert "Emulator of y" in result.stdout
    assert "Saved to emulator.h5. Next: paims report emulator.h5" in result.stderr
    assert paims.load_emulator(tmp_path / "emulator.h5").posterior_.n_runs == 14
    assert sorted(p.name for p in tmp_path.iterdir()) == ["emulator.h5", "runs.csv"]


def test_fit_warns_of_constant_columns(invoke: Any, tmp_path: Path) -> None:
    x = np.linspace(0.0, 3.0, 9)
    rows = "\n".join(f"{a},5,{np.sin(a)}" for a in x)
    (tmp_path / "c.csv").write_text(f"x,fixed,y\n{rows}\n")
    result = invoke("fit", "c.csv", "-y", "y", "--samples", 200)
    assert result.exit_code == 0
    assert "warning: Column(s) fixed of X take one value only." in result.stdout
    assert "one value only: left out" in result.stdout
    (tmp_path / "new.csv").write_text("x,fixed\n1,6\n")
    result = invoke("predict", "emulator.h5", "new.csv")
    assert "fixed took one value only in the runs" in result.stderr


def test_predict_adds_columns_in_any_order(invoke: Any, emulator_file: Path) -> None:
    text = _new()
    result = invoke("predict", emulator_file, "-", "--level", 0.9, stdin=text)
    assert result.exit_code == 0
    table = read_exactly(io.StringIO(result.stdout))
    added = ["y_mean", "y_std", "y_lower_90", "y_upper_90"]
    assert list(table.columns) == ["name", "x2", "x1", *added]
    mixture = paims.load_emulator(emulator_file).predict_distribution(table[["x1", "x2"]])
    expected = np.column_stack([mixture.mean, mixture.std, *mixture.interval(0.9)])
    np.testing.assert_allclose(table[added], expected, rtol=1e-12)
    assert list(table["name"]) == [f"p{i}" for i in range(6)]


def test_predict_smooth_and_json(invoke: Any, emulator_file: Path) -> None:
    result = invoke("predict", emulator_file, "-", "--smooth", "--json", stdin=_new())
    told = json.loads(result.stdout)
    X = pd.DataFrame([[float(r["x1"]), float(r["x2"])] for r in told["rows"]],
                     columns=["x1", "x2"])  # fmt: skip
    _, std = paims.load_emulator(emulator_file).predict(X, return_std=True, include_nugget=False)
    np.testing.assert_allclose([r["y_std"] for r in told["rows"]], std, rtol=1e-10)


def test_predict_many_rows_and_warns_outside(
    invoke: Any, emulator_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "new.tsv").write_text(_new(1500).replace(",", "\t") + "far\t0.5\t1.5\n")
    result = invoke("predict", emulator_file, "new.tsv", "-o", "p.tsv")
    assert result.exit_code == 0
    assert "rows lie outside the range of the runs; there the emulator extrapolates" in (
        result.stderr
    )
    assert "1501 predictions written to p.tsv." in result.stderr
    assert result.stdout == ""
    rows = list(csv.reader((tmp_path / "p.tsv").read_text().splitlines(), delimiter="\t"))
    assert len(rows) == 1502
    assert rows[-1][0] == "far"
    assert invoke("predict", emulator_file, "new.tsv", "-o", "p.tsv").exit_code == 1


@pytest.mark.parametrize("good", [True, False])
def test_diagnose(good: bool, invoke: Any, emulator_file: Path, tmp_path: Path) -> None:
    emulator = paims.load_emulator(emulator_file)
    X = pd.DataFrame(simulators.branin.design(20, 8), columns=["x1", "x2"])
    y = emulator.sample_y(X, random_state=3)[:, 0]
    if not good:
        y = y + 6.0 * emulator.predict(X, return_std=True)[1]
    X.assign(y=y).to_csv(tmp_path / "held-out.csv", index=False)
    result = invoke("diagnose", emulator_file, "held-out.csv", "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == (0 if good else 3)
    assert told["passed"] is good
    assert told["scores"]["n"] == 20
    shown = invoke("diagnose", emulator_file, "held-out.csv")
    assert ("LOOK" in shown.stdout) is not good
    assert shown.exit_code == result.exit_code


def test_diagnose_leave_one_out(invoke: Any, emulator_file: Path) -> None:
    result = invoke("diagnose", emulator_file, "--json")
    told = json.loads(result.stdout)
    assert told["scores"]["n"] == 18
    assert result.exit_code == (0 if told["passed"] else 3)


def test_sample(invoke: Any, emulator_file: Path, tmp_path: Path) -> None:
    emulator = paims.load_emulator(emulator_file)
    result = invoke("sample", emulator_file, "-n", 4000)
    table = read_exactly(io.StringIO(result.stdout))
    assert list(table.columns) == ["length_scale_x1", "length_scale_x2", "nugget"]
    assert len(table) == 4000
    log_length = np.log(emulator.draws_["length_scale_x1"])
    mean = emulator.weights_ @ log_length
    sd = np.sqrt(emulator.weights_ @ (log_length - mean) ** 2)
    # Systematic resampling has much less noise than independent draws.
    assert np.log(table["length_scale_x1"]).mean() == pytest.approx(mean, abs=4 * sd / 4000**0.5)
    assert np.log(table["length_scale_x1"]).std() == pytest.approx(sd, rel=0.1)
    assert invoke("sample", emulator_file, "-n", 4000).stdout == result.stdout
    assert invoke("sample", emulator_file, "-n", 4000, "--seed", 1).stdout != result.stdout
    told = json.loads(invoke("sample", emulator_file, "--weighted", "--json").stdout)
    assert told["columns"][-1] == "weight"
    assert sum(row[-1] for row in told["draws"]) == pytest.approx(1.0)


def test_sample_netcdf(invoke: Any, emulator_file: Path, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("arviz_base", reason="ArviZ is an extra")
    result = invoke("sample", emulator_file, "-n", 50, "-o", "draws.nc", "--json")
    assert json.loads(result.stdout)["n_draws"] == 50
    with xarray.open_dataset(tmp_path / "draws.nc", group="posterior") as draws:
        assert draws["length_scale_x2"].shape == (1, 50)
    assert "exists already" in invoke("sample", emulator_file, "-o", "draws.nc").stderr


def test_info(invoke: Any, emulator_file: Path, runs: Path) -> None:
    told = json.loads(invoke("info", emulator_file, "--json").stdout)
    assert (told["source"], told["seconds"]) == ("runs.csv", 1.5)
    assert told["versions"]["paims"] == paims.__version__
    shown = invoke("info", emulator_file).stdout
    assert "Emulator of y: 18 runs, from runs.csv" in shown
    table = json.loads(invoke("info", runs, "--json").stdout)
    assert table["n_rows"] == 14
    assert table["columns"][2]["trouble"] == (
        "runs.csv, row 2, column 'label': 'run0' is not a number."
    )
    assert "14 rows" in invoke("info", runs).stdout


def test_report(invoke: Any, emulator_file: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text(_new(3))
    result = invoke("report", emulator_file, "--predict", "new.csv", "--title", "A <title>")
    assert result.exit_code == 0
    assert "Is the posterior multimodal?" in result.stdout
    page = (tmp_path / "report.html").read_text()
    assert "<h1>A &lt;title&gt;</h1>" in page
    assert "At the 3 inputs that were given." in page
    assert invoke("report", emulator_file).exit_code == 1
    printed = invoke("report", emulator_file, "-o", "-").stdout
    assert printed.startswith("<!DOCTYPE html>")


def test_demo(invoke: Any, tmp_path: Path) -> None:
    result = invoke("demo", "--out", "tried")
    assert result.exit_code == 0
    report = tmp_path / "tried" / "report.html"
    assert f"The report is {report}" in result.stdout
    assert sorted(p.name for p in report.parent.iterdir()) == [
        "emulator.h5", "new.csv", "predictions.csv", "report.html", "runs.csv", "validation.csv",
    ]  # fmt: skip
    runs = read_exactly(report.parent / "runs.csv")
    np.testing.assert_array_equal(simulators.branin(runs[["x1", "x2"]]), runs["branin"])
    # The commands that it shows do the same.
    shown = [line for line in result.stderr.splitlines() if line.startswith("$ paims predict")]
    printed = invoke(*shown[0].split()[2:5]).stdout
    assert printed == (report.parent / "predictions.csv").read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples(name: str, invoke: Any) -> None:
    result = invoke(name, "--help")
    assert result.exit_code == 0
    assert "Examples" in result.stdout
    assert f"paims {name}" in result.stdout


def test_help_lists_the_registries(invoke: Any) -> None:
    printed = " ".join(invoke("fit", "--help").stdout.replace("│", " ").split())
    for names in (gp.KERNELS, gp.MEANS, gp.PRIORS, gp.NUGGET_PRIORS):
        assert ", ".join(names) in printed


def test_help_is_light() -> None:
    program = (
        "import sys; from paims.cli import main\n"
        "sys.argv = ['paims', '--help']\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'numba', 'scipy', 'sklearn', 'pandas', 'matplotlib', 'jinja2', 'h5py'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_missing_extra_says_what_to_install() -> None:
    program = "import sys; sys.modules['typer'] = None\nfrom paims.cli import main; main()\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "pip install 'paims[app]'" in done.stderr


def test_names_with_commas_are_quoted() -> None:
    from paims.cli._fit import names_of

    assert names_of('"a,b", c,d e') == ["a,b", "c", "d e"]
    assert names_of('say "hi",x') == ['say "hi"', "x"]
    assert names_of("two\nlines,x") == ["two\nlines", "x"]
    assert names_of(None) == []


def test_a_fit_of_hours_wants_consent(
    invoke: Any, runs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from paims.emulator import _forecast

    monkeypatch.setattr(_forecast, "seconds_per_evaluation", lambda posterior, scheme: 9.0)
    command = ("fit", runs, "-y", "y", "--ignore", "label", "--samples", "300",
               "--kernel", "matern52")  # fmt: skip
    refused = invoke(*command)
    assert refused.exit_code == 2
    assert "paims: The fit will take about 11 hours and" in refused.stderr
    assert "To start it all the same, add --yes." in refused.stderr
    assert "checkpoint=" not in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["runs.csv"]
    assert invoke(*command, "--yes").exit_code == 0
    monkeypatch.setattr(_forecast, "bytes_of_evaluation", lambda posterior: 1e18)
    full = invoke(*command, "--save", "other.h5")
    assert full.exit_code == 1
    assert "runs.csv: A fit of 14 runs takes about 1000000 TB of memory" in full.stderr
    assert "more with --jobs 1" in full.stderr or "--jobs" not in full.stderr
