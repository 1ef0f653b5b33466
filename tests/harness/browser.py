"""A real headless Chromium, driven over WebDriver's own HTTP."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
    # What it would write down of each page for later.
    "--incognito",
)
_TEXTS = """
const found = [];
if (selector.startsWith("/")) {
  const all = document.evaluate(selector, document, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE);
  for (let at = 0; at < all.snapshotLength; at++) found.push(all.snapshotItem(at));
} else found.push(...document.querySelectorAll(selector));
// Of what is hidden `innerText` is its source, and a table's cells are apart by tabs.
return found.map(one => one.checkVisibility() ? one.innerText.replaceAll("\\t", " ").trim() : "");
"""
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing() -> str | None:
    """Say which program is not installed."""
    return next((name for name in ("chromium", "chromedriver") if shutil.which(name) is None), None)


class Browser:
    """One session; `problems` are what the console complained about."""

    def __init__(self, driver: str, profile: Path, *, width: int, height: int) -> None:
        self._driver = driver
        #: How `looks` was last asked to look; it stays so on the pages that follow.
        self._window: tuple[int, int, int, bool] | None = None
        flags = [*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        wanted = {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"args": flags, "binary": shutil.which("chromium")},
        }
        self._session = ""
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{answer['sessionId']}"

    def open(self, url: str) -> None:
        self._call("POST", "/url", {"url": url})

    def add_cookie(self, name: str, value: str) -> None:
        self._call("POST", "/cookie", {"cookie": {"name": name, "value": value}})

    @property
    def url(self) -> str:
        return str(self._call("GET", "/url"))

    def run(self, script: str) -> Any:
        return self._call("POST", "/execute/sync", {"script": script, "args": []})

    def run_async(self, script: str) -> Any:
        """Run what calls its last argument back, within half a minute."""
        return self._call("POST", "/execute/async", {"script": script, "args": []})

    def looks(self, *, width: int, height: int = 900, scale: int = 1, dark: bool = False) -> None:
        """Look through a window of so many CSS pixels; `scale` 2 is a zoom of 200 %."""
        wanted = (width, height, scale, dark)
        if self._window == wanted:
            return
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self._devtools("Emulation.setDeviceMetricsOverride", size)
        if self._window is None or self._window[3] != dark:
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            self._devtools("Emulation.setEmulatedMedia", {"features": [scheme]})
            # Colours on their way to others are nobody's.
            self.run("document.getAnimations().forEach(one => one instanceof CSSTransition && one.finish())")
        self._window = wanted

    def loses_its_line(self, *, is_lost: bool) -> None:
        """Let no request get through, or again every one."""
        self._devtools("Network.enable", {})
        plain = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self._devtools("Network.emulateNetworkConditions", {"offline": is_lost, **plain})

    def runs_on_every_page(self, script: str) -> None:
        """Have each page that is opened from now on run this first."""
        self._devtools("Page.addScriptToEvaluateOnNewDocument", {"source": script})

    def keeps_downloads(self, folder: Path) -> None:
        """Write files that a page offers into this folder, unasked."""
        folder.mkdir(parents=True, exist_ok=True)
        self._devtools("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})

    def runs_scripts(self, *, is_on: bool) -> None:
        """Have pages that are opened from now on run their scripts, or not."""
        self._devtools("Emulation.setScriptExecutionDisabled", {"value": not is_on})

    def press(self, keys: str) -> None:
        """Press keys wherever the focus is, one after another."""
        typed = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": typed}]})

    def forget(self) -> None:
        """Drop every cookie."""
        self._call("DELETE", "/cookie")

    def texts(self, selector: str) -> list[str]:
        """What people read there; a selector that begins with a slash is an XPath."""
        # In one question: the driver's own way to an element's text takes as long as a page.
        return list(self.run(f"const selector = {json.dumps(selector)};\n{_TEXTS}"))

    def click(self, selector: str) -> None:
        self._call("POST", f"/element/{self._only(selector)}/click", {})

    def follow(self, selector: str) -> None:
        """Click on what leads to another page, and wait until that page is there."""
        with self.leaving():
            self.click(selector)

    @contextlib.contextmanager
    def leaving(self) -> Iterator[None]:
        """Wait until another page is there, after what the block does."""
        self.run("window.isTheOldPage = true")
        yield
        deadline = time.monotonic() + 20
        while not self._is_a_new_page():
            assert time.monotonic() < deadline, f"from {self.url} that led to no other page"
            time.sleep(0.02)

    def type(self, selector: str, text: str) -> None:
        """Put the text in the place of what stood there."""
        found = self._only(selector)
        self._call("POST", f"/element/{found}/clear", {})
        self._call("POST", f"/element/{found}/value", {"text": text})

    def problems(self) -> list[str]:
        return [str(entry["message"]) for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        quickly = {"format": "png", "optimizeForSpeed": True}
        taken = self._devtools("Page.captureScreenshot", quickly)
        path.write_bytes(base64.b64decode(taken["data"]))

    def _devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def close(self) -> None:
        self._call("DELETE", "")

    def _is_a_new_page(self) -> bool:
        try:
            return bool(self.run("return !window.isTheOldPage && document.readyState === 'complete'"))
        except AssertionError:
            return False  # between the two there is no page to ask

    def _only(self, selector: str) -> str:
        """The one element that is to be seen."""
        found = self._find(selector)
        if len(found) > 1:
            found = [one for one in found if self._call("GET", f"/element/{one}/displayed")]
        assert len(found) == 1, f"{len(found)} of {selector} on {self.url}"
        return found[0]

    def _find(self, selector: str) -> list[str]:
        using = "xpath" if selector.startswith("/") else "css selector"
        found = self._call("POST", "/elements", {"using": using, "value": selector})
        return [item[ELEMENT] for item in found]

    def _call(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - our own driver on loopback
            f"{self._driver}{self._session}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error


@contextlib.contextmanager
def browser(profile: Path, *, width: int = 1280, height: int = 900) -> Iterator[Browser]:
    """Start a driver and a Chromium with a fresh profile; both end with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    session = None
    try:
        _wait_for(port, process)
        session = Browser(f"http://127.0.0.1:{port}", profile, width=width, height=height)
        yield session
    finally:
        if session is not None:
            session.close()
        process.terminate()
        process.wait(timeout=10)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert process.poll() is None and time.monotonic() < deadline, "chromedriver does not answer"  # noqa: PT018
            time.sleep(0.05)
        else:
            return
