"""The tests do not depend on the machine that they run on, and the library not on its folders."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import paims


def test_folders_are_of_these_tests() -> None:
    import matplotlib

    own = Path(os.environ["PAIMS_TESTS_MACHINE"])
    for path in (Path.home(), tempfile.gettempdir(), matplotlib.get_configdir()):
        assert Path(path).is_relative_to(own)
    code = "from pathlib import Path; import numba; print(Path.home(), numba.config.CACHE_DIR)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(Path(path).is_relative_to(own) for path in done.stdout.split())


def test_network_is_refused() -> None:
    with socket.socket() as outside, pytest.raises(RuntimeError, match="no network"):
        outside.connect(("192.0.2.1", 80))  # An address that documentation may use.
    with pytest.raises(RuntimeError, match="no network"):
        socket.create_connection(("example.org", 80), timeout=1)


def test_this_machine_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()


# How root starts a program that has to keep to permissions: as a user without rights or, where
# that one may not even read this Python, as root without its privileges.
_WITHOUT_RIGHTS = (
    ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
    ["setpriv", "--bounding-set=-all", "--inh-caps=-all"],
)


@pytest.fixture
def read_only_machine() -> Iterator[tuple[Path, list[str], dict[str, str]]]:
    """A copy of the package and a home that cannot be written; a Python, and its environment."""
    machine = Path(tempfile.mkdtemp())
    shutil.copytree(
        Path(paims.__file__).parent,
        machine / "site" / "paims",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (machine / "home").mkdir()
    folders = [machine, *(path for path in machine.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    kept = ("PATH", "LD_LIBRARY_PATH", "LANG")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {"HOME": str(machine / "home"), "PYTHONPATH": str(machine / "site")}
    # Ends well if it can be started and cannot write.
    tried = f"import os, sys; sys.exit(os.access({str(machine / 'home')!r}, os.W_OK))"
    try:
        for before in _WITHOUT_RIGHTS if os.getuid() == 0 else ([],):
            python = [*before, sys.executable]
            with suppress(OSError):
                run = subprocess.run([*python, "-c", tried], capture_output=True, check=False)
                if run.returncode == 0:
                    yield machine, python, environment
                    return
        pytest.skip("no program can be started here that may not write everything")
    finally:
        for folder in folders:
            folder.chmod(0o755)
        shutil.rmtree(machine)


@pytest.mark.parametrize("cache", [None, "home"])
def test_neither_package_nor_home_can_be_written(
    read_only_machine: tuple[Path, list[str], dict[str, str]], cache: str | None
) -> None:
    machine, python, environment = read_only_machine
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(machine / cache)
    code = (
        "import numpy as np, paims\n"
        "reference = paims.Normal([0.0], [9.0])\n"
        "result = paims.sample(lambda x: -0.5 * x[:, 0] ** 2, reference, random_state=0)\n"
        "print(paims.__file__, result.log_evidence)"
    )
    done = subprocess.run(
        [*python, "-c", code],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    place, log_evidence = done.stdout.split()
    assert Path(place).is_relative_to(machine)
    assert float(log_evidence) == pytest.approx(0.5 * np.log(2 * np.pi), abs=0.05)


def test_disk_of_the_compiler_is_full(tmp_path: Path) -> None:
    """Compiled code that cannot be kept is used all the same."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "import paims.sampling._compiled as eager, numpy as np\n"
        "from paims._jit import njit\n"
        "lazy = njit(cache=True)(eager.exp_nonpositive.py_func)\n"
        "print(eager.exp_nonpositive(-1.0), lazy(-1.0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [float(value) for value in done.stdout.split()] == pytest.approx([np.exp(-1.0)] * 2)


def test_compiler_switched_off_says_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import paims; paims.sample"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1].startswith("ImportError: paims needs Numba's compiler")


def test_no_seed_is_set_before_a_test(request: pytest.FixtureRequest) -> None:
    plugin = pytest.importorskip("pytest_randomly")
    before = random.getstate()
    plugin.pytest_runtest_call(request.node)
    assert random.getstate() == before


def test_the_day_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Emulator, its file and its page are the same in the past and beyond 2038."""
    import time

    X = np.random.default_rng(0).random((9, 1))
    seen = []
    for clock in (0.0, 1.7e9, 4.2e9):
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        settings = {"kernel": "squared_exponential", "n_samples": 200, "random_state": 0}
        emulator = paims.Emulator(**settings).fit(X, np.sin(5.0 * X[:, 0]))
        emulator.save(tmp_path / "emulator.h5")
        page = paims.report.render_report(emulator)
        seen.append(((tmp_path / "emulator.h5").read_bytes(), page))
    assert seen[0] == seen[1] == seen[2]


def test_nothing_asks_for_the_date() -> None:
    asked = ("time.time(", "datetime.now", "date.today", "localtime", "gmtime", "strftime")
    found = [
        (path.name, word)
        for path in Path(paims.__file__).parent.rglob("*.py")
        for word in asked
        if word in path.read_text(encoding="utf-8")
    ]
    assert found == []
