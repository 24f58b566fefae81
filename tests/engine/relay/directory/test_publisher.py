from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.directory.source import Source
from relaydesk.engine.relay.directory.keeper import Keeper
from relaydesk.engine.relay.directory.publisher import FIRST_BACK_OFF_S, Publisher
from relaydesk.engine.relay.directory.shelf import Shelf
from relaydesk.engine.relay.identity import Identity
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.store.secrets import FileSecrets
from relaydesk.surfaces.network.directory import add_directory_routes
from tests.support.clock import FakeClock, FakeRng
from tests.support.directory_rig import Side, side
from tests.support.directory_world import ANN, DAY, NOW, certificate, document
from tests.support.keeper_rig import keeping
from tests.support.lab_relay import Canned, LabNode


@asynccontextmanager
async def serving(keeper: Keeper) -> AsyncIterator[Source]:
    """A keeper behind its routes."""
    app = web.Application()
    add_directory_routes(app, keeper)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield Source(keeper.address, f"http://127.0.0.1:{runner.addresses[0][1]}")
    await runner.cleanup()


class Own:
    """This node: its identity, what answers at its URL, and what it wants to publish."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        secrets = FileSecrets(folder)
        secrets.prepare()
        self.identity = Identity.open(secrets, folder / "network", clock, FakeRng("own"))
        self.node = LabNode(self.identity.operator_id, 0, wall_ms=lambda: NOW * 1000)
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self.node.key = Ed25519PrivateKey.from_private_bytes(self.identity.seed)
        self.node.signing, self.node.owner = self.identity.signing_addr, self.identity.owner_addr
        self.wanted = ""

    def publisher(self, here: Side) -> Publisher:
        told = lambda: here.changes.append("publisher")  # noqa: E731
        return Publisher(
            self.identity,
            here.sources,
            here.repo,
            here.outbound,
            here.clock,
            here.alerts,
            lambda: self.wanted,
            on_change=told,
            sleep=here.clock.sleep,
        )


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[Own]:
    made = Own(tmp_path / "own", FakeClock(NOW * 1000))
    await made.node.start()
    made.wanted = made.node.base_url
    yield made
    await made.node.stop()


def admit(shelf: Shelf, own: Own) -> None:
    shelf.admit(own.identity.owner_addr, "active")


async def test_a_node_publishes_itself_and_is_listed(tmp_path: Path, own: Own) -> None:
    async with (
        keeping(tmp_path / "d") as (keeper, shelf),
        serving(keeper) as source,
        side(tmp_path, source) as here,
    ):
        publisher = own.publisher(here)
        assert "lists this node yet" in publisher.unpublished()
        await here.sources.refresh(source)
        await publisher.publish()
        assert "does not admit" in here.standing_alerts()["record_refused"]
        assert own.identity.owner_addr in publisher.unpublished()
        admit(shelf, own)
        await keeper.look_after()
        # Not before the back-off is over.
        await publisher.publish()
        assert "record_refused" in here.standing_alerts()
        here.clock.advance(FIRST_BACK_OFF_S)
        await publisher.publish()
        assert here.standing_alerts() == {}
        await here.sources.refresh(source)
        (listed,) = here.book.nodes()
        assert (listed.ref, listed.base_url) == (own.identity.ref, own.node.base_url)
        assert publisher.unpublished() == ""
        # Nothing more to do.
        handed = len(own.node.served)
        here.clock.advance(3600 * 3)
        await publisher.publish()
        assert len(own.node.served) == handed


async def test_changes_are_published_with_higher_versions(tmp_path: Path, own: Own) -> None:
    async with keeping(tmp_path / "d") as (keeper, shelf), serving(keeper) as source:
        admit(shelf, own)
        await keeper.sign()
        versions = []
        for wanted in (own.wanted, "", own.wanted, ""):
            # Each time after a restart: the last version is on the disk.
            async with side(tmp_path, source) as here:
                own.wanted = wanted
                await here.sources.refresh(source)
                await own.publisher(here).publish()
                await here.sources.refresh(source)
                found = here.sources.document(source.key)
                assert found is not None
                (record,) = found.records
                versions.append(record.version)
                assert record.status == ("active" if wanted else "retired")
                assert len(here.book.nodes()) == (1 if wanted else 0)
        assert versions == sorted(set(versions))


async def test_nothing_is_handed_in_where_no_directory_of_ours_is(tmp_path: Path, own: Own) -> None:
    """Another's keeper would answer that it does not admit us, which is not what is amiss."""
    async with keeping(tmp_path / "d") as (keeper, _), serving(keeper) as right:
        await keeper.sign()
        wrong = Source(ANN.address, right.place)
        async with side(tmp_path, wrong) as here:
            publisher = own.publisher(here)
            await here.sources.refresh(wrong)
            await publisher.publish()
            ((code, message),) = here.standing_alerts().items()
            assert code == "directory_refused" and "another key" in message
            assert "another key" in publisher.unpublished()


async def test_what_stands_in_the_way_is_said(tmp_path: Path, own: Own) -> None:
    async with keeping(tmp_path / "d") as (keeper, shelf), serving(keeper) as source:
        admit(shelf, own)
        await keeper.sign()
        async with side(tmp_path, source) as here:
            publisher = own.publisher(here)
            await own.node.stop()
            await publisher.publish()
            assert "cannot be reached from outside" in here.standing_alerts()["record_refused"]
    async with side(tmp_path) as here:
        assert "RELAY_DIRECTORIES" in own.publisher(here).unpublished()
        own.wanted = ""
        assert "RELAY_PUBLIC_URL" in own.publisher(here).unpublished()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Canned(500, b"<html>"), "answered 500"),
        (Canned(400, b'{"error": {"message": "no\\u001b[2J\\u202e thanks"}}'), "no[2J thanks"),
        (Canned(400, b"x" * 100_000), "longer than"),
        (Canned(307, b""), "answered 307"),
        (Canned(does="close"), "cannot be reached"),
    ],
)
async def test_bad_keepers(tmp_path: Path, own: Own, answer: Canned, words: str) -> None:
    keeper = LabNode(1, always_target=answer)
    await keeper.start()
    source = Source(ANN.address, keeper.base_url)
    async with side(tmp_path, source) as here:
        await own.publisher(here).publish()
        assert words in here.standing_alerts()["record_refused"]
        (seen,) = keeper.served
        assert (seen.method, seen.path) == ("POST", "/v1/zs/directory/records")
    await keeper.stop()


async def test_a_plain_file_takes_no_records(tmp_path: Path, own: Own) -> None:
    file = tmp_path / "d.json"
    file.write_bytes(document())
    source = Source(ANN.address, str(file))
    async with side(tmp_path, source) as here:
        await own.publisher(here).publish()
        assert here.standing_alerts() == {}


async def test_it_runs_and_wakes(tmp_path: Path, own: Own) -> None:
    async with keeping(tmp_path / "d") as (keeper, shelf), serving(keeper) as source:
        admit(shelf, own)
        await keeper.sign()
        async with side(tmp_path, source) as here:
            wanted, own.wanted = own.wanted, ""
            publisher = own.publisher(here)
            running = spawn(publisher.run(), name="publisher")
            await asyncio.sleep(0.05)
            assert keeper.nodes == 0
            own.wanted = wanted
            publisher.changed()
            for _ in range(200):
                if keeper.nodes:
                    break
                await asyncio.sleep(0.01)
            assert keeper.nodes == 1
            await cancel_and_wait(running)


async def test_an_imported_certificate_that_ends(tmp_path: Path, own: Own) -> None:
    ends = certificate(ANN, signing=own.identity.signing_addr, expires_at=NOW + 10 * DAY)
    own.identity.adopt(json.dumps(ends).encode())
    clock = FakeClock(NOW * 1000)
    secrets = FileSecrets(tmp_path / "own")
    own.identity = Identity.open(secrets, tmp_path / "own" / "network", clock, FakeRng())
    async with side(tmp_path, clock=clock) as here:
        publisher = own.publisher(here)
        await publisher.publish()
        assert "ends in 10 days" in here.standing_alerts()["certificate_ends"]
        clock.advance(10 * DAY)
        await publisher.publish()
        assert "is over" in here.standing_alerts()["certificate_ends"]
        decode_address(own.identity.signing_addr)
