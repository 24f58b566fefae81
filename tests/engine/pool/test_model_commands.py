from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.codec import fault_of
from relaydesk.core.commands import (
    AddModel,
    CancelJob,
    Command,
    DiscoverModels,
    FitModel,
    LoadModel,
    Outcome,
    PullModel,
    RemoveModel,
    SetModel,
    UnloadModel,
)
from relaydesk.core.errors import EnvError, Fault
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.view.sections import JobView
from relaydesk.engine.clock import SystemRng
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.jobs import JobBoard
from relaydesk.engine.pool.model_commands import ModelCommands
from relaydesk.engine.pull.service import PullService
from relaydesk.store.secrets import FileSecrets
from tests.support import gguf_builder
from tests.support.fake_hub import FakeHub
from tests.support.scripted_engine import answer
from tests.support.scripted_hub import ScriptedHub


class Desk:
    """The commands of a scripted hub."""

    def __init__(self, hub: ScriptedHub, **environ: str) -> None:
        self.hub = hub
        self.model_dir = hub.dir / "models"
        self.secrets = FileSecrets(hub.dir)
        self.jobs = JobBoard(hub.clock, SystemRng(), hub.bus)
        environ = {"PATH": os.environ["PATH"], "HOME": str(hub.dir / "home"), **environ}
        self.pulls = PullService(self.model_dir, hub.clock, environ=environ)
        self.dispatcher = Dispatcher()
        ModelCommands(
            hub.pool, self.pulls, self.jobs, self.secrets, self.model_dir, hub.clock, environ
        ).register(self.dispatcher)

    async def do(self, command: Command) -> Any:
        outcome = await self.dispatcher.call(command)
        assert outcome.ok, outcome.fault
        return outcome.value

    async def refused(self, command: Command) -> Fault:
        outcome: Outcome = await self.dispatcher.call(command)
        assert not outcome.ok
        assert outcome.fault is not None
        assert outcome.fault.message
        return fault_of(outcome.fault)

    async def job(self, command: Command) -> JobView:
        """Start a job and wait for its end."""
        outcome = await self.dispatcher.call(command)
        assert outcome.job, outcome.fault
        await self.hub.until(lambda: self.seen(outcome.job).state != "running", 20)
        return self.seen(outcome.job)

    def seen(self, job_id: str | None) -> JobView:
        return next(job for job in self.jobs.view().jobs if job.id == job_id)

    def write(self, name: str, **changes: object) -> Path:
        path = self.hub.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gguf_builder.tiny(**changes))
        return path


@pytest.fixture
def desk(hub: ScriptedHub) -> Desk:
    return Desk(hub)


async def test_add_takes_name_size_and_projector_from_the_file(desk: Desk) -> None:
    path = desk.write("x/Tiny-Model.Q4_0.gguf", general__name="Tiny Model")
    first = await desk.do(AddModel(ModelSpec(name="", path=str(path), owned=True, sha256="f" * 64)))
    again = await desk.dispatcher.call(AddModel(ModelSpec(name="", path=str(path))))
    assert again.fault is not None
    assert again.fault.code == "conflict"
    assert first["name"] in again.fault.message
    # Another file of the same name, and the same file under a name of its own.
    other = desk.write("y/Tiny-Model.Q4_0.gguf", general__name="Tiny Model")
    second = await desk.do(AddModel(ModelSpec(name="", path=str(other))))
    assert first["name"]
    assert second["name"] == first["name"] + "-2"
    third = await desk.do(AddModel(ModelSpec(name="own", path=str(path))))
    await desk.do(RemoveModel(third["name"]))
    assert first["path"] == first["source"] == str(path)
    assert first["size_bytes"] == path.stat().st_size
    # Whatever a front says: a file that was there is not ours to delete.
    assert (first["owned"], first["sha256"]) == (False, "")
    await desk.do(RemoveModel(first["name"]))
    await desk.do(RemoveModel(second["name"]))
    assert path.exists()


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (ModelSpec(name="a"), "invalid_request"),
        (ModelSpec(name="a", path="/nowhere/x.gguf"), "not_found"),
        (ModelSpec(name="a", path="/dev/null"), "bad_model_file"),
        (ModelSpec(name="", kind="url", url="http://127.0.0.1:1"), "invalid_request"),
        (ModelSpec(name="a", kind="url", url="nonsense"), "invalid_request"),
    ],
)
async def test_what_cannot_be_added(desk: Desk, spec: ModelSpec, code: str) -> None:
    assert (await desk.refused(AddModel(spec))).code == code
    assert desk.hub.registry.names() == ()


async def test_a_servers_key_is_kept_as_a_secret_and_goes_with_it(desk: Desk) -> None:
    spec = ModelSpec(name="far/a", kind="url", url="http://127.0.0.1:9/v1", url_key_secret="default_key")
    shown = await desk.do(AddModel(spec, url_key="sk-very-secret"))
    assert "sk-very-secret" not in str(shown)
    name = shown["url_key_secret"]
    assert name != "default_key"  # no front may aim another secret at a server
    assert desk.secrets.get(name) == "sk-very-secret"
    await desk.do(RemoveModel("far/a"))
    assert desk.secrets.get(name) is None
    path = desk.write("a.gguf")
    assert (await desk.refused(AddModel(ModelSpec(name="a", path=str(path)), url_key="k"))).param == "url_key"


async def test_load_reports_progress_and_ends_warm(desk: Desk) -> None:
    await desk.hub.add("a")
    desk.hub.starter.gate.clear()
    outcome = await desk.dispatcher.call(LoadModel("a"))
    await desk.hub.until(lambda: desk.seen(outcome.job).done == 250)
    assert (desk.seen(outcome.job).kind, desk.seen(outcome.job).subject) == ("load", "a")
    desk.hub.starter.gate.set()
    await desk.hub.until(lambda: desk.seen(outcome.job).state == "done")
    assert desk.seen(outcome.job).note == "a is loaded"
    again = await desk.job(LoadModel("a"))
    assert again.state == "done"
    assert len(desk.hub.starter.starts) == 1


async def test_load_says_why_not(desk: Desk, tmp_path: Path) -> None:
    await desk.hub.add("a")
    desk.hub.starter.errors.append(EnvError("model_load_failed", "the engine said no", "try another"))
    job = await desk.job(LoadModel("a"))
    assert job.state == "failed"
    assert job.fault is not None
    assert (job.fault.message, job.fault.hint) == ("the engine said no", "try another")
    # An operator who asks does not wait for the back-off.
    assert (await desk.job(LoadModel("a"))).state == "done"
    assert (await desk.refused(LoadModel("nope"))).code == "model_not_found"
    desk.hub.pool.memory.pretend_mib = 10
    await desk.hub.add("b")
    assert (await desk.refused(LoadModel("b"))).code == "model_unavailable"


async def test_a_load_asked_for_while_the_last_engine_stops_is_a_load(desk: Desk) -> None:
    await desk.hub.add("a")
    desk.hub.starter.stop_s = 0.15
    await desk.hub.warm("a")
    desk.hub.pool.runner("a").unload(force=False)
    assert (await desk.job(LoadModel("a"))).state == "done"
    assert desk.hub.starter.alive == ["a"]


async def test_a_cancelled_load_stops_unless_requests_wait_for_it(desk: Desk) -> None:
    await desk.hub.add("a")
    desk.hub.starter.gate.clear()
    outcome = await desk.dispatcher.call(LoadModel("a"))
    await desk.hub.until(lambda: desk.hub.starter.starts)
    await desk.jobs.cancel(outcome.job or "")
    assert desk.seen(outcome.job).state == "cancelled"
    await desk.hub.until(lambda: desk.hub.pool.runner("a").life.state == "cold")
    outcome = await desk.dispatcher.call(LoadModel("a"))
    request = asyncio.create_task(desk.hub.chat())
    await desk.hub.until(lambda: desk.hub.pool.runner("a").waiting)
    await desk.jobs.cancel(outcome.job or "")
    desk.hub.starter.gate.set()
    assert (await request)[0] == 200


async def test_unload(desk: Desk) -> None:
    await desk.hub.add("a", aliases=("b",))
    assert (await desk.do(UnloadModel("b")))["note"] == "it was not loaded"
    await desk.hub.warm("a")
    assert (await desk.do(UnloadModel("b"))) == {"name": "a", "note": "unloaded"}
    assert desk.hub.starter.alive == []
    desk.hub.starter.reply = lambda _: answer("x", delay=0.15)
    request = asyncio.create_task(desk.hub.chat())
    await desk.hub.until(lambda: desk.hub.starter.open)
    assert "in use" in (await desk.do(UnloadModel("a")))["note"]
    assert (await request)[0] == 200
    await desk.hub.until(lambda: desk.hub.starter.alive == [])
    assert (await desk.refused(UnloadModel("nope"))).code == "model_not_found"


async def test_unload_takes_the_engine_along_that_embeds(desk: Desk) -> None:
    await desk.hub.add("a")
    embedder = desk.hub.registry.embedder("a")
    await desk.hub.warm(embedder)
    assert (await desk.do(UnloadModel("a"))) == {"name": "a", "note": "unloaded"}
    assert desk.hub.starter.alive == []
    await desk.hub.warm("a")
    await desk.hub.warm(embedder)
    await desk.do(RemoveModel("a"))
    assert desk.hub.starter.alive == []


async def test_remove_spares_what_is_in_use_and_ends_what_is_not(desk: Desk) -> None:
    await desk.hub.add("a")
    desk.hub.starter.reply = lambda _: answer("x", delay=0.15)
    request = asyncio.create_task(desk.hub.chat())
    await desk.hub.until(lambda: desk.hub.starter.open)
    assert (await desk.refused(RemoveModel("a"))).code == "conflict"
    assert (await request)[0] == 200
    assert desk.hub.starter.alive == ["a"]
    assert await desk.do(RemoveModel("a")) == {"name": "a", "deleted": []}
    assert desk.hub.starter.alive == []
    assert desk.hub.pool.runners() == ()
    assert (await desk.refused(RemoveModel("a"))).code == "model_not_found"
    assert (await desk.hub.chat(model="a"))[0] == 404


async def test_a_model_that_keeps_dying_can_be_removed(desk: Desk) -> None:
    await desk.hub.add("a")
    await desk.hub.warm("a")
    desk.hub.starter.crash("a")
    await desk.hub.until(lambda: desk.hub.pool.runner("a").life.restarting)
    await desk.do(RemoveModel("a"))
    starts = len(desk.hub.starter.starts)
    await asyncio.sleep(0.2)  # its restart would have been due
    assert len(desk.hub.starter.starts) == starts


async def owned(desk: Desk, name: str, path: Path, **fields: Any) -> None:
    await desk.hub.registry.add(ModelSpec(name=name, path=str(path), owned=True, **fields))


async def test_remove_deletes_only_what_was_pulled_and_nobody_else_uses(desk: Desk) -> None:
    pulled = desk.write("models/r/a.gguf")
    await owned(desk, "a", pulled)
    await owned(desk, "twin", pulled)
    assert (await desk.do(RemoveModel("a")))["deleted"] == []
    assert pulled.exists()
    await desk.hub.add("user", draft=str(pulled))
    assert (await desk.do(RemoveModel("twin")))["deleted"] == []
    assert pulled.exists()
    await desk.do(RemoveModel("user"))
    await owned(desk, "a", pulled)
    assert (await desk.do(RemoveModel("a")))["deleted"] == [str(pulled)]
    assert not pulled.exists()

    elsewhere = desk.write("elsewhere.gguf")
    await owned(desk, "b", elsewhere)
    assert (await desk.do(RemoveModel("b")))["deleted"] == []
    assert elsewhere.exists()


async def test_set_says_what_waits_for_the_next_load(desk: Desk) -> None:
    await desk.hub.add("a")
    assert (await desk.do(SetModel("a", {"ctx": 1024})))["note"] == ""
    await desk.hub.warm("a")
    assert (await desk.do(SetModel("a", {"ctx": 2048})))["note"]
    changed = await desk.do(SetModel("a", {"aliases": ["b"], "keep_alive_s": 0}))
    assert changed["note"] == ""
    assert changed["spec"]["aliases"] == ("b",)
    fault = await desk.refused(SetModel("a", {"size_bytes": 1}))
    assert (fault.code, fault.param) == ("invalid_request", "size_bytes")


async def test_a_shorter_keep_alive_unloads_at_once(desk: Desk) -> None:
    await desk.hub.add("a")
    await desk.hub.chat()
    await desk.do(SetModel("a", {"keep_alive_s": 0}))
    await desk.hub.until(lambda: desk.hub.starter.alive == [])


async def test_fit(desk: Desk) -> None:
    await desk.hub.add("a")
    report = await desk.do(FitModel("a"))
    assert report["fits"] is True
    assert report["need_mib"] == 83
    desk.hub.file("a").unlink()
    await desk.hub.registry.reread("a")
    assert (await desk.refused(FitModel("a"))).code == "not_found"


async def test_discover_marks_what_is_registered(desk: Desk) -> None:
    path = desk.write("home/.lmstudio/models/maker/repo/Tiny.gguf")
    rows = await desk.do(DiscoverModels())
    assert [(row["path"], row["registered"]) for row in rows] == [(str(path), False)]
    await desk.do(AddModel(ModelSpec(name="a", path=str(path))))
    assert [row["registered"] for row in await desk.do(DiscoverModels())] == [True]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"changes": {"slots": 0}}, "slots"),
        ({"changes": {"ctx": "x"}}, None),
        ({"changes": {"path": "/etc/passwd"}}, "path"),
        ({"changes": {"kind": "url"}}, "kind"),
        ({"changes": {"owned": False}}, "owned"),
        ({"changes": {"nonsense": 1}}, "nonsense"),
        ({"name": "a b"}, "name"),
        ({"name": "taken"}, "name"),
    ],
)
async def test_a_pull_is_refused_before_it_begins(
    desk: Desk, fields: dict[str, Any], param: str | None
) -> None:
    await desk.hub.add("x", aliases=("taken",))
    fault = await desk.refused(PullModel(reference="hf:owner/repo", **fields))
    assert fault.param == param
    assert desk.jobs.view().jobs == ()


async def test_pull_registers_once_and_rm_deletes(hub: ScriptedHub) -> None:
    async with FakeHub({"Tiny.gguf": gguf_builder.tiny()}) as far:
        desk = Desk(hub, HF_ENDPOINT=far.url)
        job = await desk.job(PullModel(reference="hf:owner/repo", changes={"ctx": 1024}))
        assert (job.state, job.kind, job.subject) == ("done", "pull", "hf:owner/repo")
        entry = hub.registry.entries()[0]
        assert (entry.spec.owned, entry.spec.ctx) == (True, 1024)
        assert job.note == f"registered as {entry.spec.name}"
        again = await desk.job(PullModel(reference="hf:owner/repo", changes={"slots": 3}))
        assert "registered already" in again.note
        assert [each.spec.slots for each in hub.registry.entries()] == [3]
        assert (await hub.chat())[0] == 200
        deleted = (await desk.do(RemoveModel(entry.spec.name)))["deleted"]
        assert deleted == [entry.spec.path]
        assert not Path(deleted[0]).exists()
        failed = await desk.job(PullModel(reference="hf:owner/other"))
        assert failed.state == "failed"
        assert failed.fault is not None
    assert (await desk.refused(CancelJob("x"))).code == "not_built"
