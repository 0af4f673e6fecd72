"""The command line in a real (pseudo) terminal: progress, Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from paims import simulators
from paims.sampling._checkpoint import read_checkpoint


class Terminal:
    """A program on a pseudo-terminal, and what it has shown."""

    def __init__(
        self, arguments: list[str], folder: Path, program: Sequence[str] = ("-m", "paims")
    ) -> None:
        self._master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
        self.process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment,
            start_new_session=True,
            preexec_fn=_own_terminal,  # noqa: PLW1509 - one call, before any thread of ours
        )  # fmt: skip
        os.close(slave)
        self.shown = ""

    def wait_for(self, found: Callable[[str], object], seconds: float = 240.0) -> None:
        """Read until what was shown satisfies a condition, or the program ends."""
        end = time.monotonic() + seconds
        while not found(self.shown):
            assert time.monotonic() < end, self.shown
            if not self._read() and self.process.poll() is not None:
                assert found(self.shown), self.shown
                return

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 0.2)
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)

    def type(self, text: bytes) -> None:
        """Type on the keyboard."""
        os.write(self._master, text)

    def end(self) -> int:
        """Exit code, when the program has ended."""
        while self.process.poll() is None or self._read():
            self._read()
        return self.process.returncode

    def close(self) -> None:
        """End the program if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)


def _own_terminal() -> None:
    """Make the pseudo-terminal the one whose Ctrl-C reaches the program."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def big_runs(tmp_path: Path) -> Path:
    """Runs whose fit takes many seconds."""
    simulator = simulators.borehole
    X = simulator.design(120, 0)
    path = tmp_path / "runs.csv"
    header = ",".join([*simulator.input_names, "flow"])
    values = np.column_stack([X, simulator(X)]).tolist()
    path.write_text("\n".join([header, *(",".join(map(repr, row)) for row in values)]) + "\n")
    return path


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_progress_and_result_in_a_terminal(tmp_path: Path) -> None:
    terminal = Terminal(["demo", "--out", "tried"], tmp_path)
    try:
        terminal.wait_for(lambda text: "The report is" in text)
        assert terminal.end() == 0
    finally:
        terminal.close()
    shown = _plain(terminal.shown)
    assert re.search(r"level \d+: beta", shown)
    assert "$ paims fit tried/runs.csv --output branin" in shown
    assert (tmp_path / "tried" / "report.html").exists()


@pytest.mark.parametrize("how", ["ctrl-c", "sigterm"])
def test_an_interrupted_fit_goes_on(big_runs: Path, tmp_path: Path, how: str) -> None:
    command = ["fit", "runs.csv", "--output", "flow"]
    terminal = Terminal(command, tmp_path)
    try:
        terminal.wait_for(lambda text: re.search(r"level [1-9]\d*: beta", _plain(text)))
        if how == "ctrl-c":
            terminal.type(b"\x03")
        else:
            terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 130
    finally:
        terminal.close()
    shown = _plain(terminal.shown)
    assert "paims: interrupted. The fit was not finished; what it has is in" in shown
    assert "Traceback" not in shown
    assert f"paims {' '.join(command)}" in shown.split("To go on:")[1]
    # nothing half written, and all that is needed to go on
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["emulator.checkpoint.h5", "runs.csv"]
    saved = read_checkpoint(tmp_path / "emulator.checkpoint.h5")
    assert saved.progress.infos


@pytest.mark.parametrize("answer", ["n", "y"])
def test_a_fit_of_hours_asks(tmp_path: Path, answer: str) -> None:
    """In a terminal, where an evaluation seems to take nine seconds."""
    X = simulators.branin.design(14, 0)
    rows = np.column_stack([X, simulators.branin(X)]).tolist()
    (tmp_path / "runs.csv").write_text(
        "\n".join(["a,b,y", *(",".join(map(repr, row)) for row in rows)])
    )
    (tmp_path / "slow.py").write_text(
        "import sys\nfrom paims.emulator import _forecast\n"
        "_forecast.seconds_per_evaluation = lambda *a: 9.0\nfrom paims.cli import main\nmain()\n"
    )
    command = ["fit", "runs.csv", "-y", "y", "--samples", "300", "--kernel", "matern52"]
    terminal = Terminal(command, tmp_path, program=[str(tmp_path / "slow.py")])
    try:
        terminal.wait_for(lambda text: "Start it all the same" in text)
        terminal.type(f"{answer}\n".encode())
        assert terminal.end() == (0 if answer == "y" else 1)
    finally:
        terminal.close()
    assert "The fit will take about 11 hours" in " ".join(_plain(terminal.shown).split())
    assert (tmp_path / "emulator.h5").exists() == (answer == "y")
