from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.commands import LookFromOutside, PrepareHopCheck
from tests.support.edge_rig import CheckedNode, Edge, checked_node, without


class Lab:
    """A node and an edge in front of it, in a thread of their own."""

    node: CheckedNode
    front: Edge

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(20)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(20)

    async def _main(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with checked_node(self._folder) as self.node:
            self.front = Edge(self.node.port)
            server = await asyncio.start_server(self.front.serve, "127.0.0.1", 0)
            self.front.port = server.sockets[0].getsockname()[1]
            self._ready.set()
            await self._end.wait()
            server.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("lab"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def lab(running: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr("relaydesk.engine.hopcheck.sends.BODIES", (1_114_112,))
    for module in ("relaydesk.engine.hopcheck.sends", "relaydesk.surfaces.network.probed"):
        monkeypatch.setattr(f"{module}.GAP_MS", 40)
    yield running
    running.front.rewrite = without()
    running.front.answer = lambda _head: None


def prepared(lab: Lab, node: Any, **changes: Any) -> None:
    """The node that the command line finds helps with this lab's."""
    value = {
        "nonce": lab.node.nonce(),
        "expires_at_ms": 1,
        "url": lab.front.url,
        "layers": [{"name": "loopback", "url": lab.node.url, "kind": "loopback"}],
        "target": "",
        "lab": True,
    }
    node.answer(PrepareHopCheck, value | changes)


def test_a_correct_edge_with_a_node_that_helps(cli: Any, node: Any, lab: Lab) -> None:
    prepared(lab, node)
    done = cli("check-hop")
    assert (done.code, "nothing else was found" in done.out) == (0, True)
    assert f"loopback: {lab.node.url} (relaydesk)" in done.out
    # Progress for every probe, with what was seen or why it was not tested.
    assert "public: the marker on a refusal: passed: 400 relay_bad_target, marked" in done.err
    assert "loopback: a silence of 20 s: not tested: only with --long" in done.err
    assert any(isinstance(each, LookFromOutside) for each in node.seen)


def test_a_finding_is_told_and_is_exit_code_1(cli: Any, node: Any, lab: Lab) -> None:
    lab.front.rewrite = without("X-Zs-Relay-Hop")
    prepared(lab, node)
    done = cli("check-hop", lab.front.url)
    assert done.code == 1
    assert "✗ public removes X-Zs-Relay-Hop [marker_removed]" in done.out
    assert "layer: public    product: not known" in done.out
    assert "one layer further in, at loopback" in done.out
    assert "effect: When a target behind this node fails" in done.out
    assert "public: the marker on a refusal: failed" in done.err


def test_the_document_is_one_object_on_the_last_line(cli: Any, node: Any, lab: Lab) -> None:
    lab.front.rewrite = without("Access-Control-Expose-Headers")
    prepared(lab, node)
    done = cli("check-hop", lab.front.url, "--json", "--via", f"inner={lab.node.url}/")
    told = json.loads(done.out.splitlines()[-1])
    assert (done.code, told["ok"]) == (1, False)
    (found,) = told["findings"]
    assert set(found) >= {"code", "severity", "layer", "product", "evidence", "effect", "remedy"}
    assert (found["code"], found["layer"]) == ("marker_not_exposed", "public")
    assert [each["name"] for each in told["layers"]] == ["loopback", "inner", "public"]


def test_it_works_without_any_node(cli: Any, lab: Lab) -> None:
    done = cli("check-hop", lab.front.url, "--alone")
    assert done.code == 0
    assert "needs a nonce" in done.err
    done = cli("check-hop", lab.front.url, "--nonce", lab.node.nonce(), "--long", "--silence", "0.1")
    assert done.code == 0
    assert "public: a silence of 0.1 s: passed: 200, marked" in done.err
    assert "needs a nonce" not in done.err


def test_a_node_that_cannot_help_is_left_out_and_said_so(cli: Any, node: Any, lab: Lab) -> None:
    done = cli("check-hop", lab.front.url)
    assert done.code == 0
    assert "does not help" in done.err


def test_a_nonce_for_another_machine(cli: Any, node: Any, lab: Lab) -> None:
    prepared(lab, node, nonce="ab" * 16)
    done = cli("check-hop", "--new-nonce")
    assert done.out.splitlines()[-1] == f"relaydesk check-hop {lab.front.url} --nonce {'ab' * 16}"
    told = json.loads(cli("check-hop", "--new-nonce", "--json").out)
    assert told == {"nonce": "ab" * 16, "expires_at_ms": 1, "url": lab.front.url}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--alone",), "no URL is given"),
        (("nonsense", "--alone"), "no base URL"),
        (("http://x", "--alone", "--via", "a"), "names no layer"),
        (("http://x", "--nonce", "zz"), "no nonce"),
    ],
)
def test_misuse(cli: Any, words: tuple[str, ...], said: str) -> None:
    done = cli("check-hop", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_what_a_peer_sees_comes_through_the_node(cli: Any, node: Any, lab: Lab) -> None:
    prepared(lab, node)
    seen = {"status": 400, "headers": [["Server", "nginx"]], "kind": "", "problem": ""}
    node.answer(LookFromOutside, seen)
    told = json.loads(cli("check-hop", "--json").out.splitlines()[-1])
    assert [(each["code"], each["product"]) for each in told["findings"]] == [("marker_removed", "nginx")]
    assert "seen by a peer" in told["findings"][0]["evidence"]
