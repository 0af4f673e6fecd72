"""A fitted emulator's file, and the command line called in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import paims
from paims import simulators
from paims.cli._app import app
from paims.report import Provenance, save_with_provenance

Invoke = Callable[..., Result]


@pytest.fixture(scope="session")
def emulator_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File of an emulator of Branin's function with inputs x1, x2 and output y."""
    import pandas as pd

    simulator = simulators.branin
    X = simulator.design(18, 4)
    frame = pd.DataFrame(X, columns=["x1", "x2"])
    emulator = paims.Emulator(random_state=0, n_samples=400).fit(frame, simulator(X))
    path = tmp_path_factory.mktemp("emulator") / "emulator.h5"
    save_with_provenance(emulator, path, Provenance(output="y", source="runs.csv", seconds=1.5))
    return path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Table of 14 runs of Branin's function, with a column of text."""
    simulator = simulators.branin
    X = simulator.design(14, 3)
    rows = [
        f"{a!r},{b!r},run{i},{y!r}"
        for i, (a, b, y) in enumerate(zip(*X.T.tolist(), simulator(X).tolist(), strict=True))
    ]
    path = tmp_path / "runs.csv"
    path.write_text("x1,x2,label,y\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Call ``paims`` in an empty folder; arguments may be paths."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call
