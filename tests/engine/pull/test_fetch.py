from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from relaydesk.core.errors import EnvError, FaultError, LocalError, PeerError
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.pull import part as part_module
from relaydesk.engine.pull.fetch import Fetcher, Remote
from relaydesk.engine.pull.meter import Meter
from relaydesk.engine.pull.part import Binding, PartFile
from relaydesk.engine.pull.pulled import Progress
from tests.support.fake_hub import FakeHub, gguf_bytes, git_blob

SIZE = 3_000_001
CONTENT = gguf_bytes(SIZE)
SHA = hashlib.sha256(CONTENT).hexdigest()
TOKEN = "hf_secretsecret"


class Rig:
    """A fetcher on a fake Hub, with everything it waited for and reported."""

    def __init__(self, hub: FakeHub, session: aiohttp.ClientSession, folder: Path, token: str | None) -> None:
        self.hub = hub
        self.waits: list[float] = []
        self.reports: list[Progress] = []
        self.meter = Meter(SystemClock(), self.reports.append, resumable=True)
        self.meter.start("downloading", SIZE)
        self.target = folder / "owner--repo" / "m.gguf"
        self.part = self.target.with_name("m.gguf.part")
        self.fetcher = Fetcher(session, URL(hub.url), token, self._sleep, stall_s=0.5)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def remote(self, sha256: str | None = SHA, blob: str | None = None, size: int = SIZE) -> Remote:
        url = URL(self.hub.url) / "owner/repo/resolve/main/m.gguf"
        return Remote(url, "owner/repo/m.gguf", size, sha256, blob, f"sha256:{sha256}")

    async def fetch(self, remote: Remote | None = None) -> str:
        return await self.fetcher.fetch(remote or self.remote(), self.target, self.meter)

    async def refused(self, remote: Remote | None = None) -> FaultError:
        with pytest.raises(FaultError) as caught:
            await self.fetch(remote)
        assert TOKEN not in caught.value.fault.sentence
        return caught.value

    def left(self) -> set[str]:
        folder = self.target.parent
        return {path.name for path in folder.iterdir()} if folder.exists() else set()


@pytest.fixture
async def hub() -> AsyncIterator[FakeHub]:
    async with FakeHub({"m.gguf": CONTENT}) as hub:
        yield hub


@pytest.fixture
async def rig(hub: FakeHub, tmp_path: Path) -> AsyncIterator[Rig]:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield Rig(hub, session, tmp_path, TOKEN)


async def test_fetches_checks_and_leaves_only_the_file(rig: Rig) -> None:
    assert await rig.fetch() == SHA
    assert rig.target.read_bytes() == CONTENT
    assert rig.left() == {"m.gguf"}
    assert rig.reports[-1].done == SIZE
    assert rig.waits == []


async def test_a_drop_at_half_is_resumed_not_repeated(rig: Rig) -> None:
    rig.hub.cut_after = [SIZE // 2]
    assert await rig.fetch() == SHA
    first, second = rig.hub.fetched
    assert first.range is None
    assert second.range is not None
    assert second.if_range == f'"{SHA[:16]}"'
    # What was in flight when the connection broke may come twice, no more.
    assert SIZE <= rig.hub.sent < SIZE + 600_000
    assert rig.waits == [1.0]
    assert rig.reports[-1].done == SIZE


async def test_a_chunked_answer_that_ends_early_is_a_drop(rig: Rig) -> None:
    rig.hub.chunked = True
    rig.hub.cut_after = [1_000_000]
    assert await rig.fetch() == SHA
    assert len(rig.hub.fetched) == 2


async def test_a_cancelled_pull_goes_on_where_it_was(rig: Rig) -> None:
    rig.hub.delay = 0.01
    task = asyncio.ensure_future(rig.fetch())
    await rig.hub.serving.wait()
    while not (rig.part.exists() and rig.part.stat().st_size >= 1 << 20):
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert rig.left() == {"m.gguf.part", "m.gguf.part.json"}
    kept = rig.part.stat().st_size
    rig.hub.delay = 0.0
    assert await rig.fetch() == SHA
    assert rig.hub.fetched[-1].range == f"bytes={kept}-"
    assert rig.hub.fetched[-1].sent == SIZE - kept
    assert rig.left() == {"m.gguf"}


async def test_a_server_that_changed_its_file_sends_all_of_it(rig: Rig) -> None:
    rig.hub.cut_after = [SIZE // 2]
    rig.target.parent.mkdir()
    rig.part.write_bytes(CONTENT[:900_000])
    note = {"identity": f"sha256:{SHA}", "size": SIZE, "etag": '"older"'}
    rig.part.with_name("m.gguf.part.json").write_text(json.dumps(note))
    assert await rig.fetch() == SHA
    assert rig.hub.fetched[0].if_range == '"older"'
    assert rig.hub.fetched[1].if_range == f'"{SHA[:16]}"'


@pytest.mark.parametrize("note", [None, '{"identity": "sha256:other", "size": 3000001}', "\x00", "[]"])
async def test_a_part_of_something_else_is_thrown_away(rig: Rig, note: str | None) -> None:
    rig.target.parent.mkdir()
    rig.part.write_bytes(CONTENT[:900_000])
    if note is not None:
        rig.part.with_name("m.gguf.part.json").write_text(note)
    assert await rig.fetch() == SHA
    assert rig.hub.fetched[0].range is None


async def test_a_spoiled_part_costs_one_more_download(rig: Rig) -> None:
    rig.target.parent.mkdir()
    rig.part.write_bytes(b"\0" * 900_000)
    note = {"identity": f"sha256:{SHA}", "size": SIZE, "etag": ""}
    rig.part.with_name("m.gguf.part.json").write_text(json.dumps(note))
    assert await rig.fetch() == SHA
    assert [one.range for one in rig.hub.fetched] == ["bytes=900000-", None]
    assert rig.reports[-1].done == SIZE


async def test_a_server_without_ranges_starts_over(rig: Rig) -> None:
    rig.hub.cut_after = [SIZE // 2]
    rig.hub.ignore_range = True
    assert await rig.fetch() == SHA
    assert rig.hub.sent >= SIZE + SIZE // 2
    assert rig.reports[-1].done == SIZE


async def test_a_range_that_begins_elsewhere_is_not_appended(rig: Rig) -> None:
    rig.hub.cut_after = [SIZE // 2]
    rig.hub.shift_range = 1000
    assert await rig.fetch() == SHA
    assert [one.range is None for one in rig.hub.fetched] == [True, False, True]


async def test_wrong_content_is_not_kept(rig: Rig) -> None:
    error = await rig.refused(rig.remote(sha256="0" * 64))
    assert isinstance(error, PeerError)
    assert error.fault.code == "pull_failed"
    assert "is not what the Hub lists" in error.fault.message
    assert len(rig.hub.fetched) == 1
    assert rig.left() == set()


async def test_small_files_are_checked_by_their_git_hash(rig: Rig) -> None:
    assert await rig.fetch(rig.remote(sha256=None, blob=git_blob(CONTENT))) == SHA
    rig.target.unlink()
    await rig.refused(rig.remote(sha256=None, blob="0" * 40))
    assert rig.left() == set()


async def test_a_size_that_is_not_the_listed_one(rig: Rig) -> None:
    error = await rig.refused(rig.remote(size=SIZE + 7))
    assert f"with {SIZE + 7} bytes and serves {SIZE}" in error.fault.message
    rig.hub.chunked = True
    error = await rig.refused(rig.remote(size=SIZE - 7))
    assert "not what the Hub lists" in error.fault.message
    assert rig.left() == set()


async def test_overload_is_waited_out_as_the_server_says(rig: Rig) -> None:
    rig.hub.statuses = [503, 429]
    assert await rig.fetch() == SHA
    assert rig.waits == [3.0, 3.0]


async def test_gives_up_after_some_tries_without_a_byte(rig: Rig) -> None:
    rig.hub.cut_after = [1_000_000] + [0] * 20
    error = await rig.refused()
    assert error.fault.code == "pull_failed"
    assert "pull it again: it goes on at 3" in error.fault.hint
    assert rig.waits == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert rig.left() == {"m.gguf.part", "m.gguf.part.json"}


async def test_a_stalled_server_is_left_and_asked_again(rig: Rig) -> None:
    rig.hub.chunk = 1 << 20
    rig.hub.delay = 0.8
    task = asyncio.ensure_future(rig.fetch())
    await rig.hub.serving.wait()
    rig.hub.delay = 0.0
    assert await task == SHA
    assert len(rig.hub.fetched) == 2


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (401, "refused", "only to accounts"),
        (403, "refused", "only to accounts"),
        (404, "not_found", "is gone"),
        (418, "pull_failed", "answered 418"),
    ],
)
async def test_final_answers_are_one_sentence(rig: Rig, status: int, code: str, says: str) -> None:
    rig.hub.statuses = [status]
    error = await rig.refused()
    assert error.fault.code == code
    assert says in error.fault.message
    assert rig.waits == []
    assert rig.left() == set()


async def test_the_token_stays_with_the_hub(rig: Rig) -> None:
    async with FakeHub({"m.gguf": CONTENT}) as cdn:
        rig.hub.token = TOKEN
        rig.hub.cdn = cdn
        assert await rig.fetch() == SHA
    assert [one.authorization for one in rig.hub.fetched] == [f"Bearer {TOKEN}"]
    assert [one.authorization for one in cdn.fetched] == [None]


async def test_a_redirect_back_home_gets_no_token_either(rig: Rig) -> None:
    async with FakeHub({}) as cdn:
        rig.hub.redirect = f"{cdn.url}/owner/repo/resolve/main/m.gguf"
        cdn.redirect = f"{rig.hub.url}/cdn/m.gguf"
        assert await rig.fetch() == SHA
    assert [one.authorization for one in rig.hub.fetched] == [f"Bearer {TOKEN}", None]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://x/y", "http://[", "data:,x"])
async def test_hostile_redirects(rig: Rig, target: str) -> None:
    rig.hub.redirect = target
    error = await rig.refused()
    assert "redirects to no valid address" in error.fault.message


async def test_a_redirect_that_never_ends(rig: Rig) -> None:
    rig.hub.redirect = f"{rig.hub.url}/owner/repo/resolve/main/m.gguf"
    error = await rig.refused()
    assert "redirects more than 8 times" in error.fault.message


async def test_a_dead_server_is_told_at_once(tmp_path: Path) -> None:
    async with FakeHub({}) as hub:
        pass
    async with aiohttp.ClientSession() as session:
        rig = Rig(hub, session, tmp_path, None)
        error = await rig.refused()
    assert "it cannot be reached" in error.fault.message
    assert rig.waits == []
    assert rig.left() == set()


async def test_two_pulls_of_one_file(rig: Rig) -> None:
    other = PartFile(rig.target, Binding(f"sha256:{SHA}", SIZE), git_blob=False)
    other.open()
    try:
        error = await rig.refused()
    finally:
        other.close()
    assert isinstance(error, EnvError)
    assert error.fault.code == "conflict"
    assert rig.hub.fetched == []


@pytest.mark.parametrize("begun_again", [False, True])
def test_a_part_that_was_finished_in_between_is_let_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun_again: bool
) -> None:
    """The lock of the second was waiting on the very file that got its name meanwhile."""
    first = PartFile(tmp_path / "m.gguf", Binding("a", 4), git_blob=False)
    second = PartFile(tmp_path / "m.gguf", Binding("b", 4), git_blob=False)
    first.open()
    first.write(b"GGUF")
    real = part_module.fcntl.flock

    def finish_then_lock(fd: int, how: int) -> None:
        first.finish()
        if begun_again:
            first.path.write_bytes(b"of a third")
        real(fd, how)

    monkeypatch.setattr(part_module.fcntl, "flock", finish_then_lock)
    with pytest.raises(EnvError) as caught:
        second.open()
    assert caught.value.fault.code == "conflict"
    assert (tmp_path / "m.gguf").read_bytes() == b"GGUF"


async def test_a_full_disk_keeps_the_part(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0

    def write(self: PartFile, data: bytes) -> None:
        nonlocal written
        written += len(data)
        if written > 1_500_000:
            raise OSError(28, "No space left on device")
        real(self, data)

    real = PartFile.write
    monkeypatch.setattr(PartFile, "write", write)
    error = await rig.refused()
    assert isinstance(error, EnvError)
    assert error.fault.code == "storage_failed"
    assert "no space left on device" in error.fault.message
    assert "m.gguf" not in rig.left()
    monkeypatch.undo()
    assert await rig.fetch() == SHA
    assert rig.hub.fetched[-1].range is not None


async def test_a_folder_that_cannot_be_written(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "owner--repo").write_text("a file where a folder belongs")
    error = await rig.refused()
    assert error.fault.code == "storage_failed"
    assert isinstance(error, EnvError) and not isinstance(error, LocalError)
