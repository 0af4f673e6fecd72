"""A page in a real browser, driven through Chromium's DevTools protocol."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


class Page:
    """One open page; keeps what it logged and what it asked the network for."""

    def __init__(self, socket: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._socket, self._loop, self._count = socket, loop, 0
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events on the way are kept."""
        return self._loop.run_until_complete(self._send(method, params))

    async def _send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        await self._socket.write_message(
            json.dumps({"id": self._count, "method": method, "params": params})
        )
        while True:
            message = json.loads(await asyncio.wait_for(self._socket.read_message(), 60))
            if message.get("id") == self._count:
                assert "error" not in message, message
                return dict(message["result"])
            self.events.append(message)

    def evaluate(self, expression: str) -> Any:
        """Value of a JavaScript expression; promises are waited for."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + 60
        while self.evaluate("document.readyState") != "complete" or not self.evaluate(
            "location.protocol === 'file:'"
        ):
            assert time.monotonic() < end, "the page did not load"
            time.sleep(0.05)

    def frame(self) -> None:
        """Wait until the page has been painted twice."""
        self.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def troubles(self) -> list[dict[str, Any]]:
        """Exceptions, and whatever the page or the browser logged about it."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event for event in self.events if event["method"] in kinds]

    def requests(self) -> list[str]:
        """Addresses that were asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """An empty page of headless Chromium; skips where there is none."""
    program = next((found for name in _CHROMIUM if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    websocket = pytest.importorskip("tornado.websocket")
    profile = tmp_path / "profile"
    browser = subprocess.Popen(
        [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
            "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
            f"--user-data-dir={profile}", "about:blank",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    loop = asyncio.new_event_loop()
    try:
        port = _port(profile / "DevToolsActivePort", browser)
        with urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            targets = json.load(answer)
        address = next(t for t in targets if t["type"] == "page")["webSocketDebuggerUrl"]

        async def connect() -> Any:
            return await websocket.websocket_connect(address, max_message_size=100_000_000)

        socket = loop.run_until_complete(connect())
        yield Page(socket, loop)
        socket.close()
        loop.run_until_complete(asyncio.sleep(0.1))
    finally:
        browser.terminate()
        browser.wait(20)
        loop.close()


def _port(file: Path, browser: subprocess.Popen[bytes]) -> int:
    end = time.monotonic() + 60
    while True:
        if file.exists() and (text := file.read_text()).count("\n") >= 1:
            return int(text.split()[0])
        assert browser.poll() is None, "the browser ended"
        assert time.monotonic() < end, "the browser did not start"
        time.sleep(0.05)
