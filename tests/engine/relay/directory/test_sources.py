from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relaydesk.core.relay.directory.document import MAX_BYTES
from relaydesk.core.relay.directory.source import Source
from relaydesk.engine.relay.directory import fetch as fetching
from relaydesk.engine.relay.directory.sources import LEAST_S, REFRESH_S
from relaydesk.engine.tasks import cancel_and_wait, spawn
from tests.support.clock import FakeClock
from tests.support.directory_rig import Side, side
from tests.support.directory_world import ANN, DAY, KEEPER, NOW, OTHER, document, record
from tests.support.lab_relay import CLOSE, HANG, Canned, LabNode

TAG = ("ETag", '"one"')


@pytest.fixture
async def server() -> AsyncIterator[LabNode]:
    """A web server that answers what a test says."""
    made = LabNode(1)
    await made.start()
    yield made
    await made.stop()


def at(server: LabNode) -> Source:
    return Source(KEEPER.address, server.base_url)


def good(data: bytes | None = None) -> Canned:
    return Canned(200, document() if data is None else data, headers=(TAG,))


async def refreshed(here: Side, server: LabNode, answer: Canned) -> bool:
    server.always_target = answer
    return await here.sources.refresh(at(server))


async def test_a_good_directory_is_taken_and_asked_for_by_its_tag(tmp_path: Path, server: LabNode) -> None:
    async with side(tmp_path, at(server)) as here:
        assert await refreshed(here, server, good())
        assert len(here.book.nodes()) == 2
        (view,) = here.sources.views()
        assert (view.version, view.nodes, view.problem) == (7, 2, "")
        assert (view.issued_at_ms, view.expires_at_ms) == ((NOW - 3600) * 1000, (NOW + 3600) * 1000)
        assert await refreshed(here, server, Canned(304, headers=(TAG,)))
        first, second = server.served
        assert first.path == "/v1/zs/directory"
        assert "if-none-match" not in first.headers
        assert "user-agent" not in first.headers
        assert second.headers["if-none-match"] == '"one"'
        assert len(here.book.nodes()) == 2
        assert here.standing_alerts() == {}


BAD = {
    "huge by length": (Canned(200, b"x" * (MAX_BYTES + 1)), "longer than"),
    "not json": (good(b"<html>"), "signed document"),
    "unsigned": (good(b'{"version": 9, "operators": [], "records": []}'), "signed document"),
    "wrongly signed": (good(document(signer=OTHER)), "signature"),
    "another key's": (good(document(OTHER)), "another key"),
    "expired": (good(document(issued_at=NOW - DAY, expires_at=NOW - 1)), "expired"),
    "from the future": (good(document(issued_at=NOW + 999, expires_at=NOW + DAY)), "from now"),
    "redirect": (Canned(302, b"", headers=(("Location", "http://127.0.0.1:1/"),)), "elsewhere"),
    "an error": (Canned(500, b"x"), "answered 500"),
    "a 304 nobody asked for": (Canned(304), "elsewhere"),
    "gzip": (
        Canned(200, gzip.compress(b"0" * 10_000_000), headers=(("Content-Encoding", "gzip"),)),
        "compressed",
    ),
    "cut off": (Canned(200, document()[:900], does="cut"), "read"),
    "closed": (CLOSE, "read"),
}


@pytest.mark.parametrize("name", BAD)
async def test_bad_answers_take_nothing_away(tmp_path: Path, server: LabNode, name: str) -> None:
    answer, words = BAD[name]
    async with side(tmp_path, at(server)) as here:
        assert not await refreshed(here, server, answer)
        assert here.book.nodes() == ()
        # One alert for one cause: where it is, what is amiss, what follows.
        ((_, message),) = here.standing_alerts().items()
        assert server.base_url in message and words in message and "only it admits is not used" in message
        assert words in here.sources.views()[0].problem
        assert await refreshed(here, server, good())
        assert here.standing_alerts() == {}
    async with side(tmp_path, at(server)) as here:
        assert not await refreshed(here, server, answer)
        assert len(here.book.nodes()) == 2
        ((alert, message),) = here.standing_alerts().items()
        assert "used until it expires" in message
        assert alert in ("directory_refused", "directory_unreachable")


HUB = (
    b'{"error":{"message":"no API key was given: send it","type":"x","param":null,"code":"invalid_api_key"}}'
)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Canned(401, HUB), "RELAY_NETWORK_LISTEN"),
        (Canned(401, b"<html>"), "that its keeper runs"),
        (CLOSE, "that its keeper runs"),
        (good(document(OTHER)), "pin the address that its keeper gives"),
        (good(b"<html>"), "something else answers there"),
        (good(document(signer=OTHER)), "ask its keeper"),
    ],
)
async def test_the_next_step_fits_the_cause(
    tmp_path: Path, server: LabNode, answer: Canned, words: str
) -> None:
    async with side(tmp_path, at(server)) as here:
        assert not await refreshed(here, server, answer)
        (alert,) = here.alerts.view().alerts
        assert words in alert.hint and alert.hint in here.sources.views()[0].problem
        assert here.sources.unusable(at(server))
        assert ("hub's port" in alert.message) == (answer.body == HUB)
        assert await refreshed(here, server, good())
        assert not here.sources.unusable(at(server))


async def test_a_cause_is_logged_once(
    tmp_path: Path, server: LabNode, caplog: pytest.LogCaptureFixture
) -> None:
    async with side(tmp_path, at(server)) as here:
        for answer in (Canned(500, b"x"), Canned(500, b"x"), Canned(503, b"x")):
            assert not await refreshed(here, server, answer)
        assert await refreshed(here, server, good())
    said = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(said) == 2 and all(server.base_url in each for each in said)


async def test_a_slow_one_is_given_up(
    tmp_path: Path, server: LabNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "FETCH_S", 0.2)
    async with side(tmp_path, at(server)) as here:
        assert not await refreshed(here, server, HANG)
        assert "0.2 s" in here.sources.views()[0].problem


async def test_a_trickle_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await asyncio.sleep(0.02)

    monkeypatch.setattr(fetching, "FETCH_S", 0.3)
    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    source = Source(KEEPER.address, f"http://127.0.0.1:{port}")
    async with side(tmp_path, source) as here:
        assert not await here.sources.refresh(source)
        assert "within 0.3 s" in here.sources.views()[0].problem
    server.close()


async def test_it_never_goes_back_even_after_a_restart(tmp_path: Path, server: LabNode) -> None:
    shown = {
        "rollback": document(version=6, records=[record(ANN)]),
        "conflict": document(name="another of this version"),
        "rollback in time": document(version=8, issued_at=NOW - 7000),
    }
    for kind, data in shown.items():
        async with side(tmp_path, at(server)) as here:
            assert await refreshed(here, server, good())
            for _ in range(2):
                assert not await refreshed(here, server, good(data)), kind
            assert len(here.book.nodes()) == 2
            assert list(here.standing_alerts()) == ["directory_conflict"]
        async with side(tmp_path, at(server)) as here:
            assert not await refreshed(here, server, good(data)), kind
            assert len(here.book.nodes()) == 2
            assert list(here.standing_alerts()) == ["directory_conflict"]
    async with side(tmp_path, at(server)) as here:
        assert await refreshed(here, server, good(document(version=8)))
        assert here.standing_alerts() == {}


async def test_what_the_disk_has_is_used_until_it_expires(tmp_path: Path, server: LabNode) -> None:
    clock = FakeClock(NOW * 1000)
    async with side(tmp_path, at(server), clock=clock) as here:
        assert await refreshed(here, server, good())
    await server.stop()
    async with side(tmp_path, at(server), clock=clock) as here:
        assert len(here.book.nodes()) == 2
        assert not await here.sources.refresh(at(server))
        assert len(here.book.nodes()) == 2
        clock.advance(3600)
        assert not await here.sources.refresh(at(server))
        assert here.book.nodes() == here.book.entries() == ()
        ((code, message),) = here.standing_alerts().items()
        assert code == "directory_unreachable" and "only it admits is not used" in message
    async with side(tmp_path, at(server), clock=clock) as here:
        assert here.book.entries() == ()


async def test_what_is_no_longer_pinned_is_not_used(tmp_path: Path, server: LabNode) -> None:
    async with side(tmp_path, at(server)) as here:
        assert await refreshed(here, server, good())
    async with side(tmp_path) as here:
        assert here.book.entries() == ()


async def test_a_file_and_its_faults(tmp_path: Path) -> None:
    file = tmp_path / "d.json"
    source = Source(KEEPER.address, str(file))
    async with side(tmp_path, source) as here:
        assert not await here.sources.refresh(source)
        assert "no such file" in here.sources.views()[0].problem
        file.mkdir()
        assert not await here.sources.refresh(source)
        file.rmdir()
        file.write_bytes(b"x" * (MAX_BYTES + 1))
        assert not await here.sources.refresh(source)
        assert "larger than" in here.sources.views()[0].problem
        file.write_bytes(document())
        assert await here.sources.refresh(source)
        assert await here.sources.refresh(source)
        assert len(here.book.nodes()) == 2


async def test_two_places_of_one_directory(tmp_path: Path, server: LabNode) -> None:
    file = tmp_path / "d.json"
    file.write_bytes(document(version=6, records=[]))
    mirror = Source(KEEPER.address, str(file))
    async with side(tmp_path, at(server), mirror) as here:
        assert await here.sources.refresh(mirror)
        assert here.book.nodes() == ()
        assert await refreshed(here, server, good())
        assert len(here.book.nodes()) == 2
        # A mirror that lags shows what is old: said, and not taken.
        file.write_bytes(document(version=5, records=[]))
        assert not await here.sources.refresh(mirror)
        assert len(here.book.nodes()) == 2


async def _turns(count: int = 30) -> None:
    for _ in range(count):
        await asyncio.sleep(0.005)


async def test_it_looks_again_in_time_and_backs_off(tmp_path: Path, server: LabNode) -> None:
    async with side(tmp_path, at(server)) as here:
        server.always_target = CLOSE
        running = spawn(here.sources.run(), name="sources")
        await _turns()
        asked = [len(server.served)]
        for pause in (10, 20, 40):
            here.clock.advance(pause - 1)
            await _turns(6)
            assert len(server.served) == asked[-1]
            here.clock.advance(1)
            await _turns()
            asked.append(len(server.served))
        assert asked == sorted(set(asked))
        server.always_target = good()
        here.clock.advance(80)
        await _turns()
        assert len(here.book.nodes()) == 2
        done = len(server.served)
        here.clock.advance(REFRESH_S - 1)
        await _turns(6)
        assert len(server.served) == done
        here.clock.advance(1)
        await _turns()
        assert len(server.served) == done + 1
        here.sources.refresh_soon(at(server))
        await _turns()
        assert len(server.served) == done + 2
        await cancel_and_wait(running)


async def test_it_looks_again_before_the_end(tmp_path: Path, server: LabNode) -> None:
    async with side(tmp_path, at(server)) as here:
        server.always_target = good(document(expires_at=NOW + 100))
        running = spawn(here.sources.run(), name="sources")
        await _turns()
        assert len(server.served) == 1
        here.clock.advance(50)
        await _turns()
        assert len(server.served) == 2
        assert LEAST_S < 50
        await cancel_and_wait(running)
