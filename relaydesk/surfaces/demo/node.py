"""One node of the demo: ``relaydesk serve`` as a process of its own, known by its control socket alone.

Blocking on purpose: it is a client beside a node, not a part of one. Nothing here reaches into the engine.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from relaydesk.config.paths import model_cache
from relaydesk.core.text import safe_text
from relaydesk.surfaces.control import light
from relaydesk.surfaces.demo.client import ANSWER_S, DemoFailedError, sentence

START_S: Final = 30.0
STOP_S: Final = 20.0


class Node:
    """A node whose files are all below ``folder``, which exists.

    ``settings`` are environment variables without ``RELAY_``. `begin`, then `wait`; whatever comes, `end`.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.socket = folder / "control.sock"
        self.log = folder / "node.log"
        self.process: subprocess.Popen[str] | None = None
        config = folder / "relaydesk.toml"
        config.touch()
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("RELAY_")
        }
        usual = {
            "STATE_DIR": str(self.state),
            "SOCKET": str(self.socket),
            "LISTEN": "127.0.0.1:0",
            "V1_TLS": "on",
            # Pulled once, kept for the next demo; everything else is gone when it ends.
            "MODEL_DIR": str(model_cache(os.environ)),
            "CONFIG": str(config),
            "DRAIN_TIMEOUT": "2s",
        }
        self.environment |= {f"RELAY_{name}": text for name, text in {**usual, **settings}.items()}
        self.environment["XDG_RUNTIME_DIR"] = str(folder)

    def begin(self) -> None:
        """Start the process; it needs a moment until it can be asked."""
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "relaydesk", "serve"],
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.environment,
                text=True,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Return once it listens. Raises `DemoFailedError` where it ends instead."""
        assert self.process is not None
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("listening on"):
                return
        self.process.wait(START_S)
        last = safe_text(self.log.read_text()[-600:].strip().rpartition("\n")[2], 400)
        raise DemoFailedError(f"the node did not start: {last}")

    def end_soon(self) -> None:
        """Tell it to end."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Return once it has ended, by force where it does not."""
        process = self.process
        if process is None:
            return
        self.end_soon()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    @property
    def pid(self) -> int:
        """The process."""
        assert self.process is not None
        return self.process.pid

    @property
    def url(self) -> str:
        """Where its clients connect."""
        return str(self.status()["listening"][0])

    def status(self) -> dict[str, Any]:
        """The control plane's status document."""
        return self._get("/status")

    def view(self, section: str) -> dict[str, Any]:
        """What a section shows now. Raises `DemoFailedError` where it shows nothing."""
        value: dict[str, Any] | None = self._get(f"/views/{section}").get("value")
        if value is None:
            raise DemoFailedError(f"the node's section {section} is empty")
        return value

    def command(self, name: str, /, **fields: Any) -> Any:
        """Carry out a command: its value, or the id of its job. Raises `DemoFailedError`."""
        body = json.dumps(fields).encode()
        _, raw = light.request(self.socket, "POST", f"/commands/{name}", body, timeout=ANSWER_S)
        outcome = json.loads(raw)
        if not outcome.get("ok"):
            raise DemoFailedError(f"{name} failed: {sentence(outcome.get('fault') or outcome.get('error'))}")
        return outcome["job"] if outcome.get("job") else outcome["value"]

    def follow(self, job: str, say: Callable[[str, int], None]) -> None:
        """Return when a job is done; ``say`` gets its note and percentage when either moved on.

        Raises `DemoFailedError` where the job or the node fails.
        """
        shown = ("", -1)
        for line in light.lines(self.socket, "/watch?topics=jobs"):
            if not line.strip():
                continue
            section = json.loads(line).get("jobs")
            views = section["value"]["jobs"] if section else []
            view = next((each for each in views if each["id"] == job), None)
            if view is None:
                continue
            percent = 100 * view.get("done", 0) // view["total"] if view.get("total") else 0
            step = (view.get("note", ""), percent // 25)
            if view["state"] == "running" and step != shown and step[0]:
                shown = step
                say(step[0], percent)
            if view["state"] == "done":
                return
            if view["state"] in ("failed", "cancelled"):
                raise DemoFailedError(sentence(view.get("fault")))
        raise DemoFailedError("the node went away while it worked")

    def _get(self, path: str) -> dict[str, Any]:
        status, body = light.request(self.socket, "GET", path, timeout=START_S)
        if status != 200:
            raise DemoFailedError(f"the control socket answered {status}")
        document: dict[str, Any] = json.loads(body)
        return document
