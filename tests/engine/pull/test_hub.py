"""Hub pulls end to end: huggingface_hub in its child, our own transfer, a Hub on loopback."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections import namedtuple
from pathlib import Path

import pytest

from relaydesk.core.errors import FaultError
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.pull import disk
from relaydesk.engine.pull.pulled import Progress
from relaydesk.engine.pull.service import PullService
from tests.support.fake_hub import COMMIT, FakeHub, gguf_bytes

TOKEN = "hf_thesecrettoken"
FILES = {
    "README.md": b"# a model",
    "m-Q4_K_M.gguf": gguf_bytes(300_000, 1),
    "m-F16-00001-of-00002.gguf": gguf_bytes(200_000, 2),
    "m-F16-00002-of-00002.gguf": gguf_bytes(100_000, 3),
    "mmproj-m-F16.gguf": gguf_bytes(50_000, 4),
}


def service(hub: FakeHub, folder: Path, **settings: str) -> PullService:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "HF_ENDPOINT": hub.url} | settings
    return PullService(folder / "models", SystemClock(), environ=environ, sleep=no_wait)


async def no_wait(seconds: float) -> None:
    del seconds


async def refused(
    hub: FakeHub, folder: Path, reference: str = "hf:owner/repo", **settings: str
) -> FaultError:
    with pytest.raises(FaultError) as caught:
        await service(hub, folder, **settings).pull(reference)
    assert TOKEN not in caught.value.fault.sentence
    assert not [path for path in (folder / "models").rglob("*") if path.is_file()]
    return caught.value


async def test_the_preferred_file_and_its_projector(tmp_path: Path) -> None:
    reports: list[Progress] = []
    async with FakeHub(FILES) as hub:
        pulled = await service(hub, tmp_path).pull("hf:owner/repo", on_progress=reports.append)
    folder = tmp_path / "models" / "owner--repo"
    assert pulled.path == folder / "m-Q4_K_M.gguf"
    assert pulled.path.read_bytes() == FILES["m-Q4_K_M.gguf"]
    assert pulled.files == (pulled.path,)
    assert pulled.size == 300_000
    assert pulled.sha256 == hashlib.sha256(FILES["m-Q4_K_M.gguf"]).hexdigest()
    assert pulled.source == "hf:owner/repo"
    assert pulled.suggested_name == "repo"
    assert pulled.projector == folder / "mmproj-m-F16.gguf"
    assert pulled.projector.read_bytes() == FILES["mmproj-m-F16.gguf"]
    assert {path.name for path in folder.iterdir()} == {"m-Q4_K_M.gguf", "mmproj-m-F16.gguf"}
    # Bytes are asked for by commit, so that the files of one model are of one revision.
    assert all(f"/resolve/{COMMIT}/" in one.path for one in hub.fetched)
    assert [report.stage for report in reports][:2] == ["asking", "checking"]
    assert reports[-1] == Progress("downloading", 350_000, 350_000, reports[-1].rate, resumable=True)


async def test_all_parts_of_a_split_model_and_no_byte_twice(tmp_path: Path) -> None:
    async with FakeHub(FILES) as hub:
        pulls = service(hub, tmp_path)
        pulled = await pulls.pull("hf:owner/repo:f16", projector=False)
        assert [path.name for path in pulled.files] == [
            "m-F16-00001-of-00002.gguf",
            "m-F16-00002-of-00002.gguf",
        ]
        assert pulled.path == pulled.files[0]
        assert pulled.size == 300_000
        assert pulled.projector is None
        assert pulled.suggested_name == "repo:f16"
        assert hub.sent == 300_000
        again = await pulls.pull("hf:owner/repo/m-F16-00002-of-00002.gguf", projector=False)
        assert again.files == pulled.files
        assert hub.sent == 300_000
        pulled.files[1].write_bytes(b"GGUF" + b"x" * 99_996)
        await pulls.pull("hf:owner/repo:F16", projector=False)
        assert hub.sent == 400_000
    assert pulled.files[1].read_bytes() == FILES["m-F16-00002-of-00002.gguf"]


async def test_a_drop_at_half_resumes(tmp_path: Path) -> None:
    content = gguf_bytes(2_000_000)
    async with FakeHub({"m.gguf": content}, cut_after=[1_000_000]) as hub:
        pulled = await service(hub, tmp_path).pull("hf:owner/repo")
    assert pulled.path.read_bytes() == content
    assert hub.fetched[1].range is not None
    assert hub.sent < 2_600_000


@pytest.mark.parametrize("where", ["variable", "file"])
async def test_the_token_is_found_and_goes_to_the_hub_only(tmp_path: Path, where: str) -> None:
    settings = {"HF_TOKEN": TOKEN}
    if where == "file":
        (tmp_path / "hf").mkdir()
        (tmp_path / "hf" / "token").write_text(TOKEN + "\n")
        settings = {"HF_HOME": str(tmp_path / "hf")}
    async with FakeHub(FILES) as cdn, FakeHub(FILES, token=TOKEN, cdn=cdn) as hub:
        await service(hub, tmp_path, **settings).pull("hf:owner/repo", projector=False)
    assert {one.authorization for one in hub.seen} == {f"Bearer {TOKEN}"}
    assert {one.authorization for one in cdn.seen} == {None}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
async def test_the_token_is_in_no_child(tmp_path: Path) -> None:
    async with FakeHub(FILES, token=TOKEN, list_delay=0.4) as hub:
        pulling = asyncio.ensure_future(service(hub, tmp_path, HF_TOKEN=TOKEN).pull("hf:owner/repo"))
        while not hub.seen:
            await asyncio.sleep(0.01)
        children = [
            path for path in Path("/proc").iterdir() if path.name.isdigit() and _parent(path) == os.getpid()
        ]
        seen = [(path / "environ").read_bytes() + (path / "cmdline").read_bytes() for path in children]
        await pulling
    assert any(b"hub_child" in text for text in seen)
    assert not any(TOKEN.encode() in text for text in seen)


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


@pytest.mark.parametrize(
    ("hub", "settings", "code", "says"),
    [
        (FakeHub(FILES, gated=True), {}, "refused", "then set HF_TOKEN"),
        (FakeHub(FILES, gated=True), {"HF_TOKEN": TOKEN}, "refused", "with the account of this token"),
        (FakeHub(FILES, token=TOKEN), {}, "not_found", "for a private one set HF_TOKEN"),
        (FakeHub(FILES, unlisted=True), {}, "not_found", "no repository owner/repo"),
        (FakeHub(FILES, list_status=500), {}, "pull_failed", "answered 500"),
        (FakeHub(FILES), {"HF_HUB_OFFLINE": "1"}, "pull_failed", "HF_HUB_OFFLINE"),
        (FakeHub(FILES), {"HF_TOKEN": "hf_a\r\nb"}, "bad_setting", "characters that no token has"),
        (FakeHub({"a.safetensors": b"x"}), {}, "not_found", "no GGUF model"),
        (FakeHub(FILES, lies={"m-Q4_K_M.gguf": "0" * 64}), {}, "pull_failed", "not what the Hub lists"),
        (FakeHub({"m.gguf": b"<html>no</html>"}), {}, "bad_model_file", "is not a GGUF file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_refusals_are_one_sentence(
    tmp_path: Path, hub: FakeHub, settings: dict[str, str], code: str, says: str
) -> None:
    async with hub:
        error = await refused(hub, tmp_path, **settings)
    assert error.fault.code == code
    assert says in error.fault.sentence


async def test_a_dead_hub_is_told_within_seconds(tmp_path: Path) -> None:
    async with FakeHub(FILES) as hub:
        pass
    started = time.monotonic()
    error = await refused(hub, tmp_path)
    assert time.monotonic() - started < 5
    assert error.fault.message == "the Hub at 127.0.0.1 cannot be reached"


async def test_a_disk_without_room_is_told_before_a_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: usage(1 << 40, 1 << 40, 64 << 20))
    async with FakeHub(FILES) as hub:
        error = await refused(hub, tmp_path)
    assert error.fault.code == "storage_failed"
    assert "has 64 MiB free and the model needs 65 MiB" in error.fault.message
    assert hub.fetched == []
