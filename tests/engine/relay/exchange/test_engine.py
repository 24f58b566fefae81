"""The network with an engine's face."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relaydesk.core.errors import FaultError
from relaydesk.engine.infer.engine import Engine, EngineStream
from tests.support.exchange_rig import CHAT, ExchangeRig


async def test_it_is_an_engine(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        engine: Engine = rig.exchange.engine(rig.request("net/lab/tiny"))
        stream: EngineStream = await engine.stream(CHAT, rig.body(model="net/lab/tiny"))
        async with stream:
            stream.relax()
            assert (stream.status, stream.error_body, dict(stream.headers)) == (200, b"", {})
            first = json.loads(await anext(aiter(stream)))
        assert first["model"] == "lab/tiny"
        await engine.aclose()


async def test_its_health_is_whether_it_can_be_asked(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        assert await rig.exchange.engine(rig.request("net/lab/tiny")).health()
        assert not await rig.exchange.engine(rig.request("lab/other")).health()
        for at in range(len(rig.relays)):
            del rig.directory.listed[rig.relay_ref(at)]
        assert not await rig.exchange.engine(rig.request()).health()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/embeddings", b'{"model":"lab/tiny","input":"x"}'),
        ("POST", "/v1/completions", b'{"model":"lab/tiny","prompt":"x"}'),
        ("GET", "/v1/models", None),
        ("POST", "/tokenize", b'{"model":"lab/tiny"}'),
    ],
)
async def test_what_the_network_has_not_is_refused_by_name(
    tmp_path: Path, method: str, path: str, body: bytes | None
) -> None:
    async with ExchangeRig(tmp_path) as rig:
        engine = rig.exchange.engine(rig.request())
        with pytest.raises(FaultError) as caught:
            await engine.json(method, path, body)
        assert caught.value.fault.code == "unsupported"
        assert path in caught.value.fault.message
        assert rig.seen == []


async def test_a_body_of_another_model_or_kind_is_our_own_mistake(tmp_path: Path) -> None:
    async with ExchangeRig(tmp_path) as rig:
        engine = rig.exchange.engine(rig.request())
        with pytest.raises(ValueError, match="another model"):
            await engine.stream(CHAT, rig.body(model="lab/other"))
        with pytest.raises(ValueError, match="not ask for a stream"):
            await engine.stream(CHAT, rig.body(stream=False))
        with pytest.raises(ValueError, match="asks for a stream"):
            await engine.json("POST", CHAT, rig.body())


@pytest.mark.parametrize(
    ("hints", "param"),
    [
        (b'{"only":["x"]}', "provider.only[0]"),
        (b'{"max_price":{"output":"cheap"}}', "provider.max_price.output"),
        (b'{"relay":"off"}', "provider.relay"),
        (b"7", "provider"),
    ],
)
async def test_hints_that_cannot_be_kept_are_refused(tmp_path: Path, hints: bytes, param: str) -> None:
    async with ExchangeRig(tmp_path) as rig:
        with pytest.raises(FaultError) as caught:
            await rig.stream(hints=hints)
        assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", param)
        assert rig.seen == []
