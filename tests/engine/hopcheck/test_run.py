from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.hopcheck.model import Exchange, Layer, Report
from relaydesk.engine.hopcheck.door import Trusts
from relaydesk.engine.hopcheck.run import Plan, check
from tests.support.edge_rig import Told, checked_node, edge, page, tools, without
from tests.support.lab_tls import make_lab_tls


def plan(node_url: str, *urls: str, nonce: str = "", **changes: Any) -> Plan:
    layers = [Layer("loopback", node_url, "loopback")]
    layers += [Layer(f"via{at}", url, "via") for at, url in enumerate(urls[:-1])]
    layers.append(Layer("public", urls[-1], "public"))
    return Plan(tuple(layers), tools(nonce=nonce), **changes)


def found(report: Report) -> list[tuple[str, str]]:
    return [(finding.code, finding.layer) for finding in report.findings]


async def test_a_correct_edge_and_what_is_said_meanwhile(tmp_path: Path) -> None:
    told = Told()
    async with checked_node(tmp_path) as node, edge(node.port) as front:
        report = await check(plan(node.url, front.url, nonce=node.nonce()), told)
    assert found(report) == []
    assert len(told.over) == told.planned_probes
    assert {(each.layer, each.probe) for each in told.over} >= set(told.begun)
    # Every probe that can be made here was made; each says why where it was not.
    left = {each.probe for each in told.over if each.untested}
    assert left == {"tls", "http2", "websocket", "silence-20", "silence-65", "silence-125"}
    assert [each.probe for each in report.observations if each.layer == "public"][:3] == [
        "name",
        "reach",
        "tls",
    ]


async def test_the_guilty_one_of_two_and_then_the_other(tmp_path: Path) -> None:
    hop = without("X-Zs-Relay-Hop")
    async with (
        checked_node(tmp_path) as node,
        edge(node.port, rewrite=hop) as inner,
        edge(inner.port, rewrite=hop) as outer,
    ):
        both = await check(plan(node.url, inner.url, outer.url, nonce=node.nonce()), Told())
        inner.rewrite = without()
        one = await check(plan(node.url, inner.url, outer.url, nonce=node.nonce()), Told())
        outer.rewrite = without()
        none = await check(plan(node.url, inner.url, outer.url, nonce=node.nonce()), Told())
    assert found(both) == [("marker_removed", "via0")]
    assert found(one) == [("marker_removed", "public")]
    assert none.ok


async def test_faults_of_an_edge_as_it_really_answers(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node, edge(node.port, buffers=True) as front:
        report = await check(plan(node.url, front.url, nonce=node.nonce()), Told())
        assert found(report) == [("stream_buffered", "public")]
        front.buffers = False

        def own_pages(status: str, head: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
            return (status, [("Connection", "close")]) if status.startswith("502") else (status, head)

        front.rewrite = own_pages
        assert ("marker_removed", "public") in found(
            await check(plan(node.url, front.url, nonce=node.nonce()), Told())
        )
        front.rewrite = without("Access-Control-Expose-Headers")
        assert found(await check(plan(node.url, front.url, nonce=node.nonce()), Told())) == [
            ("marker_not_exposed", "public")
        ]
        front.rewrite = without()
        front.answer = lambda head: page("413 Too Large") if b"Content-Length: 1114112" in head else None
        assert found(await check(plan(node.url, front.url, nonce=node.nonce()), Told())) == [
            ("body_limited", "public")
        ]
        front.answer = lambda _head: page("403 Forbidden", b"<center>nginx</center>")
        report = await check(plan(node.url, front.url, nonce=node.nonce()), Told())
        assert found(report) == [("edge_answers", "public")]
        assert report.findings[0].product == "nginx"


async def test_no_redirect_is_followed(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node, edge(node.port) as elsewhere, edge(node.port) as front:
        front.answer = lambda _head: page("301 Moved", b"", f"Location: {elsewhere.url}/")
        assert found(await check(plan(node.url, front.url), Told())) == [("redirected", "public")]
        assert elsewhere.asked == []


async def test_silences_are_cut_where_an_edge_does_not_wait(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node, edge(node.port) as front:
        front.answer = lambda head: page("504 Gateway Timeout") if b"silence=0.3" in head else None
        told = Told()
        report = await check(
            plan(node.url, front.url, nonce=node.nonce(), long=True, silences=(0.1, 0.3)), told
        )
        assert found(report) == [("silence_cut", "public")]
        assert "504" in report.findings[0].evidence[0]
        assert not [each for each in told.over if each.probe.startswith("silence") and each.untested]


async def test_without_a_nonce_less_is_seen_and_said_so(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node, edge(node.port, rewrite=without("X-Zs-Relay-Hop")) as front:
        told = Told()
        report = await check(plan(node.url, front.url), told)
        assert found(report) == [("marker_removed", "public")]
        assert {"stream", "headers", "success"} <= {each.probe for each in told.over if each.untested}


async def test_a_nonce_that_the_node_does_not_know_is_no_fault(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node:
        told = Told()
        report = await check(plan(node.url, f"{node.url}/", nonce="ab" * 16), told)
        assert report.ok
        (stream,) = [each for each in told.over if (each.layer, each.probe) == ("public", "stream")]
        assert "nonce" in stream.untested


async def test_nobody_there_is_said_at_once_and_nothing_more_is_sent(tmp_path: Path) -> None:
    async with checked_node(tmp_path) as node:
        async with edge(node.port) as front:
            gone = front.url
        told = Told()
        report = await check(plan(node.url, gone, nonce=node.nonce()), told)
        assert found(report) == [("unreachable", "public")]
        assert [probe for layer, probe in told.begun if layer == "public"] == ["name", "tls", "reach"]
        assert ("public", "body") not in told.begun


async def test_a_black_hole_is_a_clear_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaydesk.engine.hopcheck.sends.REACH_S", 0.3)

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with checked_node(tmp_path) as node:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        report = await check(plan(node.url, url), Told())
    server.close()
    assert found(report) == [("black_hole", "public")]


async def test_what_a_peer_saw_is_one_more_probe(tmp_path: Path) -> None:
    async def look() -> Exchange | None:
        return Exchange("POST", "x", status=400)

    async def nobody() -> Exchange | None:
        return None

    async with checked_node(tmp_path) as node, edge(node.port) as front:
        seen = await check(plan(node.url, front.url, outside=look), Told())
        assert found(seen) == [("marker_removed", "public")]
        told = Told()
        assert (await check(plan(node.url, front.url, outside=nobody), told)).ok
        (outside,) = [each for each in told.over if each.probe == "outside"]
        assert outside.untested


async def test_a_certificate_that_callers_refuse_is_said_and_the_rest_is_seen_all_the_same(
    tmp_path: Path,
) -> None:
    lab = make_lab_tls(tmp_path)
    async with checked_node(tmp_path) as node, edge(node.port, rewrite=without("X-Zs-Relay-Hop")) as front:
        server = await asyncio.start_server(front.serve, "127.0.0.1", 0, ssl=lab.server())
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        refused = await check(plan(node.url, url, nonce=node.nonce()), Told())
        trust = Trusts(lab.client(), lab.client(), lab.client())
        wanted = replace(plan(node.url, url), tools=tools(nonce=node.nonce(), trust=trust))
        taken = await check(wanted, Told())
        server.close()
    assert found(refused) == [("tls_untrusted", "public"), ("marker_removed", "public")]
    assert "unable to get local issuer" in refused.findings[0].evidence[0]
    # It is valid for a day, which a certificate that renews itself never comes near.
    assert found(taken) == [("marker_removed", "public"), ("tls_ends_soon", "public")]


async def test_http2_is_asked_where_it_is_offered(tmp_path: Path) -> None:
    """An edge that offers HTTP/2 and speaks none."""
    lab = make_lab_tls(tmp_path)
    context = lab.server()
    context.set_alpn_protocols(["h2", "http/1.1"])
    async with checked_node(tmp_path) as node, edge(node.port) as front:
        server = await asyncio.start_server(front.serve, "127.0.0.1", 0, ssl=context)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        trust = []
        for offered in (["http/1.1"], ["h2", "http/1.1"], ["h2"]):
            trust.append(lab.client())
            trust[-1].set_alpn_protocols(offered)
        wanted = replace(plan(node.url, url), tools=tools(nonce=node.nonce(), trust=Trusts(*trust)))
        report = await check(wanted, Told())
        server.close()
    assert found(report) == [("http2_broken", "public"), ("tls_ends_soon", "public")]


async def test_a_stream_that_a_busy_machine_held_back_once_is_asked_for_again(tmp_path: Path) -> None:
    asked: list[bytes] = []

    def jolt(head: bytes) -> None:
        # Other probes are asked meanwhile: only the second stream ends what the first began.
        if b"text/event-stream" in head:
            asked.append(head)
            front.buffers = len(asked) == 1

    async with checked_node(tmp_path) as node, edge(node.port, answer=jolt) as front:
        report = await check(plan(node.url, front.url, nonce=node.nonce()), Told())
        assert len(asked) == 2
        assert report.ok
