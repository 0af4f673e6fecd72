"""Several outputs on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.conftest import Invoke

import paims

POINTS = np.linspace(0.0, 1.0, 30)


def table(n: int, seed: int) -> pd.DataFrame:
    X = np.random.default_rng(seed).random((n, 2))
    frame = pd.DataFrame(X, columns=["u", "v"])
    frame["a"] = np.sin(4.0 * X[:, 0]) + X[:, 1]
    frame["b [bold]"] = X[:, 1] ** 2 + X[:, 0]
    frame["same"] = 3.5
    field = {f"t{s:.2f}": np.exp(-((s - X[:, 0]) ** 2)) * (1 + X[:, 1]) for s in POINTS}
    return pd.concat([frame, pd.DataFrame(field)], axis=1)


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    runs = table(18, 0)
    runs.loc[3, "a"] = np.nan
    runs.to_csv(tmp_path / "runs.csv", index=False)
    table(9, 1).to_csv(tmp_path / "held-out.csv", index=False)
    return tmp_path


def test_a_few_outputs(invoke: Invoke, tables: Path) -> None:
    names = ["a", "b [bold]", "same"]
    asked = [part for name in names for part in ("--output", name)]
    common = ["--inputs", "u,v", "--samples", "200", "--prior", "jointly_robust"]
    common += ["--kernel", "squared_exponential"]
    fitted = invoke("fit", "runs.csv", *asked, *common)
    assert fitted.exit_code == 0
    assert "Emulator of 3 outputs" in fitted.stdout
    assert "b [bold]" in fitted.stdout
    assert "same takes one value only" in fitted.stdout
    assert [path.name for path in tables.glob("*.h5")] == ["emulator.h5"]  # no checkpoint is left
    predicted = invoke("predict", "emulator.h5", "held-out.csv", "--out", "new.csv")
    assert predicted.exit_code == 0
    written = pd.read_csv(tables / "new.csv")
    emulator = paims.load_emulator(tables / "emulator.h5")
    mean = emulator.predict(written[["u", "v"]])
    for j, name in enumerate(names):
        np.testing.assert_allclose(written[f"{name}_mean"], mean[:, j], rtol=1e-12)
        assert (written[f"{name}_lower_95"] <= written[f"{name}_upper_95"]).all()
    told = json.loads(invoke("diagnose", "emulator.h5", "--json").stdout)
    assert set(told["outputs"]) == {"a", "b [bold]"}
    assert told["outputs"]["a"]["scores"]["n"] == 17
    shown = invoke("diagnose", "emulator.h5", "held-out.csv")
    assert shown.exit_code in (0, 3)
    assert "of 2 outputs have a check" in shown.stdout
    about = json.loads(invoke("info", "emulator.h5", "--json").stdout)
    assert about["outputs"] == names
    assert about["n_runs"] == 18
    draws = invoke("sample", "emulator.h5", "--output", "a", "-n", "2")
    assert draws.stdout.startswith("length_scale_u,length_scale_v,nugget")
    refused = invoke("sample", "emulator.h5")
    assert refused.exit_code == 1
    assert "Say --output NAME; there are a, b [bold], same" in refused.stderr


def test_a_pattern_that_fits_nothing_lists_a_dozen_columns(invoke: Invoke, tables: Path) -> None:
    for asked in ("pressure_*", "pressure"):
        refused = invoke("fit", "runs.csv", "--output", asked)
        assert refused.exit_code == 1
        assert "its columns are u, v, a, b [bold], same, t0.00, " in refused.stderr
        assert refused.stderr.endswith("t0.21 and 23 more.\n")


def test_workers_give_the_same_emulator(invoke: Invoke, tables: Path) -> None:
    asked = ["fit", "runs.csv", "--output", "a", "--output", "b [bold]", "--way", "separate"]
    asked += ["--inputs", "u,v", "--samples", "80", "--prior", "jointly_robust"]
    asked += ["--kernel", "squared_exponential"]
    assert invoke(*asked, "--save", "here.h5").exit_code == 0
    assert invoke(*asked, "--save", "there.h5", "--workers", "2").exit_code == 0
    here, there = (paims.load_emulator(tables / f"{name}.h5") for name in ("here", "there"))
    points = pd.read_csv(tables / "held-out.csv")[["u", "v"]]
    np.testing.assert_array_equal(here.predict(points), there.predict(points))


def test_a_field_by_a_pattern(invoke: Invoke, tables: Path) -> None:
    options = ["--inputs", "u,v", "--samples", "200", "--prior", "jointly_robust", "--json"]
    options += ["--kernel", "squared_exponential"]
    fitted = invoke("fit", "runs.csv", "--output", "t*", *options)
    assert fitted.exit_code == 0
    facts = json.loads(fitted.stdout)
    assert facts["way"] == "components"
    assert len(facts["outputs"]) == 30
    made = invoke("report", "emulator.h5", "--validation", "held-out.csv", "--json")
    assert made.exit_code == 0
    assert set(json.loads(made.stdout)["answers"]) == {"trust", "worst", "way"}
    page = (tables / "report.html").read_text()
    assert "Emulator of 30 outputs" in page
    assert page.count('<section id="output-') == 6  # the worst
    assert 'id="field-data"' in page


def test_what_is_refused(invoke: Invoke, tables: Path) -> None:
    nothing = invoke("fit", "runs.csv", "--output", "q*")
    assert nothing.exit_code == 1
    assert "No column of runs.csv fits 'q*'" in nothing.stderr
    both = invoke("fit", "runs.csv", "-y", "a", "-y", "u", "--inputs", "u,v")
    assert "'u' cannot be input and output at once" in both.stderr
    one = invoke("fit", "runs.csv", "--output", "a", "--inputs", "u,v")
    assert "row 5, column 'a': the cell is empty" in one.stderr
    way = invoke("fit", "runs.csv", "-y", "t*", "--inputs", "u,v", "--way", "some")
    assert "outputs must be one of" in way.stderr
