"""The demo's steps: a node in a process of its own, used from outside as a client would use it.

Blocking on purpose: it is a client beside a node, not a part of one. Nothing here reaches into the engine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from relaydesk.config.paths import model_cache
from relaydesk.core.text import safe_text
from relaydesk.surfaces.control import light
from relaydesk.surfaces.demo_client import ANSWER_S, Client, DemoFailedError, sentence
from relaydesk.surfaces.guests import Guests
from relaydesk.surfaces.recording import Recording

REFERENCE: Final = "smollm2"
START_S: Final = 30.0
STOP_S: Final = 15.0
# Clients of a recording: more than the model has slots, so that some wait.
CROWD: Final = 7
# Keys of a recording, beside the default one; their limits are beyond what its clients ask.
KEYS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("ann", {"tokens_per_day": 8_000, "max_concurrency": 4, "requests_per_minute": 20}),
    ("nightly", {"tokens_per_day": 4_000, "max_concurrency": 4, "models": [REFERENCE]}),
)


class Demo:
    """One temporary node. A context manager: the process and its directory are gone afterwards.

    ``say`` gets whole lines, ``write`` pieces of the answer as they come. ``memory_mb`` is what the node
    takes the machine to have for models; 0 is all there is. ``log_level`` is the node's.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        write: Callable[[str], None],
        *,
        memory_mb: int = 0,
        log_level: str = "warning",
    ) -> None:
        self._memory_mb = memory_mb
        self._log_level = log_level
        self._say = say
        self._write = write
        self._dir = Path(tempfile.mkdtemp(prefix="relaydesk-demo-"))
        self.socket = self._dir / "control.sock"
        self._process: subprocess.Popen[str] | None = None
        self._recording: Recording | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def hub(self, question: str, tokens: int) -> dict[str, Any]:
        """Fetch the model, chat once over TLS with the hub's CA and key, and say what was seen."""
        status = self._status()
        url = str(status["listening"][0])
        self._say(f"node {status['node']} listens on {url}, CA {status['fingerprint'][:11]}…")
        self._pull()
        model, client = self._model_name(), self._client()
        self._say(f"asking {model}: {question}\n")
        chat = client.chat(model, question, tokens, self._write)
        usage, request_id = chat.usage, chat.request_id
        record = self._command("show-request", {"id": request_id})
        self._say(
            f"\n\n{usage['completion_tokens']} tokens at {record['tokens_per_s']} tokens/s; load "
            f"{record['load_ms']} ms, first token {record['first_token_ms']} ms\nrequest {request_id}"
        )
        refused = client.wrong_key()
        self._say(f"a wrong key is refused with {refused}")
        worked = bool(chat.text.strip()) and usage["completion_tokens"] > 0 and refused == 401
        return {
            "ok": worked,
            "model": model,
            "tokens": usage["completion_tokens"],
            "prompt_tokens": usage["prompt_tokens"],
            "tokens_per_s": record["tokens_per_s"],
            "first_token_ms": record["first_token_ms"],
            "tls": url.startswith("https"),
            "wrong_key_status": refused,
            "answer": safe_text(chat.text, 2000),
        }

    def guests(self) -> Guests:
        """Clients that keep asking the model that was fetched."""
        return Guests(self._client(), self._model_name())

    def record(self, file: BinaryIO, mono: Callable[[], float], tokens: int) -> None:
        """Write the node's watch to a file from now until it ends, and give it something to do.

        Clients ask all at once, more than there are slots, with keys of their own, and the model is
        registered once more with settings that take 3 GB: so the recording holds waiting, quotas and, with
        less memory, a model that does not fit.
        """
        self._recording = Recording(file, self.socket, mono).__enter__()
        self._pull()
        model, client = self._model_name(), self._client()
        path = self._model_file(model)
        large = {"name": f"{model}-long", "path": path, "slots": 16, "ctx": 8192, "source": REFERENCE}
        self._command("add-model", {"spec": large})
        self._say(f"recording {CROWD} clients that ask {model} at once")
        keys = {
            name: self._command("add-key", {"name": name, "settings": given})["key"] for name, given in KEYS
        }
        clients = (client, *(replace(client, key=key) for key in keys.values()))
        with ThreadPoolExecutor(CROWD) as pool:
            waits = [
                pool.submit(
                    clients[at % len(clients)].chat, model, f"Tell me about relays. {at}", tokens, _nothing
                )
                for at in range(CROWD)
            ]
            for wait in waits:
                wait.result()
        for name in (model, large["name"]):
            self._recording.keep(f"fit-model {name}", self._command("fit-model", {"name": name}))
        for name in ("default", *keys):
            self._recording.keep(f"show-usage {name}", self._command("show-usage", {"name": name}))
        self._recording.keep("show-audit", self._command("show-audit", {}))

    def _client(self) -> Client:
        """A client with the address, the key and the CA of the node."""
        context = ssl.create_default_context(cafile=str(self._dir / "state" / "tls" / "ca.pem"))
        url = str(self._status()["listening"][0])
        return Client(url, context, self._command("show-default-key", {})["key"])

    def _model_file(self, name: str) -> str:
        """Where the model's file is, as an edit that changes nothing says."""
        return str(self._command("set-model", {"name": name, "changes": {}})["spec"]["path"])

    def _start(self) -> None:
        # Pulled once, kept for the next demo; everything else is gone when it ends.
        cache = model_cache(os.environ)
        env = {name: value for name, value in os.environ.items() if not name.startswith("RELAY_")}
        if self._memory_mb:
            env["RELAY_HOST_MEMORY_MB"] = str(self._memory_mb)
        env |= {
            "RELAY_STATE_DIR": str(self._dir / "state"),
            "RELAY_SOCKET": str(self.socket),
            "RELAY_LISTEN": "127.0.0.1:0",
            "RELAY_V1_TLS": "on",
            "RELAY_MODEL_DIR": str(cache),
            "RELAY_CONFIG": str(self._empty_config()),
            "RELAY_LOG_LEVEL": self._log_level,
            "XDG_RUNTIME_DIR": str(self._dir),
        }
        self._log = (self._dir / "node.log").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "relaydesk", "serve"],
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=env,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("listening on"):
                return
        self._process.wait(START_S)
        self._log.seek(0)
        last = safe_text(self._log.read()[-600:].strip().rpartition("\n")[2], 400)
        raise DemoFailedError(f"the node did not start: {last}")

    def _empty_config(self) -> Path:
        path = self._dir / "relaydesk.toml"
        path.touch()
        return path

    def _end(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._recording is not None:
            self._recording.__exit__(None, None, None)
        if process is not None:
            if process.stdout is not None:
                process.stdout.close()
            self._log.close()
        shutil.rmtree(self._dir, ignore_errors=True)

    def _status(self) -> dict[str, Any]:
        status, body = light.request(self.socket, "GET", "/status", timeout=START_S)
        if status != 200:
            raise DemoFailedError(f"the control socket answered {status}")
        document: dict[str, Any] = json.loads(body)
        return document

    def _command(self, name: str, fields: dict[str, Any]) -> Any:
        body = json.dumps(fields).encode()
        _, raw = light.request(self.socket, "POST", f"/commands/{name}", body, timeout=ANSWER_S)
        outcome = json.loads(raw)
        if not outcome.get("ok"):
            raise DemoFailedError(f"{name} failed: {sentence(outcome.get('fault') or outcome.get('error'))}")
        return outcome["job"] if outcome.get("job") else outcome["value"]

    def _pull(self) -> None:
        job = self._command("pull-model", {"reference": REFERENCE})
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
                self._say(f"{REFERENCE}: {step[0]} {percent} %")
            if view["state"] == "done":
                return
            if view["state"] in ("failed", "cancelled"):
                raise DemoFailedError(sentence(view.get("fault")))
        raise DemoFailedError("the node went away while fetching")

    def _model_name(self) -> str:
        models = self._status()["models"]
        return str(models[0]["name"])


def _nothing(_text: str) -> None:
    """For answers that nobody reads."""
