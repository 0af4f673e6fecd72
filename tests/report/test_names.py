"""Sixty nasty names through every command, and through the report in a real browser."""

from __future__ import annotations

import csv
import io
import json
import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.nasty import NASTY
from typer.testing import CliRunner

import paims
from paims._names import as_label, as_variables, shortened, visible
from paims.cli._app import app

GROUP = 12
#: What no terminal should see: control characters but the end of a line, and those that turn it.
DANGEROUS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: What a file may hold and a terminal may not.
QUIET = ("fit", "info", "diagnose", "report")


class Commands:
    """Calls ``paims`` in a folder; every message is looked at."""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Standard output of a command that ends with an exit code."""
        result = CliRunner().invoke(app, list(arguments))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.stderr
        assert not DANGEROUS.search(result.stderr)
        if arguments[0] in QUIET and "--json" not in arguments:
            assert not DANGEROUS.search(result.stdout)
        return result.stdout


@pytest.fixture
def paims_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.chdir(tmp_path)
    return Commands()


def _write(path: Path, names: tuple[str, ...], seed: int) -> None:
    X = np.random.default_rng(seed).random((16, len(names) - 1))
    y = X @ np.arange(1.0, len(names)) + np.sin(5.0 * X[:, 0])
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(np.column_stack([X, y]).tolist())


@pytest.mark.parametrize("group", range(0, len(NASTY), GROUP))
def test_every_command_and_the_page(
    group: int, paims_in: Commands, tmp_path: Path, page: Any
) -> None:
    names = NASTY[group : group + GROUP]
    *inputs, output = names
    _write(tmp_path / "runs.csv", names, 0)
    _write(tmp_path / "held-out.csv", names, 1)
    settings = ("--mean", "constant", "--samples", "300", "--prior", "jointly_robust")
    paims_in("fit", "runs.csv", f"--output={output}", *settings)
    told = json.loads(paims_in("info", "emulator.h5", "--json"))
    assert [row["name"] for row in told["inputs"]] == inputs
    assert told["output"] == output
    for shown in (paims_in("info", "emulator.h5"), paims_in("info", "runs.csv")):
        short = [visible(name) for name in inputs if len(visible(name)) < 12]
        assert [name for name in short if name not in shown] == []
    rows = list(csv.reader(io.StringIO(paims_in("predict", "emulator.h5", "held-out.csv"))))
    assert rows[0][:GROUP] == list(names)
    assert rows[0][GROUP] == f"{output}_mean"
    records = json.loads(paims_in("predict", "emulator.h5", "held-out.csv", "--json"))["rows"]
    assert list(records[0])[:GROUP] == list(names)
    paims_in("diagnose", "emulator.h5", "held-out.csv", code=_verdict(tmp_path))
    columns = next(csv.reader(io.StringIO(paims_in("sample", "emulator.h5", "-n", "3"))))
    assert columns == [*(f"length_scale_{name}" for name in inputs), "nugget"]
    _check_netcdf(paims_in, columns)
    paims_in("report", "emulator.h5", "--validation", "held-out.csv")
    _check_page(page, tmp_path / "report.html", names)


@pytest.mark.parametrize("way", ["components", "shared"])
def test_names_of_outputs(way: str, paims_in: Commands, tmp_path: Path, page: Any) -> None:
    """All sixty at once."""
    for file, seed in (("runs.csv", 0), ("held-out.csv", 1)):
        X = np.random.default_rng(seed).random((16, 2))
        at = np.linspace(0.0, 1.0, len(NASTY))
        Y = np.sin((3.0 + at) * X[:, :1]) + X[:, 1:] * (1.0 + at) + np.sin(9.0 * X[:, 1:] + at)
        Y[:, 0] = 2.5
        with (tmp_path / file).open("w", newline="", encoding="utf-8-sig") as out:
            writer = csv.writer(out)
            writer.writerow(["u", "v", *NASTY])
            writer.writerows(np.column_stack([X, Y]).tolist())
    settings = ("--mean", "constant", "--samples", "200", "--prior", "jointly_robust")
    settings += ("--kernel", "squared_exponential", "--inputs", "u,v", "--way", way)
    paims_in("fit", "runs.csv", *(f"--output={name}" for name in NASTY), *settings)
    emulator = paims.load_emulator("emulator.h5")
    assert (emulator.way_, emulator.output_names_) == (way, NASTY)
    assert json.loads(paims_in("info", "emulator.h5", "--json"))["outputs"] == list(NASTY)
    paims_in("info", "emulator.h5")
    rows = list(csv.reader(io.StringIO(paims_in("predict", "emulator.h5", "held-out.csv"))))
    assert rows[0][: len(NASTY) + 3] == ["u", "v", *NASTY, f"{NASTY[0]}_mean"]
    records = json.loads(paims_in("predict", "emulator.h5", "held-out.csv", "--json"))["rows"]
    assert list(records[0])[2 : len(NASTY) + 2] == list(NASTY)
    told = json.loads(paims_in("diagnose", "emulator.h5", "held-out.csv", "--json"))
    assert set(told["outputs"]) <= set(NASTY)
    paims_in("diagnose", "emulator.h5", "held-out.csv")
    name = "component 1" if way == "components" else NASTY[1]
    paims_in("sample", "emulator.h5", "-n", "3", f"--output={name}")
    paims_in("sample", "emulator.h5", "-n", "3", "--output=none of them", code=1)
    paims_in("report", "emulator.h5", "--validation", "held-out.csv")
    assert not DANGEROUS.search((tmp_path / "report.html").read_text(encoding="utf-8"))
    page.open(tmp_path / "report.html")
    page.frame()
    assert page.troubles() == []
    assert page.evaluate("typeof window.evil") == "undefined"
    shown = page.evaluate(
        "[...document.querySelectorAll('#summary table')][0].querySelectorAll('tbody th').length"
    )
    assert shown == len(told["outputs"])
    named = page.evaluate(
        "[...document.querySelectorAll('#summary tbody th')].map(th => th.textContent)"
    )
    assert set(named[:shown]) <= {visible(name, keep="\n") for name in NASTY}
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("way", ["shared", "separate"])
def test_a_long_name_scrolls_in_its_frame(way: str, page: Any, tmp_path: Path) -> None:
    """Not the page, on a telephone either."""
    X = np.random.default_rng(0).random((16, 2))
    at = np.linspace(0.0, 1.0, 3)
    Y = pd.DataFrame(np.sin((3.0 + at) * X[:, :1]) + X[:, 1:], columns=[NASTY[-1], "b", "c"])
    settings = {"kernel": "squared_exponential", "prior": "jointly_robust", "n_samples": 200}
    emulator = paims.Emulator(**settings, random_state=0, outputs=way).fit(X, Y)
    path = tmp_path / "report.html"
    path.write_text(paims.report.render_report(emulator), encoding="utf-8")
    for width in (320, 780):
        page.send("Emulation.setDeviceMetricsOverride", width=width, height=900,
                  deviceScaleFactor=1, mobile=width == 320)  # fmt: skip
        page.open(path)
        page.frame()
        assert len(page.evaluate("paims.predict([0.5, 0.5])")) == 3
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def _verdict(folder: Path) -> int:
    """Exit code that diagnose should have: what the names are changes nothing in it."""
    emulator = paims.load_emulator(folder / "emulator.h5")
    table = np.loadtxt(io.StringIO(_body(folder / "held-out.csv")), delimiter=",")
    held_out = emulator.inputs_.apply(table[:, :-1]), table[:, -1]
    return 0 if emulator.ensemble_.validate(*held_out).passed else 3


def _body(path: Path) -> str:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return "\n".join(",".join(row) for row in list(csv.reader(file))[1:])


def _check_netcdf(paims_in: Commands, columns: list[str]) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("arviz_base")
    paims_in("sample", "emulator.h5", "-n", "3", "--out", "draws.nc")
    with xarray.open_datatree("draws.nc") as tree:
        draws = tree["posterior"]
        assert sorted(draws.data_vars) == sorted(as_variables(columns))
        for column, variable in zip(columns, as_variables(columns), strict=True):
            assert draws[variable].attrs.get("long_name", variable) == visible(column)


def _check_page(page: Any, path: Path, names: tuple[str, ...]) -> None:
    text = path.read_text(encoding="utf-8")
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", text)
    for name in names[:-1]:
        # On Matplotlib's axes: the dollars are there and no mathematics is.
        assert escape(as_label(name).replace(r"\$", "$"), quote=False) in labels
    page.open(path)
    page.frame()
    assert page.troubles() == []
    assert [url for url in page.requests() if not url.startswith(("file:", "data:"))] == []
    assert page.evaluate("typeof window.evil") == "undefined"
    rows = page.evaluate(
        "[...document.querySelectorAll('#data tbody th')].map(th => th.textContent)"
    )
    assert rows == [visible(name, keep="\n") for name in names]
    sliders = page.evaluate(
        "[...document.querySelectorAll('.slider label')].map(l => l.textContent)"
    )
    assert sliders == [shortened(visible(name), 40) for name in names[:-1]]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("document.scripts.length") == 2


def test_a_script_from_elsewhere_does_not_run(page: Any, tmp_path: Path) -> None:
    """What the policy is for: a page into which someone got a script after all."""
    X = np.random.default_rng(0).random((9, 1))
    emulator = paims.Emulator(random_state=0, n_samples=200).fit(X, np.sin(5.0 * X[:, 0]))
    whole = paims.report.render_report(emulator)
    evil = (
        "<script>window.evil = 1</script><img src='data:,' onerror='window.evil = 2'>"
        "<svg onload='window.evil = 3'></svg><img src='http://127.0.0.1:9/seen'>"
        "<iframe srcdoc='<script>parent.evil = 4</script>'></iframe>"
    )
    path = tmp_path / "report.html"
    path.write_text(whole.replace("<main>", f"<main>{evil}"), encoding="utf-8")
    page.open(path)
    page.frame()
    assert page.evaluate("typeof window.evil") == "undefined"
    blocked = [e for e in page.troubles() if "Content Security Policy" in json.dumps(e)]
    assert len(blocked) >= 4
    failed = [e["params"] for e in page.events if e["method"] == "Network.loadingFailed"]
    assert "csp" in [event.get("blockedReason") for event in failed]
    # That of the page itself does.
    assert page.evaluate("document.getElementById('explore').dataset.ready") == "yes"
    # Negative control: without the policy they would have run.
    path.write_text(re.sub(r"<meta http-equiv[^>]*>", "", path.read_text("utf-8")), "utf-8")
    page.open(path)
    page.frame()
    assert page.evaluate("typeof window.evil") == "number"
