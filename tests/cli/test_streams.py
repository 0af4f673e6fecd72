"""Streams that are closed, full or foreign, disks that are full, folders that are gone.

Each case is one line on standard error and an exit code, and no file is lost.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def run(tmp_path: Path, emulator_file: Path) -> Run:
    """Start ``paims`` in a folder with an emulator e.h5 and a table n.csv."""
    shutil.copy(emulator_file, tmp_path / "e.h5")
    (tmp_path / "n.csv").write_text("x1,x2,höhe\n0.1,0.2,1\n")

    def start(*arguments: str, shell: str = "", **more: Any) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, **more.pop("env", {})}
        program = [sys.executable, "-m", "paims", *arguments]
        if shell:
            program = ["sh", "-c", f'"$@" {shell}', "sh", *program]
        options = {"cwd": tmp_path, "capture_output": True} | more
        return subprocess.run(program, env=environment, check=False, **options)

    return start


def _one_line(done: subprocess.CompletedProcess[bytes], code: int, text: str) -> None:
    said = done.stderr.decode()
    assert done.returncode == code, said
    assert text in said
    assert "Traceback" not in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [("info", "n.csv"), ("sample", "e.h5", "--weighted"), ("--version",)]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_full_standard_output(run: Run, arguments: tuple[str, ...], unbuffered: str) -> None:
    done = run(*arguments, shell="> /dev/full", env={"PYTHONUNBUFFERED": unbuffered})
    _one_line(done, 1, "No space left on device")


def test_full_standard_error_is_no_reason_to_stop(run: Run) -> None:
    done = run("predict", "e.h5", "n.csv", "--out", "p.csv", shell="2> /dev/full")
    assert (done.returncode, done.stdout) == (0, b"")
    assert run("info", "none.h5", shell="2> /dev/full").returncode == 1


def test_closed_streams(run: Run, tmp_path: Path) -> None:
    _one_line(run("predict", "e.h5", "-", shell="<&-"), 1, "standard input is empty")
    _one_line(
        run("info", "n.csv", shell=">&-"), 1, "Standard output, or the disk, cannot be written"
    )
    # What goes to a file needs no standard output, and messages are nothing to wait for.
    done = run("predict", "e.h5", "n.csv", "--out", "p.csv", shell=">&- 2>&- <&-")
    assert done.returncode == 0
    assert (tmp_path / "p.csv").read_text(encoding="utf-8").startswith("x1,x2,höhe,y_mean")


def test_reader_that_stops(run: Run) -> None:
    done = run("info", "n.csv", "--json", shell="| head -1")
    assert done.stdout == b"{\n"
    assert done.stderr == b""


def test_standard_input_is_utf_8_with_or_without_a_mark(run: Run) -> None:
    plain = run("predict", "e.h5", "-", input="x1,x2,höhe\n0.1,0.2,1\n".encode())
    marked = run(
        "predict", "e.h5", "-", input="x1,x2,höhe\n0.1,0.2,1\n".encode("utf-8-sig"),
        env={"PYTHONIOENCODING": "latin-1"},
    )  # fmt: skip
    assert plain.returncode == marked.returncode == 0
    # And so is standard output, whatever the terminal's encoding is.
    assert plain.stdout == marked.stdout
    assert plain.stdout.decode().startswith("x1,x2,höhe,")
    done = run("predict", "e.h5", "-", input=b"x1,h\xf6he\n1,2\n")
    _one_line(done, 1, "standard input is not text in UTF-8 (byte 4)")


def test_terminals_of_other_kinds(run: Run) -> None:
    for environment in (
        {"TERM": "dumb", "COLUMNS": "20"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "ascii:strict"},
    ):
        done = run("info", "n.csv", env=environment)
        assert (done.returncode, done.stderr) == (0, b"")
    assert b"h\\xf6he" in done.stdout


def test_compiler_that_is_switched_off(run: Run) -> None:
    done = run("info", "e.h5", env={"NUMBA_DISABLE_JIT": "1"})
    _one_line(done, 1, "unset the environment variable NUMBA_DISABLE_JIT")


def test_backend_that_is_not_there(run: Run, tmp_path: Path) -> None:
    done = run("report", "e.h5", env={"MPLBACKEND": "nonsense"})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").stat().st_size > 1e5


def test_working_directory_that_is_gone(run: Run, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    for arguments in (
        ("predict", str(tmp_path / "e.h5"), str(tmp_path / "n.csv"), "--out", "p.csv"),
        ("fit", str(tmp_path / "n.csv"), "-y", "höhe"),
    ):
        gone.mkdir()
        done = run(*arguments, cwd=gone, preexec_fn=lambda: os.rmdir(gone))
        _one_line(done, 1, "The working directory is not there any more")


@pytest.mark.parametrize("name", ["draws.nc", "draws.csv", "page.html"])
def test_disk_that_is_full(run: Run, tmp_path: Path, name: str) -> None:
    """A limit on the size of files says what a full disk says, at the same place."""
    if name.endswith(".nc"):
        pytest.importorskip("arviz_base")
    before = sorted(path.name for path in tmp_path.iterdir())
    (tmp_path / name).write_text("what was there")
    command = "report" if name.endswith("html") else "sample"
    done = run(
        command, "e.h5", "--out", name, "--force",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )  # fmt: skip
    assert done.returncode == 1
    assert f"{name} cannot be written: File too large." in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    assert (tmp_path / name).read_text() == "what was there"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, name])
