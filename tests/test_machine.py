"""The tests do not depend on the machine that they run on, and the library not on its folders."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest


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


def test_no_seed_is_set_before_a_test(request: pytest.FixtureRequest) -> None:
    plugin = pytest.importorskip("pytest_randomly")
    before = random.getstate()
    plugin.pytest_runtest_call(request.node)
    assert random.getstate() == before
