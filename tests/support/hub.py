"""A real hub for tests: ``relaydesk serve`` as a process of its own, used only from outside."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import psutil

from relaydesk.core.codec import convert
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.control import light


class Hub:
    """One running hub with its own state directory. A context manager; afterwards nothing is left.

    Keyword arguments are settings by their environment names without ``RELAY_``; ``prefix`` are words before
    the command, such as ``ip netns exec NAME``.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        tls: bool = False,
        metrics: bool = False,
        runtime_dir: Path | None = None,
        prefix: Sequence[str] = (),
        **settings: str,
    ) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="rd-") if directory is None else None
        self.dir = Path(self._own.name) if self._own is not None else directory or Path()
        self.socket = self.dir / "c.sock"
        self.state = self.dir / "state"
        self._prefix = tuple(prefix)
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("RELAY")}
        self._env |= {
            "RELAY_STATE_DIR": str(self.state),
            "RELAY_SOCKET": str(self.socket),
            "RELAY_LISTEN": "127.0.0.1:0",
            "RELAY_V1_TLS": "on" if tls else "off",
            "RELAY_THREADS": "1",
            "XDG_RUNTIME_DIR": str(runtime_dir or self.dir),
            "XDG_CONFIG_HOME": str(self.dir / "config"),
        }
        self._env |= {f"RELAY_{name.upper()}": value for name, value in settings.items()}
        if metrics:
            self._env["RELAYDESK_TEST_METRICS"] = "1"
        self.log = self.dir / "log"
        self.printed: list[str] = []
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        self.key = ""

    def start(self) -> Self:
        """Start it and wait until it listens."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*self._prefix, sys.executable, "-m", "relaydesk", "serve"],
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._env,
                text=True,
                start_new_session=True,
            )
        self.printed = []
        self._reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reader.start()
        deadline = time.monotonic() + 30
        while not (urls := [line.split()[2] for line in self.printed if line.startswith("listening on ")]):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the hub did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.01)
        self.url = urls[0]
        self.key = self.command("show-default-key")["key"]
        return self

    def stop(self, number: signal.Signals = signal.SIGTERM, timeout: float = 40.0) -> int:
        """Signal it and wait for its end; the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout)
        self._reader.join(5)
        return code

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self.printed.append(line.rstrip("\n"))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.process is not None and self.process.poll() is None:
                self.stop()
        finally:
            if self.process is not None and self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            if self._own is not None:
                self._own.cleanup()

    @property
    def port(self) -> int:
        """The public port."""
        return int(self.url.rpartition(":")[2])

    @property
    def ca(self) -> Path:
        """The CA file of a hub with TLS."""
        return self.state / "tls" / "ca.pem"

    def tls_context(self) -> ssl.SSLContext:
        """A client's context that trusts this hub's CA only."""
        return ssl.create_default_context(cafile=str(self.ca))

    def headers(self, **more: str) -> dict[str, str]:
        """The key, and what else is given."""
        return {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **more}

    def command(self, command: str, /, **fields: Any) -> Any:
        """Carry out a command over the control socket; its value, or its job's id."""
        _, raw = light.request(
            self.socket, "POST", f"/commands/{command}", json.dumps(fields).encode(), timeout=120
        )
        outcome = json.loads(raw)
        assert outcome.get("ok"), outcome
        return outcome.get("job") or outcome.get("value")

    def refused(self, command: str, /, **fields: Any) -> dict[str, Any]:
        """Carry out a command that must fail; its fault."""
        _, raw = light.request(
            self.socket, "POST", f"/commands/{command}", json.dumps(fields).encode(), timeout=120
        )
        outcome = json.loads(raw)
        assert not outcome.get("ok"), outcome
        fault: dict[str, Any] = outcome.get("fault") or outcome["error"]
        return fault

    def add(self, path: Path, name: str = "tiny", **spec: Any) -> None:
        """Register a model file in place."""
        fields = {"name": name, "path": str(path), "ctx": 1024, "slots": 4, **spec}
        self.command("add-model", spec=fields)

    def load(self, name: str = "tiny", timeout: float = 60.0) -> None:
        """Load a model and wait until it is warm."""
        self.command("load-model", name=name)
        self.wait_for(
            lambda view: any(m.name == name and m.state == "warm" for m in view_models(view)), timeout
        )

    def status(self) -> dict[str, Any]:
        """The control plane's status document."""
        status, body = light.request(self.socket, "GET", "/status", timeout=30)
        assert status == 200, body
        document: dict[str, Any] = json.loads(body)
        return document

    def view(self) -> NodeView:
        """Everything the node shows."""
        status, body = light.request(self.socket, "GET", "/views", timeout=30)
        assert status == 200, body
        return convert(msgspec.json.decode(body), NodeView)

    def wait_for(self, condition: Any, timeout: float = 20.0) -> NodeView:
        """Poll the view until ``condition`` holds for it."""
        deadline = time.monotonic() + timeout
        while True:
            view = self.view()
            if condition(view):
                return view
            assert time.monotonic() < deadline, (
                f"not within {timeout} s; log:\n{self.log.read_text()[-2000:]}"
            )
            time.sleep(0.05)

    def engines(self) -> list[psutil.Process]:
        """Processes of engines that this hub started and that are alive."""
        assert self.process is not None
        return [
            child
            for child in psutil.Process(self.process.pid).children(recursive=True)
            if child.is_running() and child.status() != psutil.STATUS_ZOMBIE
        ]


def view_models(view: NodeView) -> Any:
    """The models of a view."""
    assert view.models.value is not None
    return view.models.value.models


def chat_body(text: str = "Say hello.", **fields: Any) -> dict[str, Any]:
    """A small deterministic chat request."""
    return {
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 8,
        "temperature": 0,
        "seed": 1,
        **fields,
    }


def as_mapping(value: Any) -> Mapping[str, Any]:
    """For typed access to decoded JSON."""
    assert isinstance(value, dict)
    return value
