"""Chromium driven over its DevTools protocol: pages opened at a size, asked, tapped, typed into and photographed.

The protocol (https://chromedevtools.github.io/devtools-protocol/) runs over two pipes, so no port is opened and nothing
but the standard library is needed. A page is opened without cache, extensions or a network of its own.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: The browser on PATH; None if there is none.
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
#: Widths in CSS pixels of a phone, a tablet, a laptop and a large screen; the first has a touch screen.
WIDTHS = (390, 768, 1280, 1920)
SCHEMES = ("light", "dark")
_HEIGHTS = {390: 844, 768: 1024, 1280: 800, 1920: 1080}
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
#: Chromium reads the protocol from file 3 and writes it to file 4; its other output says nothing that is needed here.
_ON_PIPES = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null'
#: Key → its code for Windows, which decides what a page does on it, and its text.
_KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " "), "Escape": (27, ""), "ArrowDown": (40, "")}
_PATIENCE = 60.0
_CHECKS = Path(__file__).with_name("checks.js")


class Page:
    """The one tab of a browser."""

    def __init__(self, connection: _Connection, version: str) -> None:
        self._connection = connection
        self.version = version
        self._width = 0
        self._page = ""

    def open(self, address: str, *, width: int = 1280, scheme: str = "light", height: int | None = None) -> None:
        """Open an address in a window of a width, with a touch screen if it is a phone's, and wait until it is there.

        Args:
            width: and `height`, in CSS pixels.
            scheme: the colours that the user prefers, "light" or "dark".
        """
        phone = width < 500
        self._width = width
        tall = height or _HEIGHTS.get(width, 900)
        self._do(
            "Emulation.setDeviceMetricsOverride", width=width, height=tall, deviceScaleFactor=1, mobile=width <= 768
        )
        self._do("Emulation.setTouchEmulationEnabled", enabled=phone)
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self._do("Emulation.setEmulatedMedia", features=features)
        self._connection.forget("Page.loadEventFired")
        # Another address with the same path and only another fragment would not load again.
        page = address.partition("#")[0]
        for each in ("about:blank", address) if page == self._page else (address,):
            self._do("Page.navigate", url=each)
            self._connection.wait("Page.loadEventFired")
        self._page = page

    def ask(self, script: str) -> Any:
        """The value of an expression, or what its promise brings.

        Raises:
            RuntimeError: the script failed.
        """
        said = self._do("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in said:
            details = said["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return said["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        code, text = _KEYS[key]
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        down = "keyDown" if text else "rawKeyDown"
        self._do("Input.dispatchKeyEvent", type=down, **common, **({"text": text} if text else {}))
        self._do("Input.dispatchKeyEvent", type="keyUp", **common)

    def write(self, text: str) -> None:
        """Type a text where the focus is."""
        self._do("Input.insertText", text=text)

    def tap(self, selector: str) -> None:
        """Tap the middle of an element, which is scrolled into view first."""
        place = (
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center', "
            "inline: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect(); "
            "return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()"
        )
        point = self.ask(place)
        self._do("Input.dispatchTouchEvent", type="touchStart", touchPoints=[point])
        self._do("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        # A tap becomes a click in a later task of the page.
        self.ask("new Promise(done => setTimeout(done, 50))")

    def photograph(self, *, whole: bool = False, scale: float = 1.0, most: int = 6000, form: str = "png") -> bytes:
        """A picture of the window, or of the whole page.

        Args:
            scale: the size of the picture, 1 for a pixel of the picture for each of the page.
            most: the largest height of a whole page, in CSS pixels.
            form: "png" or "webp", which loses a little.
        """
        size = self.ask("({width: innerWidth, height: innerHeight, whole: document.documentElement.scrollHeight})")
        height = min(max(size["whole"], size["height"]), most) if whole else size["height"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height, "scale": scale}
        if not whole:
            clip |= {"x": self.ask("scrollX"), "y": self.ask("scrollY")}
        quality = {"quality": 60} if form == "webp" else {}
        data = self._do("Page.captureScreenshot", format=form, clip=clip, captureBeyondViewport=True, **quality)["data"]
        return base64.b64decode(data)

    def names(self) -> list[tuple[str, str]]:
        """Role and name of everything that a screen reader meets, in its order."""
        self._do("Accessibility.enable")
        nodes = self._do("Accessibility.getFullAXTree")["nodes"]
        self._do("Accessibility.disable")
        told = [node for node in nodes if not node.get("ignored")]
        return [(node.get("role", {}).get("value", ""), node.get("name", {}).get("value", "")) for node in told]

    def findings(self) -> list[str]:
        """What `checks.js` finds wrong with the page, and whether it is wider than its window."""
        # A phone makes its window wider for a page that does not fit, so what it says of itself is no measure.
        wide = self.ask("document.documentElement.scrollWidth")
        found: list[str] = self.ask(_CHECKS.read_text(encoding="utf-8"))
        return found if wide <= self._width else [f"{wide} px wide in a window of {self._width}", *found]

    def obey_no_policy(self) -> None:
        """Let scripts of this program run beside a policy of the pages that are opened from now on."""
        self._do("Page.setBypassCSP", enabled=True)

    def _do(self, method: str, **values: Any) -> Any:
        return self._connection.call(method, **values)


class _Connection:
    """Messages to and from a browser, one tab's."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process of the browser needs pipes")
        self._write, self._read = process.stdin, process.stdout.fileno()
        self._rest, self._number, self._session = b"", 0, ""
        self._events: list[dict[str, Any]] = []

    def attach(self) -> None:
        """Open the tab."""
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        self.call("Page.enable")
        # A page that remembers the colours it was first shown in would keep them in the next window too.
        self.call("Page.addScriptToEvaluateOnNewDocument", source="try { localStorage.clear() } catch { }")

    def call(self, method: str, **values: Any) -> Any:
        """What the browser answers to a command.

        Raises:
            RuntimeError: it refuses it.
            TimeoutError: it does not answer.
        """
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": values}
        if self._session:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        self._write.flush()
        until = time.monotonic() + _PATIENCE
        while True:
            answer = self._next(until, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._events.append(answer)

    def forget(self, event: str) -> None:
        """Drop what has been heard of an event."""
        self._events = [heard for heard in self._events if heard.get("method") != event]

    def wait(self, event: str) -> None:
        """Wait for an event, and drop what was heard before it."""
        until = time.monotonic() + _PATIENCE
        while not any(heard.get("method") == event for heard in self._events):
            self._events.append(self._next(until, event))
        self._events.clear()

    def _next(self, until: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self._read, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError(f"the browser did not answer to {what}")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@contextmanager
def opened_browser(program: str | None = BROWSER) -> Iterator[Page]:
    """A browser with a new profile, for as long as the context lasts; its one tab.

    Raises:
        RuntimeError: there is no browser.
    """
    if program is None:
        raise RuntimeError("there is no Chromium on PATH; install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        words = [program, *_FLAGS, f"--user-data-dir={Path(folder) / 'profile'}", "about:blank"]
        process = subprocess.Popen(
            ["/bin/sh", "-c", _ON_PIPES, "sh", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            connection = _Connection(process)
            version = str(connection.call("Browser.getVersion")["product"])
            connection.attach()
            yield Page(connection, version)
        finally:
            with_its_children = os.getpgid(process.pid)
            os.killpg(with_its_children, signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
