from __future__ import annotations

import json
import time
from typing import Any

import pytest

from relaydesk.core.codec import encode
from relaydesk.core.commands import ProbeRelays
from relaydesk.core.text import safe_text
from relaydesk.core.view.network import DirectoryView, HopView, NetworkView, RelaysView, RelayView


def relay(ref: str, **fields: Any) -> RelayView:
    given: dict[str, Any] = {
        "owner": "O",
        "standing": "eligible",
        "eligible_relays": 2,
        "proto_version": "9.10",
    }
    return RelayView(ref=ref, base_url=safe_text(f"https://n{ref[0]}.example"), **(given | fields))


def hop(**fields: Any) -> HopView:
    given: dict[str, Any] = {
        "id": "hop_1",
        "at_ms": 1,
        "purpose": "probe",
        "relay": "2:1",
        "target": "1:1",
        "path": "/v1/zs/details",
        "status": 502,
        "code": "",
        "marker": False,
        "retryable": True,
        "attribution": "relay",
        "charged": "relay",
        "rule": "unmarked_front_door",
        "why": "the hop marker is missing",
        "duration_ms": 12,
    }
    return HopView(**(given | fields))


def test_the_table_and_what_it_has_no_room_for(cli: Any, node: Any) -> None:
    node.views["relays"] = RelaysView(
        (
            relay("1:1", tier="reachable", rtt_ms=23.4, share=0.62, models=("smollm2",), eligible_relays=1),
            relay("2:1", tier="demoted", faults=3, stale=1, explanation="Demoted since 10:00:00."),
            relay("3:1", proto_version="", why="it answered 503", name=safe_text("carol")),
            relay("4:1", standing="blocked", why="you blocked operator 4", eligible_relays=0),
            relay("5:1", standing="self"),
        ),
        probed_at_ms=time.time_ns() // 1_000_000 - 61_000,
    )
    lines = cli("relays").out.splitlines()
    assert lines[0].split("  ")[0] == "NODE"
    assert all(
        part in lines[1] for part in ("1:1", "● reachable", "23 ms", "62%", "0/3", "1 relay ", "smollm2")
    )
    assert all(part in lines[2] for part in ("✗ demoted", "3/3 +1 stale", "https://n2.example"))
    assert "○ cold" in lines[3]
    assert "✗ blocked" in lines[4]
    assert "self" in lines[5]
    rest = "\n".join(lines[6:])
    assert "1:1 can be reached through one relay only" in rest
    assert "2:1: Demoted since 10:00:00." in rest
    assert "carol 3:1: it answered 503" in rest
    assert lines[3].split()[:2] == ["3:1", "carol"]
    assert "4:1: you blocked operator 4" in rest
    assert "4:1 can be reached" not in rest
    assert "last probed 1 min 1 s ago" in rest


def test_as_json(cli: Any, node: Any) -> None:
    view = RelaysView((relay("1:1", tier="reachable"),), 5, 6)
    node.views["relays"] = view
    assert cli("relays", "--json").json == json.loads(encode(view))


UNREAD = DirectoryView("D" * 58, safe_text("http://127.0.0.1:9"), problem=safe_text("nobody answers"))
READ = DirectoryView("D" * 58, safe_text("http://127.0.0.1:9"), version=1)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (NetworkView(), "set RELAY_NETWORK=on"),
        (NetworkView(on=True, problem=safe_text("no certificate: get one")), "stays closed: no certificate"),
        (NetworkView(on=True), "set RELAY_DIRECTORIES"),
        (NetworkView(on=True, directories=(UNREAD,)), "http://127.0.0.1:9 is not used: nobody answers"),
        (NetworkView(on=True, directories=(READ,)), "`relaydesk directory admit`"),
    ],
)
def test_nobody_known_says_why(cli: Any, node: Any, view: NetworkView, words: str) -> None:
    node.views["network"] = view
    done = cli("relays")
    assert done.code == 0
    assert words in " ".join(done.out.split())


def test_a_probe(cli: Any, node: Any) -> None:
    node.views["relays"] = RelaysView((relay("1:1", name=safe_text("ann")),))
    hops = [hop(), hop(relay="3:1", status=200, marker=True, charged="nobody", why="as it stands")]
    node.answer(ProbeRelays, {"probes": hops})
    lines = cli("relays", "probe", "1:1").out.splitlines()
    assert node.seen == [ProbeRelays(ref="1:1")]
    assert lines[0].split()[:3] == ["TARGET", "RELAY", "HTTP"]
    assert all(
        part in lines[1] for part in ("ann 1:1 ", "2:1", "502", "no", "12 ms", "relay", "marker is missing")
    )
    assert all(part in lines[2] for part in ("3:1", "200", "yes", "nobody"))
    assert cli("relays", "probe", "--json").json == {"probes": json.loads(encode(hops))}
    assert node.seen[-1] == ProbeRelays()


def test_a_probe_of_nobody(cli: Any, node: Any) -> None:
    node.answer(ProbeRelays, {"probes": []})
    assert "Nobody could be probed" in cli("relays", "probe").out
