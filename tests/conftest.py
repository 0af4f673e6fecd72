"""A machine without a history for every test, and fixtures that several test folders share."""

from __future__ import annotations

import atexit
import ipaddress
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Whatever these say on a developer's machine must not decide what the tests see.
_FOREIGN = ("PAIMS_", "NUMBA_", "MPL", "DASK_", "XDG_", "PYTHONWARNINGS", "COLUMNS", "LINES")
_FOLDERS = {
    "HOME": "home",
    "XDG_CACHE_HOME": "home/.cache",
    "XDG_CONFIG_HOME": "home/.config",
    "XDG_DATA_HOME": "home/.local/share",
    "XDG_STATE_HOME": "home/.local/state",
    "MPLCONFIGDIR": "matplotlib",
    "NUMBA_CACHE_DIR": "numba",
    "HYPOTHESIS_STORAGE_DIRECTORY": "hypothesis",
    "TMPDIR": "tmp",
}
_OWN_MACHINE = "PAIMS_TESTS_MACHINE"


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests folders of their own, before anything that reads them is imported.

    The processes of pytest-xdist, and the programs that tests start, inherit them.
    """
    # A seed set before every test would hide a function that draws from the global generator.
    config.option.randomly_reset_seed = False
    if hasattr(config, "workerinput"):
        return
    root = Path(tempfile.mkdtemp(prefix="paims-"))
    root.chmod(0o755)  # Some tests run programs as another user.
    # What a failed test wrote stays where pytest keeps it.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
        del os.environ[name]
    for name, folder in _FOLDERS.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        os.environ[name] = str(root / folder)
    tempfile.tempdir = None  # Read TMPDIR anew.
    # Nobody listens there: programs that tests start have no network either.
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        os.environ[name] = "http://127.0.0.1:9"
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "localhost,127.0.0.1"
    os.environ[_OWN_MACHINE] = str(root)
    # The first that is registered is the last that is called: after multiprocessing, which removes
    # folders of its own in there.
    atexit.register(_remove, root, os.getpid())


def _remove(root: Path, owner: int) -> None:
    """Remove the folders, unless this is a fork of the process that made them."""
    if os.getpid() == owner:
        shutil.rmtree(root, ignore_errors=True)


def _is_loopback(host: Any) -> bool:
    if host in (None, "", "localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Refuse every connection that leaves this machine.

    The error is none that a library could take for a network that is down and pass over.
    """

    def refuse_unless_loopback(host: Any) -> None:
        if not _is_loopback(host):
            raise RuntimeError(f"The tests have no network; something asked for {host!r}.")

    def connect(self: socket.socket, address: Any) -> None:
        # A connected UDP socket has sent nothing: Dask learns its own address from one.
        if self.family in (socket.AF_INET, socket.AF_INET6) and self.type != socket.SOCK_DGRAM:
            refuse_unless_loopback(address[0])
        real_connect(self, address)

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_unless_loopback(host)
        return real_getaddrinfo(host, *args, **kwargs)

    real_connect, real_getaddrinfo = socket.socket.connect, socket.getaddrinfo
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect)
        patch.setattr(socket, "getaddrinfo", getaddrinfo)
        yield


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Folder of reference values and data beside the repository; its tests skip without it."""
    path = Path(__file__).resolve().parents[2] / "shared"
    if not path.is_dir():
        pytest.skip("the folder ../shared with reference values and data is not here")
    return path
