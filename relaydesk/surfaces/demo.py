"""The demo's steps: a node in a process of its own, used from outside as a client would use it.

Blocking on purpose: it is a client beside a node, not a part of one. Nothing here reaches into the engine.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self
from urllib.parse import urlsplit

import msgspec

from relaydesk.config.paths import model_cache
from relaydesk.core.text import safe_piece, safe_text
from relaydesk.surfaces.control import light
from relaydesk.surfaces.recording import Recording

REFERENCE: Final = "smollm2"
START_S: Final = 30.0
STOP_S: Final = 15.0
ANSWER_S: Final = 300.0
# Clients of a recording: more than the model has slots, so that some wait.
CROWD: Final = 7


class DemoFailedError(Exception):
    """A step of the demo did not work; the text says which and why."""


class Demo:
    """One temporary node. A context manager: the process and its directory are gone afterwards.

    ``say`` gets whole lines, ``write`` pieces of the answer as they come. ``memory_mb`` is what the node
    takes the machine to have for models; 0 is all there is.
    """

    def __init__(
        self, say: Callable[[str], None], write: Callable[[str], None], *, memory_mb: int = 0
    ) -> None:
        self._memory_mb = memory_mb
        self._say = say
        self._write = write
        self._dir = Path(tempfile.mkdtemp(prefix="relaydesk-demo-"))
        self._socket = self._dir / "control.sock"
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
        model = self._model_name()
        key = self._command("show-default-key", {})["key"]
        context = ssl.create_default_context(cafile=str(self._dir / "state" / "tls" / "ca.pem"))
        self._say(f"asking {model}: {question}\n")
        answer, usage, request_id = self._chat(url, context, key, model, question, tokens)
        record = self._command("show-request", {"id": request_id})
        self._say(
            f"\n\n{usage['completion_tokens']} tokens at {record['tokens_per_s']} tokens/s; load "
            f"{record['load_ms']} ms, first token {record['first_token_ms']} ms\nrequest {request_id}"
        )
        refused = self._wrong_key(url, context)
        self._say(f"a wrong key is refused with {refused}")
        worked = bool(answer.strip()) and usage["completion_tokens"] > 0 and refused == 401
        return {
            "ok": worked,
            "model": model,
            "tokens": usage["completion_tokens"],
            "prompt_tokens": usage["prompt_tokens"],
            "tokens_per_s": record["tokens_per_s"],
            "first_token_ms": record["first_token_ms"],
            "tls": url.startswith("https"),
            "wrong_key_status": refused,
            "answer": safe_text(answer, 2000),
        }

    def record(self, file: BinaryIO, mono: Callable[[], float], tokens: int) -> None:
        """Write the node's watch to a file from now until it ends, and give it something to do.

        Clients ask all at once, more than there are slots, and the model is registered once more with
        settings that take 3 GB: so the recording holds waiting and, with less memory, a model that does not
        fit.
        """
        self._recording = Recording(file, self._socket, mono).__enter__()
        self._pull()
        model, url = self._model_name(), str(self._status()["listening"][0])
        path = self._model_file(model)
        large = {"name": f"{model}-long", "path": path, "slots": 16, "ctx": 8192, "source": REFERENCE}
        self._command("add-model", {"spec": large})
        key = self._command("show-default-key", {})["key"]
        context = ssl.create_default_context(cafile=str(self._dir / "state" / "tls" / "ca.pem"))
        write, self._write = self._write, _nothing
        self._say(f"recording {CROWD} clients that ask {model} at once")
        try:
            with ThreadPoolExecutor(CROWD) as pool:
                waits = [
                    pool.submit(self._chat, url, context, key, model, f"Tell me about relays. {at}", tokens)
                    for at in range(CROWD)
                ]
                for wait in waits:
                    wait.result()
        finally:
            self._write = write
        for name in (model, large["name"]):
            self._recording.keep(f"fit-model {name}", self._command("fit-model", {"name": name}))

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
            "RELAY_SOCKET": str(self._socket),
            "RELAY_LISTEN": "127.0.0.1:0",
            "RELAY_V1_TLS": "on",
            "RELAY_MODEL_DIR": str(cache),
            "RELAY_CONFIG": str(self._empty_config()),
            "RELAY_LOG_LEVEL": "warning",
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
        status, body = light.request(self._socket, "GET", "/status", timeout=START_S)
        if status != 200:
            raise DemoFailedError(f"the control socket answered {status}")
        document: dict[str, Any] = json.loads(body)
        return document

    def _command(self, name: str, fields: dict[str, Any]) -> Any:
        body = json.dumps(fields).encode()
        _, raw = light.request(self._socket, "POST", f"/commands/{name}", body, timeout=ANSWER_S)
        outcome = json.loads(raw)
        if not outcome.get("ok"):
            raise DemoFailedError(f"{name} failed: {_sentence(outcome.get('fault') or outcome.get('error'))}")
        return outcome["job"] if outcome.get("job") else outcome["value"]

    def _pull(self) -> None:
        job = self._command("pull-model", {"reference": REFERENCE})
        shown = ("", -1)
        for line in light.lines(self._socket, "/watch?topics=jobs"):
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
                raise DemoFailedError(_sentence(view.get("fault")))
        raise DemoFailedError("the node went away while fetching")

    def _model_name(self) -> str:
        models = self._status()["models"]
        return str(models[0]["name"])

    def _chat(
        self, url: str, context: ssl.SSLContext, key: str, model: str, question: str, tokens: int
    ) -> tuple[str, dict[str, int], str]:
        request = {
            "model": model,
            "messages": [{"role": "user", "content": question}],
            "max_tokens": tokens,
            "temperature": 0.2,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        connection = _connect(url, context)
        try:
            connection.request(
                "POST",
                "/v1/chat/completions",
                json.dumps(request).encode(),
                {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
            )
            response = connection.getresponse()
            if response.status != 200:
                raise DemoFailedError(f"the chat was answered with {response.status}: {_said(response)}")
            answer, usage = "", None
            for chunk in _events(response):
                if "error" in chunk:
                    raise DemoFailedError(f"the chat failed: {chunk['error'].get('message')}")
                usage = chunk.get("usage") or usage
                for choice in chunk["choices"]:
                    piece = choice["delta"].get("content") or ""
                    answer += piece
                    self._write(safe_piece(piece))
            if usage is None:
                raise DemoFailedError("the answer ended without its usage")
            return answer, usage, response.headers["x-request-id"]
        finally:
            connection.close()

    def _wrong_key(self, url: str, context: ssl.SSLContext) -> int:
        connection = _connect(url, context)
        try:
            connection.request("GET", "/v1/models", headers={"Authorization": "Bearer wrong"})
            return connection.getresponse().status
        finally:
            connection.close()


def _nothing(_text: str) -> None:
    """For answers that nobody reads."""


def _connect(url: str, context: ssl.SSLContext) -> http.client.HTTPSConnection:
    parts = urlsplit(url)
    assert parts.hostname is not None
    return http.client.HTTPSConnection(parts.hostname, parts.port, context=context, timeout=ANSWER_S)


def _sentence(fault: Any) -> str:
    """A fault as the command line says it."""
    if not isinstance(fault, dict) or not fault.get("message"):
        return "the node did not say why"
    message, hint = safe_text(str(fault["message"]), 400), safe_text(str(fault.get("hint") or ""), 400)
    return f"{message.rstrip('.')}: {hint}" if hint else message


def _said(response: http.client.HTTPResponse) -> str:
    """What an answer that is no stream says was wrong."""
    try:
        return _sentence(json.loads(response.read()).get("error"))
    except (ValueError, AttributeError):
        return "the answer is no error of ours"


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The JSON of each ``data:`` line until ``[DONE]``."""
    for raw in response:
        line = raw.strip()
        if line == b"data: [DONE]":
            return
        if line.startswith(b"data: "):
            yield msgspec.json.decode(line[6:], type=dict[str, Any])
