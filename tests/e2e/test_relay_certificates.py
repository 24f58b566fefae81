"""A node whose certificate the world does not trust is not published, and no hop with it succeeds.

One network of processes, in a lab whose CA three of them trust (design §6).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from relaydesk.core.relay.ref import NodeRef
from tests.support.lab_tls import make_lab_tls
from tests.support.operators import Operator, Operators, Plan
from tests.support.pebble import free_ports, server_identity

QUIET = {"PROBE_INTERVAL": "1h"}


class Lab(NamedTuple):
    """``plain`` keeps the directory and speaks HTTP, as ``other`` does; ``trusted`` has a certificate of the
    lab's CA, ``closed`` the default one and a public address, ``own`` the default one in the lab, and
    ``foreign`` one of a CA that only itself knows."""

    operators: Operators
    plain: Operator
    other: Operator
    trusted: Operator
    closed: Operator
    own: Operator
    foreign: Operator

    @property
    def bad(self) -> tuple[Operator, ...]:
        return self.closed, self.own, self.foreign


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Each in a way of its own; all of them are admitted."""
    folders = [tmp_path_factory.mktemp(name) for name in ("lab", "own", "foreign")]
    ours, foreign = make_lab_tls(folders[0]), make_lab_tls(folders[2])
    _, default = server_identity(folders[1])
    binds = [f"127.0.0.1:{port}" for port in free_ports(3)]
    (port,) = free_ports(1)
    knows = {"NETWORK_CA": str(ours.ca)}
    plans = (
        Plan({**QUIET, **knows}),
        Plan({**QUIET, **knows}),
        Plan({**QUIET, **knows, **served(ours.pem)}, bind=binds[0], url=f"https://{binds[0]}"),
        Plan(
            {**QUIET, "ALLOW_PRIVATE": "off", "V1_TLS": "on"},
            bind=f"0.0.0.0:{port}",
            url=f"https://node.example.org:{port}",
            listed=False,
        ),
        Plan({**QUIET, **served(default)}, bind=binds[1], url=f"https://{binds[1]}", listed=False),
        Plan(
            {**QUIET, **served(foreign.pem), "NETWORK_CA": str(foreign.ca)},
            bind=binds[2],
            url=f"https://{binds[2]}",
            listed=False,
        ),
    )
    with Operators(*plans) as operators:
        yield Lab(operators, *operators)


def served(pem: Path) -> dict[str, str]:
    """Settings that serve a file with key and chain to other nodes."""
    pem.chmod(0o600)
    return {"TLS_CERT": str(pem), "TLS_KEY": str(pem), "NETWORK_TLS": "on"}


def listed(lab: Lab) -> set[NodeRef]:
    """What the directory lists."""
    return {record.ref for record in lab.operators.shelf.read(0).records}


def eligible(node: Operator) -> set[str]:
    """What it would use."""
    return {each.ref for each in node.relays() if each.standing == "eligible"}


def test_a_certificate_of_a_trusted_ca_is_published_and_relays(lab: Lab) -> None:
    """The control: by TLS, as a relay and as a target."""
    assert lab.trusted.network().unpublished == ""
    hops = lab.plain.probe()
    ends = {(hop.relay, hop.target, hop.status, hop.charged) for hop in hops}
    assert (lab.trusted.ref, lab.other.ref, 200, "nobody") in ends
    assert (lab.other.ref, lab.trusted.ref, 200, "nobody") in ends
    assert lab.plain.relay(lab.trusted).base_url.startswith("https://")
    assert lab.plain.relay(lab.trusted).tier == "reachable"


def test_the_default_certificate_closes_the_network_with_the_reason(lab: Lab) -> None:
    """On an address of the world, the hub's own authority is no certificate: nothing is opened."""
    network = lab.closed.network()
    problem = "the network listener has no certificate that the world trusts"
    assert network.on
    assert network.problem.startswith(f"{problem}: set RELAY_TLS_DOMAIN")
    assert network.listening == ()
    assert problem in lab.closed.alerts()["network_refused"]
    refused = lab.closed.refused("probe-relays")
    assert problem in refused["message"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port_of(lab.closed)), 5)
    assert lab.closed.status() is not None  # the hub itself is up
    assert lab.closed.node_ref not in listed(lab)


def test_the_default_certificate_is_not_published_where_it_is_served(lab: Lab) -> None:
    reason = "other nodes would not trust the certificate for 127.0.0.1: "
    assert lab.own.network().unpublished.startswith(reason)
    assert reason in lab.own.alerts()["network_distrusted"]
    assert lab.own.network().listening != ()
    assert lab.own.node_ref not in listed(lab)


def test_the_keeper_refuses_a_certificate_that_it_cannot_check(lab: Lab) -> None:
    """The node itself trusts it; the keeper says why not, and the node shows that."""
    reason = "the node's certificate is not one that the world trusts"
    lab.operators.wait(lambda: reason in lab.foreign.network().unpublished, "no reason is shown")
    assert "network_distrusted" not in lab.foreign.alerts()
    assert reason in lab.foreign.alerts()["record_refused"]
    assert lab.foreign.node_ref not in listed(lab)


@pytest.mark.long
def test_no_hop_through_them_or_to_them_succeeds(lab: Lab) -> None:
    """Even where a directory lists them: each caller and each relay looks at the certificate itself."""
    for node in lab.bad:
        lab.operators.list(node, f"https://127.0.0.1:{port_of(node)}")
    refs = {node.ref for node in lab.bad}
    asking = lab.plain
    for node in (lab.plain, lab.other, lab.trusted):
        lab.operators.wait(lambda node=node: refs <= eligible(node), "they are not listed")
    hops = asking.probe()
    for node in lab.bad:
        through = [hop for hop in hops if hop.relay == node.ref]
        to = [hop for hop in hops if hop.target == node.ref and hop.relay not in refs]
        assert through
        assert {(hop.status, hop.charged, hop.rule) for hop in through} == {(0, "relay", "no_answer")}
        assert to
        assert {(hop.status, hop.code) for hop in to} == {(502, "relay_upstream_unreachable")}
        relay = asking.relay(node)
        assert (relay.tier, relay.proto_version, relay.last_ok_at_ms) == ("demoted", "", 0)
    for node in (lab.own, lab.foreign):
        assert any("certificate" in hop.why for hop in hops if hop.relay == node.ref)
    assert {hop.status for hop in hops if not {hop.relay, hop.target} & refs} == {200}
    # In the background too, as often as it was tried.
    assert {hop.status for hop in asking.hops() if {hop.relay, hop.target} & refs} <= {0, 404, 502}


def port_of(node: Operator) -> int:
    """Where its network listener is, or would be."""
    return int(node.bind.rpartition(":")[2])
