"""The check of an edge against real nginx in front of a real node, as an operator uses it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.front import NGINX
from tests.support.operators import Operator, Operators, Plan
from tests.support.pebble import free_ports

pytestmark = pytest.mark.skipif(NGINX is None, reason="needs nginx")

CONFIG: Final = """
daemon off; master_process off; pid {dir}/pid; error_log {dir}/error.log warn;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://{upstream};
      {lines}
    }}
  }}
}}
"""
GOOD: Final = ("client_max_body_size 13m;",)
BLOCK: Final = re.compile(r"^```nginx (?P<what>remove|add)\n(?P<text>.*?)\n```$", re.DOTALL | re.MULTILINE)


class Nginx:
    """nginx with these lines beside its ``proxy_pass``."""

    def __init__(self, upstream: str, port: int) -> None:
        self._dir = tempfile.TemporaryDirectory(prefix="rd-edge-")
        self._upstream, self._port = upstream, port
        self._process: subprocess.Popen[bytes] | None = None
        self.lines: tuple[str, ...] = ()

    def set(self, *lines: str) -> None:
        """Run with these lines from now on."""
        self.stop()
        self.lines = lines
        folder = Path(self._dir.name)
        file = folder / "nginx.conf"
        text = CONFIG.format(
            dir=folder, port=self._port, upstream=self._upstream, lines="\n      ".join(lines)
        )
        file.write_text(text)
        assert NGINX is not None
        self._process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(file)])
        deadline = time.monotonic() + 10
        while not (folder / "pid").exists():
            assert self._process.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def mend(self, remedy: str) -> None:
        """Change the configuration by what was printed, and by nothing else."""
        found = [(block["what"], block["text"].splitlines()) for block in BLOCK.finditer(remedy)]
        assert found, remedy
        gone = tuple(line for what, text in found if what == "remove" for line in text)
        kept = [line for line in self.lines if not line.startswith(gone)] if gone else list(self.lines)
        added = [line for what, text in found if what == "add" for line in text]
        self.set(*kept, *added)

    def lose_bodies(self) -> None:
        """Take away the directory in which it keeps bodies that it has no memory for."""
        shutil.rmtree(Path(self._dir.name) / "body")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            (Path(self._dir.name) / "pid").unlink(missing_ok=True)
            self._process = None


@dataclass
class Lab:
    """``node`` is behind nginx, at ``url``."""

    node: Operator
    front: Nginx
    url: str

    def check(self, *words: str) -> tuple[dict[str, Any], str]:
        """``check-hop --json`` on the node's machine, and what it wrote meanwhile."""
        done = self.node.cli("check-hop", self.url, "--json", *words)
        told = json.loads(done.stdout.splitlines()[-1])
        assert done.returncode == (0 if told["ok"] else 1), done.stderr
        return told, done.stderr


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with _lab() as made:
        yield made


@contextmanager
def _lab(*others: Plan) -> Iterator[Lab]:
    """A node behind nginx, which knows these others."""
    inner, outer = free_ports(2)
    url = f"http://127.0.0.1:{outer}"
    front = Nginx(f"127.0.0.1:{inner}", outer)
    front.set(*GOOD)
    own = Plan({"HOP_CHECK_INTERVAL": "0"}, bind=f"127.0.0.1:{inner}", url=url)
    try:
        with Operators(own, *others) as operators:
            yield Lab(operators[0], front, url)
    finally:
        front.stop()


def codes(told: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["code"], each["layer"], each["product"]) for each in told["findings"]]


WRONG: Final = {
    "strip": ((*GOOD, "proxy_hide_header X-Zs-Relay-Hop;"), "marker_removed"),
    "unexpose": (
        (
            *GOOD,
            "proxy_hide_header Access-Control-Expose-Headers;",
            'add_header Access-Control-Expose-Headers "X-Other" always;',
        ),
        "marker_not_exposed",
    ),
    "pages": ((*GOOD, "proxy_intercept_errors on;", "error_page 502 /50x.html;"), "answer_replaced"),
    "buffer": ((*GOOD, "proxy_ignore_headers X-Accel-Buffering;", "proxy_buffering on;"), "stream_buffered"),
    "gzip": ((*GOOD, "gzip on;", "gzip_types *;", "gzip_min_length 1;"), "compressed"),
    "small": (("client_max_body_size 1m;",), "body_limited"),
}


@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=() if way == "strip" else pytest.mark.long) for way in WRONG],
)
def test_a_fault_is_found_and_what_is_printed_mends_it(lab: Lab, way: str) -> None:
    lines, code = WRONG[way]
    lab.front.set(*lines)
    # As text, since that is what people have.
    done = lab.node.cli("check-hop", lab.url)
    assert done.returncode == 1
    assert f"[{code}]" in done.stdout
    assert "layer: public    product: nginx" in done.stdout
    lab.front.mend(done.stdout)
    told, said = lab.check()
    assert codes(told) == []
    states = {(each["layer"], each["id"]): each["state"] for each in told["probes"]}
    for probe in ("refusal", "error", "success", "preflight", "exposed", "stream", "body", "headers"):
        assert states["loopback", probe] == states["public", probe] == "passed"
    assert states["public", "websocket"] == states["public", "silence-65"] == "not_tested"
    assert "public: the marker on a refusal: passed: 400 relay_bad_target, marked" in said


@pytest.mark.long
def test_what_nginx_cannot_keep_is_no_limit_of_it(lab: Lab) -> None:
    lab.front.set(*GOOD)
    lab.front.lose_bodies()
    told, _ = lab.check()
    assert codes(told) == [("body_failed", "public", "nginx")]
    (finding,) = told["findings"]
    assert "gets 500" in finding["evidence"]
    assert "see the proxy's error log" in finding["remedy"]
    assert not BLOCK.search(finding["remedy"])


@pytest.mark.long
def test_a_read_time_out_is_found_by_silences(lab: Lab) -> None:
    lab.front.set(*GOOD, "proxy_read_timeout 2s;")
    words = ("--long", "--silence", "1", "--silence", "3", "--silence", "4")
    told, _ = lab.check(*words)
    assert codes(told) == [("silence_cut", "public", "nginx")]
    states = {each["id"]: each["state"] for each in told["probes"] if each["layer"] == "public"}
    assert [states[f"silence-{seconds}"] for seconds in (1, 3, 4)] == ["passed", "failed", "failed"]
    lab.front.mend(told["findings"][0]["remedy"])
    assert codes(lab.check(*words)[0]) == []


@pytest.mark.long
def test_another_operators_node_looks_from_outside() -> None:
    with _lab(Plan({"DIALBACK": "on"})) as lab:
        seen = lab.node.command("look-from-outside")
        names = {name.lower(): value for name, value in seen["headers"]}
        assert (seen["status"], names["x-zs-relay-hop"]) == (400, "1")
        assert names["server"].startswith("nginx/")
        # Once a minute.
        assert lab.node.command("look-from-outside") is None
