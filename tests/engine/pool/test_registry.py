from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.core.errors import FaultError
from relaydesk.core.events import ModelChanged
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.pool.need import Measured
from relaydesk.engine.pool import registry as module
from relaydesk.engine.pool.registry import EDITABLE, Registry
from tests.support import gguf_builder
from tests.support.scripted_hub import MIB, ScriptedHub

MEASURED = Measured(
    ctx=512, slots=2, kv_k="f16", kv_v="f16", gpus=2, weights=MIB, kv=2 * MIB, compute=MIB, peak=9 * MIB
)


async def reopened(hub: ScriptedHub) -> Registry:
    """What the next start finds."""
    registry = Registry(hub.models, hub.measured, hub.clock, hub.bus)
    await registry.open()
    return registry


async def refused(work: Any) -> tuple[str, str | None]:
    with pytest.raises(FaultError) as caught:
        await work
    assert caught.value.fault.message
    return caught.value.fault.code, caught.value.fault.param


async def test_a_model_is_found_by_name_and_alias_and_after_a_restart(hub: ScriptedHub) -> None:
    added = await hub.add("tiny", aliases=("t", "small:latest"))
    assert added.spec.added_ms > 0
    assert added.header is not None
    assert added.header.architecture == "llama"
    assert ModelChanged("tiny") in hub.events
    for registry in (hub.registry, await reopened(hub)):
        for name in ("tiny", "t", "small", "tiny:latest"):
            assert registry.entry(name).spec == added.spec
        assert [entry.spec.name for entry in registry.entries()] == ["tiny"]


async def test_an_unknown_name_is_said(hub: ScriptedHub) -> None:
    with pytest.raises(FaultError) as caught:
        hub.registry.entry("nope")
    assert caught.value.fault.code == "model_not_found"
    assert await refused(hub.registry.remove("nope")) == ("model_not_found", "name")
    assert await refused(hub.registry.change("nope", {"ctx": 512})) == ("model_not_found", "name")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"name": ""}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": "net/x"}, "name"),
        ({"name": "x" * 129}, "name"),
        ({"aliases": ("../x",)}, "name"),
        ({"slots": 0}, "slots"),
        ({"slots": 65}, "slots"),
        ({"ctx": 127}, "ctx"),
        ({"ctx": -1}, "ctx"),
        ({"ctx": 1 << 23}, "ctx"),
        ({"keep_alive_s": -2}, "keep_alive_s"),
        ({"gpu_layers": -99}, "gpu_layers"),
        ({"aliases": ("tiny",)}, "aliases"),
        ({"path": "relative.gguf"}, "path"),
        ({"path": ""}, "path"),
        ({"kind": "url", "url": ""}, "url"),
        ({"kind": "url", "url": "ftp://x/v1"}, "url"),
        ({"kind": "url", "url": "http://"}, "url"),
        ({"kind": "url", "url": "http://user:secret@h/v1"}, "url"),
        ({"kind": "url", "url": "http://h/v1?key=secret"}, "url"),
        ({"kind": "url", "url": "http://10.0.0.7/v1", "host_only": True}, "host_only"),
        ({"kind": "url", "url": "http://h/v1", "offer": True}, "offer"),
        ({"offer": True, "slots": 1}, "offer"),
        ({"input_rate": -1}, "input_rate"),
        ({"output_rate": 10**15 + 1}, "output_rate"),
    ],
)
async def test_settings_that_cannot_be_are_refused_and_leave_nothing(
    hub: ScriptedHub, fields: dict[str, Any], param: str
) -> None:
    spec = msgspec.structs.replace(ModelSpec(name="tiny", path=str(hub.file()), ctx=512), **fields)
    with pytest.raises(FaultError) as caught:
        await hub.registry.add(spec)
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", param)
    assert "secret" not in caught.value.fault.sentence
    assert hub.registry.names() == ()
    assert await hub.models.list() == ()


async def test_a_host_only_server_may_be_on_this_machine(hub: ScriptedHub) -> None:
    for number, host in enumerate(("127.0.0.1", "localhost", "[::1]")):
        await hub.add(f"far{number}", kind="url", url=f"http://{host}:8000/v1", host_only=True)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda path: None, "not_found"),
        (lambda path: path.mkdir(), "bad_model_file"),
        (_pipe, "bad_model_file"),
        (lambda path: path.write_bytes(b""), "bad_model_file"),
        (lambda path: path.write_bytes(b"not a model at all" * 10), "bad_model_file"),
        (lambda path: path.write_bytes(gguf_builder.tiny()[:200]), "bad_model_file"),
        (
            lambda path: path.write_bytes(gguf_builder.build(gguf_builder.LLAMA, count=1 << 40)),
            "bad_model_file",
        ),
        (lambda path: path.symlink_to("/nowhere/at/all.gguf"), "not_found"),
    ],
    ids=["missing", "folder", "pipe", "empty", "text", "truncated", "huge", "dangling"],
)
async def test_what_is_no_model_file_is_not_registered(hub: ScriptedHub, make: Any, code: str) -> None:
    path = hub.dir / "model.gguf"
    make(path)
    with pytest.raises(FaultError) as caught:
        await hub.registry.add(ModelSpec(name="bad", path=str(path)))
    assert caught.value.fault.code == code
    assert hub.registry.names() == ()
    assert await hub.models.list() == ()


async def test_names_and_aliases_belong_to_one_model(hub: ScriptedHub) -> None:
    await hub.add("one", aliases=("uno",))
    for fields in ({"name": "one"}, {"name": "uno"}, {"name": "two", "aliases": ("uno",)}):
        with pytest.raises(FaultError) as caught:
            await hub.add(**fields)
        assert caught.value.fault.code == "conflict"
    assert [name.name for name in hub.registry.names()] == ["one"]
    await hub.add("two")
    assert (await refused(hub.registry.change("two", {"aliases": ["one"]})))[0] == "conflict"
    assert hub.registry.entry("one").spec.name == "one"
    assert hub.registry.entry("two").spec.aliases == ()


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"name": "other"}, "name"),
        ({"owned": True}, "owned"),
        ({"sha256": "0"}, "sha256"),
        ({"url_key_secret": "x"}, "url_key_secret"),
        ({"nonsense": 1}, "nonsense"),
        ({"ctx": "many"}, None),
        ({"ctx": None}, None),
        ({"kv_k": "q3_k"}, None),
        ({"aliases": "abc"}, None),
        ({"slots": 1.5}, None),
        ({"slots": 0}, "slots"),
        ({"path": "x"}, "path"),
        ({"aliases": ["a b"]}, "name"),
    ],
)
async def test_changes_that_cannot_be_change_nothing(
    hub: ScriptedHub, changes: dict[str, Any], param: str | None
) -> None:
    before = (await hub.add()).spec
    assert await refused(hub.registry.change("tiny", changes)) == ("invalid_request", param)
    assert hub.registry.entry("tiny").spec == before
    assert (await reopened(hub)).entry("tiny").spec == before


async def test_changes_are_kept(hub: ScriptedHub) -> None:
    await hub.add()
    await hub.registry.change("tiny", {"ctx": 1024, "aliases": ["t"], "keep_alive_s": -1, "kv_k": "q8_0"})
    for registry in (hub.registry, await reopened(hub)):
        spec = registry.entry("t").spec
        assert (spec.ctx, spec.aliases, spec.keep_alive_s, spec.kv_k) == (1024, ("t",), -1, "q8_0")
    assert "owned" not in EDITABLE


async def test_changes_at_once_do_not_undo_each_other(hub: ScriptedHub) -> None:
    await hub.add()
    await asyncio.gather(
        hub.registry.change("tiny", {"ctx": 2048}),
        hub.registry.change("tiny", {"slots": 7}),
        hub.registry.change("tiny", {"aliases": ["t"]}),
    )
    for registry in (hub.registry, await reopened(hub)):
        spec = registry.entry("tiny").spec
        assert (spec.ctx, spec.slots, spec.aliases) == (2048, 7, ("t",))


async def test_a_file_that_cannot_be_used_is_refused_where_it_is_new(hub: ScriptedHub) -> None:
    await hub.add()
    other = hub.dir / "other.gguf"
    assert (await refused(hub.registry.change("tiny", {"path": str(other)})))[0] == "not_found"
    projector = hub.file("no-projector")
    assert await refused(hub.registry.change("tiny", {"projector": str(projector)})) == (
        "bad_model_file",
        "projector",
    )
    # Damaged since: its other settings can still be changed.
    hub.file().unlink()
    entry = await hub.registry.change("tiny", {"ctx": 1024})
    assert entry.fault is not None
    assert entry.spec.ctx == 1024


async def test_another_file_is_not_the_one_that_was_pulled(hub: ScriptedHub) -> None:
    await hub.registry.add(
        ModelSpec(name="tiny", path=str(hub.file()), owned=True, sha256="ab", size_bytes=1)
    )
    spec = (await hub.registry.change("tiny", {"ctx": 512})).spec
    assert (spec.owned, spec.sha256, spec.size_bytes) == (True, "ab", 1)
    other = hub.file("other")
    spec = (await hub.registry.change("tiny", {"path": str(other)})).spec
    assert (spec.owned, spec.sha256, spec.size_bytes) == (False, "", other.stat().st_size)


async def test_a_model_whose_file_is_gone_stays_with_its_reason(hub: ScriptedHub) -> None:
    await hub.add()
    hub.file().unlink()
    entry = (await reopened(hub)).entry("tiny")
    assert entry.header is None
    assert entry.fault is not None
    assert entry.fault.code == "not_found"


async def test_reread_sees_a_replaced_file_and_forgets_what_was_measured(hub: ScriptedHub) -> None:
    entry = await hub.add()
    await hub.registry.measure(entry, MEASURED)
    assert (await hub.registry.reread("tiny")).subject.measured == MEASURED  # type: ignore[union-attr]
    hub.file().write_bytes(gguf_builder.tiny(general__name="Another one of another size"))
    entry = await hub.registry.reread("tiny")
    assert entry.subject is not None
    assert entry.subject.measured is None
    assert entry.header is not None
    assert entry.header.name == "Another one of another size"


async def test_measured_survives_a_restart(hub: ScriptedHub) -> None:
    entry = await hub.add()
    await hub.registry.measure(entry, MEASURED)
    for registry in (hub.registry, await reopened(hub)):
        subject = registry.entry("tiny").subject
        assert subject is not None
        assert subject.measured == MEASURED


@pytest.mark.parametrize("method", ["reread", "measure"])
async def test_what_was_changed_or_removed_meanwhile_stays_so(
    hub: ScriptedHub, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load reads the file and stores its figures; the operator does not wait for that."""
    entry = await hub.add()

    def work() -> Any:
        return hub.registry.reread("tiny") if method == "reread" else hub.registry.measure(entry, MEASURED)

    await asyncio.gather(work(), hub.registry.change("tiny", {"ctx": 2048}))
    assert hub.registry.entry("tiny").spec.ctx == 2048
    results = await asyncio.gather(work(), hub.registry.remove("tiny"), return_exceptions=True)
    assert isinstance(results[1], ModelSpec)
    assert results[0] is None or isinstance(results[0], FaultError | module.Entry)
    assert hub.registry.names() == ()
    assert await hub.models.list() == ()


async def test_capabilities(hub: ScriptedHub) -> None:
    await hub.add("plain")
    await hub.add("far", kind="url", url="http://127.0.0.1:1/v1")
    plain, far = hub.registry.capabilities("plain"), hub.registry.capabilities("far")
    assert (plain.tools, plain.images, plain.thinking) == (False, False, False)
    assert (far.tools, far.images, far.thinking) == (True, True, True)
    template = hub.dir / "t.jinja"
    template.write_text("{{ messages }}{{ tools }}")
    await hub.registry.change("plain", {"template": str(template)})
    assert hub.registry.capabilities("plain").tools
    assert hub.registry.capabilities("plain").thinking
    thinking = hub.dir / "thinking.gguf"
    thinking.write_bytes(gguf_builder.tiny(tokenizer__chat_template="{{ message.thinking }}"))
    await hub.add("thinking", path=str(thinking))
    thinks = hub.registry.capabilities("thinking")
    assert (thinks.thinking, thinks.tools, thinks.images) == (True, False, False)
