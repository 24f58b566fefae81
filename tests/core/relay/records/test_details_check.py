"""Details against what the directory says of their node."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.details import decode_details
from relaydesk.core.relay.records.details_check import DetailsError, check_details
from relaydesk.core.relay.ref import Listed, NodeRef
from tests.support.lab_relay import LabNode

NOW = 1_700_000_000


def node(number: int = 3, **fields: object) -> LabNode:
    return LabNode(7, number, **fields)


def listed(of: LabNode) -> Listed:
    return Listed(NodeRef(of.operator, of.node), of.owner, of.signing, "https://seven.example")


def checked(of: LabNode, body: bytes, *, relayed: bool = True) -> bool:
    return check_details(decode_details(body), listed(of), NOW, relayed=relayed)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"extra": {"operator_id": 8}}, "another operator than"),
        ({"extra": {"node_id": 4}}, "another number than"),
        ({"extra": {"owner_addr": LabNode(8).owner}}, "another owner than"),
        ({"extra": {"signing_addr": LabNode(8).signing}}, "another signing key than"),
        ({"extra": {"ephemeral_sig": None}}, "advertise no key"),
        ({"extra": {"ephemeral_expiry": NOW + 9}}, "not signed"),
        ({"issued_ago_s": -70, "life_s": 60}, "from the future"),
        ({"life_s": 2401}, "longer than any"),
        ({"issued_ago_s": 1600}, "has expired"),
    ],
)
def test_details_that_are_refused(fields: dict[str, object], why: str) -> None:
    with pytest.raises(DetailsError, match=why) as caught:
        checked(node(), node(**fields).details())
    assert caught.value.identity is ("another" in why)


def test_a_siblings_advert_does_not_hold() -> None:
    """Its ids are signed, so that it cannot be put into the details of another node (wire §8.2)."""
    sibling, mine = LabNode(7, 4), node()
    sibling.key = mine.key
    taken = json.loads(sibling.details())
    forged = {
        **json.loads(mine.details()),
        **{key: taken[key] for key in taken if key.startswith("ephemeral")},
    }
    with pytest.raises(RecordError, match="not signed"):
        checked(mine, json.dumps(forged).encode())


def test_stale_details_are_used() -> None:
    assert checked(node(), node(issued_ago_s=1261, life_s=1500).details())
    assert not checked(node(), node(issued_ago_s=1260, life_s=1500).details())
    # Asked for directly, nobody kept them.
    assert not checked(node(), node(issued_ago_s=1261, life_s=1500).details(), relayed=False)


def test_a_directory_that_names_no_key() -> None:
    details = decode_details(node(extra={"signing_addr": ""}).details())
    nameless = replace(listed(node()), signing="")
    with pytest.raises(DetailsError, match="no key of it"):
        check_details(details, nameless, NOW, relayed=True)


@given(st.binary(max_size=200))
def test_whatever_comes_is_refused_in_a_sentence(body: bytes) -> None:
    with pytest.raises(RecordError):
        checked(node(), body)
