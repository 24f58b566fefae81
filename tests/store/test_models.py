from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.store.db import Database
from relaydesk.store.models import ModelsRepo


def spec(name: str, *aliases: str, **more: object) -> ModelSpec:
    return ModelSpec(name=name, aliases=aliases, path=f"/m/{name}.gguf", **more)  # type: ignore[arg-type]


@pytest.fixture
def models(database: Database) -> ModelsRepo:
    return ModelsRepo(database)


async def test_life_of_a_model(models: ModelsRepo) -> None:
    added = spec("b", "beta", "b", slots=2, kv_k="q8_0", keep_alive_s=-1)
    await models.add(added)
    await models.add(spec("a"))
    assert await models.get("b") == await models.get("beta") == added
    assert [item.name for item in await models.list()] == ["a", "b"]
    changed = msgspec.structs.replace(added, aliases=("bee",), ctx=99)
    await models.replace(changed)
    assert await models.get("bee") == changed
    assert await models.get("beta") is None
    assert await models.remove("b") == changed
    assert await models.get("b") is await models.get("bee") is None
    await models.add(spec("bee"))


@pytest.mark.parametrize(
    ("new", "param"),
    [
        (spec("a"), "name"),
        (spec("alpha"), "name"),
        (spec("c", "a"), "aliases"),
        (spec("c", "x", "alpha"), "aliases"),
    ],
)
async def test_a_name_is_one_models(models: ModelsRepo, new: ModelSpec, param: str) -> None:
    await models.add(spec("a", "alpha"))
    with pytest.raises(LocalError, match="belongs to the model a") as caught:
        await models.add(new)
    assert (caught.value.fault.code, caught.value.fault.param) == ("conflict", param)
    assert [item.name for item in await models.list()] == ["a"]
    assert await models.get("c") is await models.get("x") is None


async def test_a_refused_change_keeps_the_old_names(models: ModelsRepo) -> None:
    await models.add(spec("a", "alpha"))
    await models.add(spec("b", "beta"))
    with pytest.raises(LocalError, match="belongs to the model a"):
        await models.replace(spec("b", "x", "alpha"))
    found = await models.get("beta")
    assert found is not None
    assert found.name == "b"
    assert await models.get("x") is None


async def test_what_is_not_there(models: ModelsRepo) -> None:
    await models.add(spec("a", "alpha"))
    for call in (models.remove("b"), models.remove("alpha"), models.replace(spec("alpha"))):
        with pytest.raises(LocalError) as caught:
            await call
        assert caught.value.fault.code == "model_not_found"
    for name in ("", "A", "b", "a'--", "\ud800", "x\0"):
        assert await models.get(name) is None


async def test_a_path_that_is_no_text(models: ModelsRepo) -> None:
    with pytest.raises(LocalError, match="not UTF-8"):
        await models.add(msgspec.structs.replace(spec("a"), path="/m/\udcff.gguf"))
    assert await models.list() == ()


async def test_a_specification_of_a_newer_kind(database: Database, models: ModelsRepo) -> None:
    await models.add(spec("a"))
    await database.run(
        lambda conn: conn.execute("UPDATE models SET spec = ?", (b'{"name":"a","kind":"new"}',)) and None
    )
    with pytest.raises(EnvError, match="stored specification of the model a") as caught:
        await models.list()
    assert caught.value.fault.code == "storage_failed"


names = st.sampled_from("abcd")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "replace", "remove"]), names, st.sets(names, max_size=2)),
        max_size=12,
    )
)
async def test_like_a_dictionary_with_unique_names(
    database: Database, steps: list[tuple[str, str, set[str]]]
) -> None:
    models = ModelsRepo(database)
    for left in await models.list():
        await models.remove(left.name)
    model: dict[str, ModelSpec] = {}
    for verb, name, aliases in steps:
        new = spec(name, *sorted(aliases))
        others = {n for key, item in model.items() if key != name for n in (key, *item.aliases)}
        own = {name, *model[name].aliases} if name in model else set()
        taken = others & {name, *aliases} or (verb == "add" and own & {name, *aliases})
        outcome = None
        try:
            if verb == "remove":
                await models.remove(name)
            else:
                await getattr(models, verb)(new)
        except LocalError as exc:
            outcome = exc.fault.code
        if verb != "add" and name not in model:
            assert outcome == "model_not_found"
        elif verb != "remove" and taken:
            assert outcome == "conflict"
        else:
            assert outcome is None
            if verb == "remove":
                del model[name]
            else:
                model[name] = new
        assert {item.name: item for item in await models.list()} == model
    for name in "abcd":
        found = await models.get(name)
        assert (found and found.name) == next((k for k, m in model.items() if name in (k, *m.aliases)), None)
