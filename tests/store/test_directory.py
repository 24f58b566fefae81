from __future__ import annotations

from relaydesk.core.relay.directory.document import Floor
from relaydesk.core.relay.directory.merge import Seen
from relaydesk.core.relay.directory.record import Rank
from relaydesk.core.relay.ref import NodeRef
from relaydesk.store.db import Database
from relaydesk.store.directory import DirectoryRepo, StoredDocument

A, B = b"a" * 32, b"b" * 32


async def test_documents_only_go_forward(database: Database) -> None:
    repo = DirectoryRepo(database)
    assert await repo.documents() == {}
    five = StoredDocument(Floor(5, 100, A), b"five")
    assert await repo.keep_document("K", five)
    assert not await repo.keep_document("K", StoredDocument(Floor(4, 200, B), b"four"))
    assert not await repo.keep_document("K", StoredDocument(Floor(5, 200, B), b"other five"))
    assert await repo.documents() == {"K": five}
    six = StoredDocument(Floor(6, 100, B), b"six")
    assert await repo.keep_document("K", six)
    assert await repo.documents() == {"K": six}


async def test_the_first_owner_stays_and_records_only_go_forward(database: Database) -> None:
    repo = DirectoryRepo(database)
    ref = NodeRef(2**53 - 1, 2**53 - 1)
    await repo.remember({ref.operator: "ANN"}, {ref: Seen(Rank(10, 5), A)})
    await repo.remember({ref.operator: "EVE"}, {ref: Seen(Rank(10, 4), B)})
    known = await repo.known()
    assert known.owners == {ref.operator: "ANN"}
    assert known.seen == {ref: Seen(Rank(10, 5), A)}
    await repo.remember({}, {ref: Seen(Rank(11, 1), B)})
    assert (await repo.known()).seen == {ref: Seen(Rank(11, 1), B)}


async def test_choices_and_what_forgetting_leaves(database: Database) -> None:
    repo = DirectoryRepo(database)
    await repo.choose("ANN", "trusted", 1)
    await repo.choose("EVE", "trusted", 1)
    await repo.choose("EVE", "blocked", 2)
    await repo.remember({1: "ANN", 2: "EVE"}, {NodeRef(1, 0): Seen(Rank(1, 1), A)})
    known = await repo.known()
    assert (known.trusted, known.blocked) == ({"ANN"}, {"EVE"})
    assert await repo.forget("ANN")
    assert not await repo.forget("ANN")
    known = await repo.known()
    assert (known.trusted, known.owners, known.seen) == (frozenset(), {2: "EVE"}, {})


async def test_the_own_record(database: Database) -> None:
    repo = DirectoryRepo(database)
    assert await repo.own_record() is None
    await repo.keep_own_record(b"one")
    await repo.keep_own_record(b"two")
    assert await repo.own_record() == b"two"
