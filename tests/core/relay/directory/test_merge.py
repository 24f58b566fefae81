from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.relay.directory import merge as merging
from relaydesk.core.relay.directory.document import Document, open_document
from relaydesk.core.relay.directory.merge import Entry, Known, Merged, merge
from relaydesk.core.relay.directory.record import NodeRecord, read_record
from tests.support.directory_world import (
    ANN,
    BOB,
    DAY,
    EVE,
    KEEPER,
    NOW,
    OTHER,
    Key,
    certificate,
    document,
    record,
)


def opened(keeper: Key = KEEPER, **changes: Any) -> Document:
    return open_document(document(keeper, **changes), keeper.address, NOW)


def merged(*documents: Document, known: Known | None = None, allow_private: bool = False) -> Merged:
    return merge(documents, known or Known(), allow_private=allow_private)


def standings(found: Merged) -> dict[tuple[int, int], str]:
    return {tuple(each.ref): each.standing for each in found.entries}  # type: ignore[misc]


def entry(found: Merged, owner: Key) -> Entry:
    return next(each for each in found.entries if each.owner == owner.address)


def test_what_a_directory_admits_may_be_used() -> None:
    found = merged(opened())
    assert standings(found) == {(ANN.operator, 0): "admitted", (BOB.operator, 0): "admitted"}
    assert [each.ref for each in found.entries] == sorted(each.ref for each in found.entries)
    listed = entry(found, ANN).listed()
    assert (listed.owner, listed.base_url) == (ANN.address, "https://ann0.example.org")
    assert found.owners == {ANN.operator: ANN.address, BOB.operator: BOB.address}
    assert not found.clashes
    assert entry(found, ANN).until_s == NOW + 3600


def test_what_none_admits_is_unknown_until_trusted_by_hand() -> None:
    shown = opened(admits=(ANN,), records=[record(ANN), record(EVE)])
    found = merged(shown)
    assert entry(found, EVE).standing == "unknown"
    assert entry(found, EVE).why
    assert EVE.operator not in found.owners
    assert not [ref for ref in found.seen if ref.operator == EVE.operator]
    trusting = merged(shown, known=Known(trusted=frozenset({EVE.address})))
    assert entry(trusting, EVE).standing == "admitted"
    assert entry(trusting, EVE).until_s == NOW + 3600


def test_one_directory_may_admit_whom_another_shows() -> None:
    found = merged(opened(admits=(ANN,), records=[]), opened(OTHER, admits=(), records=[record(ANN)]))
    assert entry(found, ANN).standing == "admitted"
    assert entry(found, ANN).sources == (OTHER.address,)


def test_blocked_by_hand_outdoes_every_directory() -> None:
    known = Known(blocked=frozenset({ANN.address}))
    found = merged(opened(), known=known)
    assert entry(found, ANN).standing == "blocked"


def test_the_evicted_are_hidden_unless_trusted() -> None:
    both = (opened(), opened(OTHER, admits=(), evicts=(ANN,), records=[record(ANN)]))
    assert ANN.address not in [each.owner for each in merged(*both).entries]
    # Nor does it take an id that another may have.
    assert ANN.operator not in merged(*both).owners
    trusting = merged(*both, known=Known(trusted=frozenset({ANN.address})))
    assert entry(trusting, ANN).standing == "admitted"


def test_a_withdrawn_node_is_gone() -> None:
    found = merged(opened(records=[record(ANN, status="retired", version=2), record(BOB)]))
    assert standings(found) == {(BOB.operator, 0): "admitted"}
    assert (ANN.operator, 0) in found.seen
    assert standings(merged(opened(), opened(OTHER, records=[record(ANN, status="retired", version=2)]))) == {
        (BOB.operator, 0): "admitted"
    }


def test_of_two_directories_the_newer_record_counts() -> None:
    found = merged(opened(), opened(OTHER, records=[record(ANN, version=2, staging=True)]))
    assert (entry(found, ANN).version, entry(found, ANN).staging) == (2, True)
    assert entry(found, ANN).sources == (KEEPER.address, OTHER.address)


def test_an_older_record_than_was_seen_is_disabled() -> None:
    newer = merged(opened(records=[record(ANN, version=5)]))
    found = merged(opened(records=[record(ANN, version=4)]), known=Known(seen=newer.seen))
    assert entry(found, ANN).standing == "disabled"
    assert "older" in entry(found, ANN).why
    # A later certificate starts anew.
    fresh = record(ANN, version=1, cert=certificate(ANN, issued_at=NOW - 50))
    again = merged(opened(records=[fresh]), known=Known(seen=newer.seen))
    assert entry(again, ANN).standing == "admitted"


def test_two_records_of_one_version_clash_and_the_first_known_stays() -> None:
    mine, other = record(ANN, base_url="https://a.example.org"), record(ANN, base_url="https://b.example.org")
    first = merged(opened(records=[mine]))
    assert not first.clashes
    both = merged(opened(records=[other]), opened(OTHER, records=[mine]), known=Known(seen=first.seen))
    assert entry(both, ANN).base_url == "https://a.example.org"
    assert [each.subject for each in both.clashes] == [f"node {ANN.operator}:0"]
    alone = merged(opened(records=[other]), known=Known(seen=first.seen))
    assert entry(alone, ANN).standing == "disabled"
    assert alone.clashes
    fresh = merged(opened(records=[mine]), opened(OTHER, records=[other]))
    assert entry(fresh, ANN).base_url == "https://a.example.org"
    assert fresh.clashes


@pytest.mark.parametrize(
    "url", ["http://a.example.org", "https://192.168.0.5", "https://a.org/?x", "\x1b[2J"]
)
def test_base_urls_that_nobody_may_dial(url: str) -> None:
    found = merged(opened(records=[record(ANN, base_url=url), record(BOB)]))
    assert entry(found, ANN).standing == "disabled"
    assert entry(found, ANN).base_url.isprintable()
    assert entry(found, BOB).standing == "admitted"


def test_a_lab_may_be_private() -> None:
    found = merged(opened(records=[record(ANN, base_url="http://127.0.0.1:5")]), allow_private=True)
    assert entry(found, ANN).standing == "admitted"


def colliding(monkeypatch: pytest.MonkeyPatch, *documents: Document) -> list[Document]:
    """ANN's and EVE's ids made one, as who searches long enough could."""

    def one(owner: str) -> int:
        return ANN.operator if owner in (ANN.address, EVE.address) else BOB.operator

    def moved(each: NodeRecord) -> NodeRecord:
        return dataclasses.replace(each, ref=each.ref._replace(operator=one(each.owner)))

    monkeypatch.setattr(merging, "operator_of", one)
    return [
        dataclasses.replace(each, records=tuple(moved(found) for found in each.records)) for each in documents
    ]


def test_a_second_owner_with_a_known_id_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = colliding(monkeypatch, opened(admits=(ANN,)), opened(OTHER, admits=(EVE,)))
    for order in ((first, second), (second, first)):
        found = merged(*order, known=Known(owners={ANN.operator: ANN.address}))
        assert (entry(found, ANN).standing, entry(found, EVE).standing) == ("admitted", "disabled")
        assert "known first" in entry(found, EVE).why
        assert [each.subject for each in found.clashes] == [f"operator {ANN.operator}"]
        assert not found.owners
    # Where both are new, the directory pinned first decides.
    fresh = merged(second, first)
    assert (entry(fresh, ANN).standing, entry(fresh, EVE).standing) == ("disabled", "admitted")
    assert fresh.owners == {ANN.operator: EVE.address}


def test_it_ends_with_the_certificate() -> None:
    ends = record(ANN, cert=certificate(ANN, expires_at=NOW + 10))
    assert entry(merged(opened(records=[ends])), ANN).until_s == NOW + 10


OWNERS = [ANN, BOB, EVE]
RECORDS = [
    read_record(
        json.dumps(
            record(owner, version=version, base_url=f"https://{at}.example.org", status=status)
        ).encode(),
        NOW,
    )
    for owner in OWNERS
    for version in (1, 2)
    for at in ("a", "b")
    for status in ("active", "retired")
]
BASE = opened(records=[])
DOCUMENTS = st.builds(
    lambda admits, evicts, records, key, ends: dataclasses.replace(
        BASE,
        key=key,
        expires_at=NOW + ends,
        operators=tuple(
            dataclasses.replace(BASE.operators[0], owner=owner.address, status=status)
            for status, some in (("active", admits), ("evicted", evicts))
            for owner in some
        ),
        records=tuple({(each.ref, each.owner): each for each in records}.values()),
    ),
    st.lists(st.sampled_from(OWNERS), unique=True),
    st.lists(st.sampled_from(OWNERS), unique=True, max_size=1),
    st.lists(st.sampled_from(RECORDS), max_size=4),
    st.sampled_from([KEEPER.address, OTHER.address]),
    st.integers(1, DAY),
)


@settings(max_examples=150)
@given(
    st.lists(st.lists(DOCUMENTS, max_size=3), max_size=4),
    st.sets(st.sampled_from([each.address for each in OWNERS])),
    st.sets(st.sampled_from([each.address for each in OWNERS])),
)
def test_whatever_is_shown(rounds: list[list[Document]], trusted: set[str], blocked: set[str]) -> None:
    known = Known(trusted=frozenset(trusted - blocked), blocked=frozenset(blocked))
    for documents in rounds:
        found = merge(documents, known, allow_private=False)
        admitted = [each for each in found.entries if each.standing == "admitted"]
        assert len({each.ref for each in admitted}) == len(admitted)
        active = {o.owner for d in documents for o in d.operators if o.status == "active"}
        evicted = {o.owner for d in documents for o in d.operators if o.status == "evicted"}
        for each in admitted:
            assert each.owner not in blocked
            assert each.owner in known.trusted or (each.owner in active and each.owner not in evicted)
            assert not each.why
            assert each.until_s > NOW
        for ref, seen in found.seen.items():
            assert ref not in known.seen or seen.rank > known.seen[ref].rank
        assert not set(found.owners) & set(known.owners)
        for each in found.entries:
            assert each.standing == "admitted" or each.why
        known = dataclasses.replace(
            known, owners={**known.owners, **found.owners}, seen={**known.seen, **found.seen}
        )
