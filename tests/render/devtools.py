"""A page in headless Chromium, driven through the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def executable() -> str:
    """Chromium's path; skips without it, but fails in CI."""
    found = os.environ.get("CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is needed for the browser tests")
        pytest.skip("no Chromium here")
    return found


class Page:
    """One tab; keeps what its console says and what it asks the network for."""

    def __init__(self, url: str) -> None:
        import websocket

        self.socket = websocket.create_connection(url, timeout=60)
        self.number = 0
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command; events that come in between are kept."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.number:
                assert "error" not in message, message
                return dict(message["result"])
            self.events.append(message)

    def open(self, file: Path, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Loads a file and waits until it is complete."""
        self.events.clear()
        mobile = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=file.as_uri())
        for _ in range(600):
            ready = self.evaluate("document.readyState + ' ' + location.protocol")
            if ready == "complete file:":
                return
            time.sleep(0.05)
        raise AssertionError("the page did not load")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def key(self, key: str, text: str = "") -> None:
        """Presses and releases a key."""
        codes = {"Tab": 9, "Escape": 27, "Enter": 13, " ": 32, "-": 189, ".": 190, "/": 191}
        common = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Types text into what has the focus."""
        for char in text:
            self.key(char, char)

    def requests(self) -> list[str]:
        """Addresses asked for since the page was opened, but for the page itself and what it carries inside.

        What the page's own policy held back never left; the browser reports it as asked for and stopped.
        """
        self.evaluate("1")
        told = [event["params"] for event in self.events if event["method"].startswith("Network.")]
        stopped = {params["requestId"] for params in told if params.get("blockedReason") == "csp"}
        sent = [params for params in told if "request" in params and params["requestId"] not in stopped]
        return [p["request"]["url"] for p in sent if not p["request"]["url"].startswith("data:")][1:]

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, thrown exceptions."""
        self.evaluate("1")
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [json.dumps(event["params"]) for event in self.events if event["method"] in kinds]

    def screenshot(self, file: Path, full: bool = True) -> None:
        """A PNG of the page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A page of a fresh Chromium that keeps its data in ``profile``."""
    process = subprocess.Popen(
        [executable(), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port_file = profile / "DevToolsActivePort"
        for _ in range(600):
            if port_file.exists() and "\n" in port_file.read_text():
                break
            assert process.poll() is None, "Chromium ended at once"
            time.sleep(0.1)
        port = port_file.read_text().splitlines()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=60) as answer:
            tabs = json.load(answer)
        page = Page(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
        try:
            yield page
        finally:
            page.socket.close()
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
