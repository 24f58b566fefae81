"""A real browser: headless Chromium on a page of this machine. Skips where there is none."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pytest

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")

# Runs each request in its turn and hands in what the page could see of the answers.
_PAGE: Final = """<!doctype html><title>test</title><script type="module">
const found = [];
for (const [url, options, names] of %s) {
  try {
    const reply = await fetch(url, options);
    const headers = Object.fromEntries(names.map(name => [name, reply.headers.get(name)]));
    found.push({status: reply.status, headers, body: await reply.text()});
  } catch (error) {
    found.push({failed: String(error)});
  }
}
await fetch("/found", {method: "POST", body: JSON.stringify(found)});
</script>"""


class Browser:
    """A web site of its own, at ``origin``, and Chromium to visit it. A context manager."""

    def __init__(self) -> None:
        if CHROMIUM is None:
            pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
        self.dir = Path(tempfile.mkdtemp(prefix="rd-browser-"))
        self._page = b""
        self._found: list[dict[str, Any]] | None = None
        self._done = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.origin = f"http://localhost:{self._server.server_address[1]}"

    def fetch(self, *requests: tuple[str, dict[str, Any], list[str]]) -> list[dict[str, Any]]:
        """Fetch from a page of this site: URL, options of ``fetch``, and the headers to look for.

        Each answer as the page saw it: ``status``, ``headers`` (null where it sees none) and ``body``, or
        ``failed``.
        """
        assert CHROMIUM is not None
        self._page = (_PAGE % json.dumps(requests).replace("<", "\\u003c")).encode()
        self._done.clear()
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        command += ["--no-first-run", f"--user-data-dir={self.dir / 'profile'}", f"{self.origin}/"]
        environ = {**os.environ, "HOME": str(self.dir)}
        with (self.dir / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environ, start_new_session=True)
        try:
            came = self._done.wait(60)
        finally:
            # Its children are in its session, and in nobody else's.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)
        log_text = (self.dir / "log").read_text(errors="replace")[-2000:]
        assert came and self._found is not None, f"the page did not come to its end:\n{log_text}"
        return self._found

    def page(self) -> bytes:
        """What a visitor gets."""
        return self._page

    def found(self, data: bytes) -> None:
        """What the page saw."""
        self._found = json.loads(data)
        self._done.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        shutil.rmtree(self.dir, ignore_errors=True)


def _handler(browser: Browser) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(browser.page() if self.path == "/" else b"")

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(b"")
            browser.found(data)

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
