"""One run for one checkpoint, wherever the density goes; what was refused leaves no file."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sampling.hurting import Floats, two_modes
from tests.sampling.test_checkpoint import assert_same

import paims
from paims.sampling import CheckpointError, SampleResult

BOX = paims.Uniform([-2.0, -2.0], [2.0, 2.0])


def sample(density: Any, path: Path | str, **options: Any) -> SampleResult:
    options = {"n_samples": 200, "random_state": 3, "progress": False, **options}
    return paims.sample(density, BOX, checkpoint=path, **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.h5"


class Inside:
    """Does something in the middle of a run, once."""

    def __init__(self, what: Any) -> None:
        self.what, self.calls = what, 0

    def __call__(self, x: Floats) -> Floats:
        self.calls += 1
        if self.calls == 5:
            self.what()
        return two_modes(x)


OTHER = """
import sys, paims
from tests.sampling.hurting import two_modes
box = paims.Uniform([-2.0, -2.0], [2.0, 2.0])
try:
    paims.sample(two_modes, box, 200, random_state=4, progress=False, checkpoint=sys.argv[1])
except paims.sampling.CheckpointError as error:
    print(error)
"""


class TestTwoRuns:
    def test_of_one_process(self, path: Path) -> None:
        def second() -> None:
            with pytest.raises(CheckpointError, match="in use by another run of this process"):
                sample(two_modes, path, random_state=4)
            with pytest.raises(CheckpointError, match="in use by another run of this process"):
                paims.resume(path, two_modes)

        density = Inside(second)
        whole = sample(density, path)
        assert density.calls > 5
        assert_same(whole, paims.resume(path, two_modes))
        assert [file.name for file in path.parent.iterdir()] == ["run.h5"]

    def test_of_two_processes(self, path: Path) -> None:
        said = []

        def second() -> None:
            command = [sys.executable, "-c", OTHER, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            said.append(done.stdout + done.stderr)

        whole = sample(Inside(second), path)
        assert f"in use by process {os.getpid()} on {socket.gethostname()}: two runs" in said[0]
        assert_same(whole, paims.resume(path, two_modes))

    def test_of_links_to_one_file(self, path: Path) -> None:
        other = path.with_name("other")
        other.symlink_to(path.parent, target_is_directory=True)

        def second() -> None:
            with pytest.raises(CheckpointError, match="in use"):
                sample(two_modes, other / path.name)

        sample(Inside(second), path)


KILLED = """
import os, signal, sys, time, paims
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from tests.sampling.hurting import two_modes
calls = 0
def density(x):
    global calls
    calls += 1
    if calls == 9:
        # Workers that were forked while the checkpoint was locked live on for a while.
        pool = ProcessPoolExecutor(1, mp_context=get_context("fork"))
        pool.submit(time.sleep, 60.0)
        os.kill(os.getpid(), signal.SIGKILL)
    return two_modes(x)
box = paims.Uniform([-2.0, -2.0], [2.0, 2.0])
paims.sample(density, box, 200, random_state=3, progress=False, checkpoint=sys.argv[1])
"""


def test_a_killed_run_leaves_no_lock(path: Path) -> None:
    # A group of their own, to end the worker with: it would wait for work for good.
    run = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], start_new_session=True)
    try:
        assert run.wait() == -signal.SIGKILL
        assert path.with_name(".run.h5.lock").exists()
        assert sample(two_modes, path).status.name == "converged"
    finally:
        os.killpg(run.pid, signal.SIGKILL)  # raises if there was no worker any more
    assert [file.name for file in path.parent.iterdir()] == ["run.h5"]


def test_a_run_that_fails_leaves_no_lock(path: Path) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(paims.sampling.DensityError):
        sample(Inside(fail), path)
    assert [file.name for file in path.parent.iterdir()] == ["run.h5"]
    sample(two_modes, path)


def test_a_worker_does_not_hold_the_lock(path: Path) -> None:
    """A pool of the user's own outlives the run."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        sample(two_modes, path, executor=pool)
        sample(two_modes, path)


def test_a_file_system_without_locks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.lockf", none)
    with pytest.warns(paims.SamplingWarning, match=r"cannot be locked \(No locks available\)"):
        assert sample(two_modes, path).status.name == "converged"


def test_the_file_stays_where_it_is_when_the_density_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    sample(Inside(partial(os.chdir, tmp_path / "elsewhere")), "run.h5")
    assert [file.name for file in tmp_path.glob("**/*.h5")] == ["run.h5"]
    assert (tmp_path / "run.h5").exists()
    assert paims.resume(tmp_path / "run.h5", two_modes).status.name == "converged"


def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(CheckpointError, match="working directory does not exist any more"):
        sample(two_modes, "run.h5")


class TestRefused:
    """What cannot start does not stand in the way of what can."""

    def test_too_few_points(self, path: Path) -> None:
        with pytest.raises(ValueError, match="density is zero at"):
            sample(lambda x: np.where(x[:, 0] > 1.99, 0.0, -np.inf), path)
        assert not path.exists()
        assert sample(two_modes, path, n_samples=300).status.name == "converged"

    def test_a_fit_with_a_nugget_that_is_too_small(self, path: Path) -> None:
        X = np.repeat(np.linspace(0.0, 1.0, 10), 2)[:, None]
        X[1::2] += 1e-9  # runs that no length-scale tells apart
        options = {"n_samples": 60, "random_state": 0, "prior": "reference"}
        y = np.sin(3.0 * X[:, 0]) + np.tile([0.0, 0.1], 10)
        with pytest.raises(ValueError, match="density is zero at"):
            paims.Emulator(nugget=0.0, **options).fit(X, y, checkpoint=path)
        assert not path.exists()

    def test_nothing_evaluated_yet(self, path: Path) -> None:
        def fail(x: Floats) -> Floats:
            raise ZeroDivisionError

        with pytest.raises(paims.sampling.DensityError):
            sample(fail, path)
        assert path.exists()
        assert sample(two_modes, path, random_state=4).status.name == "converged"

    def test_values_are_kept(self, path: Path) -> None:
        calls = 0

        def second(x: Floats) -> Floats:
            nonlocal calls
            calls += 1
            if calls > 1:
                raise ZeroDivisionError
            return two_modes(x)

        with pytest.raises(paims.sampling.DensityError):
            sample(second, path)
        with pytest.raises(CheckpointError, match="of another run"):
            sample(two_modes, path, random_state=4)
        assert path.exists()
