from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.relay.directory.document import open_document
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.engine.relay.directory import keeper as module
from relaydesk.engine.relay.directory.keeper import Keeper
from relaydesk.engine.tasks import cancel_and_wait, spawn
from tests.support.clock import FakeClock
from tests.support.directory_world import ANN, BOB, DAY, EVE, NOW, certificate
from tests.support.keeper_rig import answering, keeping, record_of
from tests.support.lab_relay import HANG, LabNode
from tests.support.mutants import mutants


@pytest.fixture
async def node() -> AsyncIterator[LabNode]:
    made = answering(LabNode(1), ANN)
    await made.start()
    yield made
    await made.stop()


async def hand_in(keeper: Keeper, made: dict[str, str]) -> Any:
    return await keeper.accept(json.dumps(made).encode())


async def refusal(keeper: Keeper, made: dict[str, str] | bytes) -> str:
    data = made if isinstance(made, bytes) else json.dumps(made).encode()
    with pytest.raises(Refused) as caught:
        await keeper.accept(data)
    assert caught.value.sentence.isprintable()
    return caught.value.kind


def listed(keeper: Keeper, now: int = NOW) -> list[tuple[tuple[int, int], int]]:
    served = keeper.served()
    assert served is not None
    found = open_document(served.data, keeper.address, now)
    return [(tuple(each.ref), each.version) for each in found.records]  # type: ignore[misc]


async def test_a_record_is_listed_once_it_was_seen_from_outside(tmp_path: Path, node: LabNode) -> None:
    async with keeping(tmp_path / "d", ANN) as (keeper, _):
        assert listed(keeper) == []
        before = keeper.served()
        accepted = await hand_in(keeper, record_of(node, ANN))
        assert (accepted.ref, accepted.version) == ((ANN.operator, 0), 1)
        assert listed(keeper) == [((ANN.operator, 0), 1)]
        assert keeper.served() != before
        assert [each.path for each in node.served] == ["/v1/zs/details"]
        # Again: nothing to do.
        await hand_in(keeper, record_of(node, ANN))
        assert len(node.served) == 1
        assert (await hand_in(keeper, record_of(node, ANN, version=2))).version == 2
        assert listed(keeper) == [((ANN.operator, 0), 2)]
    async with keeping(tmp_path / "d") as (keeper, _):
        assert listed(keeper) == [((ANN.operator, 0), 2)]
        assert await refusal(keeper, record_of(node, ANN)) == "rollback"
        assert await refusal(keeper, record_of(node, ANN, version=2, staging=True)) == "conflict"


async def test_what_is_not_listed(tmp_path: Path, node: LabNode) -> None:
    async with keeping(tmp_path / "d", ANN) as (keeper, _):
        cases: list[tuple[dict[str, str] | bytes, str]] = [
            (b"x" * 9000, "too_large"),
            (b"{}", "malformed"),
            (record_of(node, BOB), "not_admitted"),
            (record_of(node, ANN, signer=EVE), "wrong_key"),
            (record_of(node, ANN, cert=certificate(ANN, expires_at=NOW)), "expired"),
            (record_of(node, ANN, base_url="ftp://x"), "base_url"),
            (record_of(node, ANN, base_url="https://x.org/" + "a" * 300), "base_url"),
            (record_of(node, ANN, 1), "identity"),
        ]
        for made, kind in cases:
            assert await refusal(keeper, made) == kind
        assert listed(keeper) == []
        assert keeper.nodes == 0


async def test_a_private_address_is_refused_before_anything_is_asked(tmp_path: Path, node: LabNode) -> None:
    async with keeping(tmp_path / "d", ANN, lab=False) as (keeper, _):
        assert await refusal(keeper, record_of(node, ANN)) == "base_url"
        assert await refusal(keeper, record_of(node, ANN, base_url="https://127.0.0.1:1")) == "base_url"
        assert node.served == []


async def test_rates_of_one_operator_and_of_all(
    tmp_path: Path, node: LabNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(NOW * 1000)
    async with keeping(tmp_path / "d", ANN, clock=clock) as (keeper, _):
        for version in range(1, module.OWNER_BURST + 1):
            await hand_in(keeper, record_of(node, ANN, version=version))
        assert await refusal(keeper, record_of(node, ANN, version=100)) == "busy"
        clock.advance(60)
        monkeypatch.setattr(module, "BURST", 2)
        await hand_in(keeper, record_of(node, ANN, version=101))
        await hand_in(keeper, record_of(node, ANN, version=102))
        assert await refusal(keeper, record_of(node, ANN, version=103)) == "busy"


async def test_strangers_use_up_nobody_s_turns(tmp_path: Path, node: LabNode) -> None:
    """The listed record is public, and anybody can hand it in; garbage as well."""
    clock = FakeClock(NOW * 1000)
    async with keeping(tmp_path / "d", ANN, clock=clock) as (keeper, _):
        await hand_in(keeper, record_of(node, ANN, version=2))
        for _ in range(module.BURST + 1):
            assert (await hand_in(keeper, record_of(node, ANN, version=2))).version == 2
            assert await refusal(keeper, record_of(node, ANN, version=1)) == "rollback"
            assert await refusal(keeper, record_of(node, BOB)) == "not_admitted"
            assert await refusal(keeper, b"{}") == "malformed"
        assert (await hand_in(keeper, record_of(node, ANN, version=3))).version == 3


async def test_numbers_are_bounded(tmp_path: Path, node: LabNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NODES_EACH", 1)
    async with keeping(tmp_path / "d", ANN, BOB) as (keeper, _):
        await hand_in(keeper, record_of(node, ANN))
        assert await refusal(keeper, record_of(node, ANN, 1)) == "full"
        await hand_in(keeper, record_of(node, ANN, version=2))
        monkeypatch.setattr(module, "NODES_ALL", 1)
        assert await refusal(keeper, record_of(node, BOB)) == "full"


async def test_only_so_many_looks_at_once(
    tmp_path: Path, node: LabNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOKS", 1)
    node.always_target = HANG
    async with keeping(tmp_path / "d", ANN) as (keeper, _):
        waiting = spawn(hand_in(keeper, record_of(node, ANN)), name="waits")
        while not node.served:
            await asyncio.sleep(0.005)
        assert await refusal(keeper, record_of(node, ANN, version=2)) == "busy"
        await cancel_and_wait(waiting)
        node.always_target = None
        await hand_in(keeper, record_of(node, ANN, version=2))


async def test_a_withdrawn_node_needs_not_be_seen(tmp_path: Path, node: LabNode) -> None:
    async with keeping(tmp_path / "d", ANN) as (keeper, _):
        await hand_in(keeper, record_of(node, ANN))
        await node.stop()
        await hand_in(keeper, record_of(node, ANN, version=2, status="retired"))
        served = keeper.served()
        assert served is not None
        (found,) = open_document(served.data, keeper.address, NOW).records
        assert found.status == "retired"


async def test_it_signs_again_in_time(tmp_path: Path) -> None:
    clock = FakeClock(NOW * 1000)
    async with keeping(tmp_path / "d", clock=clock) as (keeper, _):
        first = keeper.served()
        clock.advance(DAY / 2 - 1)
        await keeper.look_after()
        assert keeper.served() == first
        clock.advance(1)
        await keeper.look_after()
        assert keeper.served() != first
        served = keeper.served()
        assert served is not None
        assert open_document(served.data, keeper.address, NOW + DAY // 2).expires_at == NOW + DAY // 2 + DAY


async def test_it_sees_what_a_verb_changed(tmp_path: Path, node: LabNode) -> None:
    async with keeping(tmp_path / "d", ANN) as (keeper, shelf):
        await hand_in(keeper, record_of(node, ANN))
        shelf.admit(ANN.address, "evicted")
        await keeper.look_after()
        assert listed(keeper) == []
        assert await refusal(keeper, record_of(node, ANN, version=2)) == "not_admitted"
        shelf.admit(ANN.address, "active")
        await keeper.look_after()
        assert listed(keeper) == [((ANN.operator, 0), 1)]


async def test_it_runs_until_cancelled(tmp_path: Path) -> None:
    clock = FakeClock(NOW * 1000)
    async with keeping(tmp_path / "d", clock=clock, sleep=clock.sleep, life_s=10) as (keeper, _):
        running = spawn(keeper.run(), name="keeper")
        first = keeper.served()
        for _ in range(4):
            await asyncio.sleep(0.01)
            clock.advance(module.WATCH_S)
        for _ in range(100):
            if keeper.served() != first:
                break
            await asyncio.sleep(0.01)
        assert keeper.served() != first
        await cancel_and_wait(running)


async def test_mutated_records_are_refused(tmp_path: Path, node: LabNode) -> None:
    clock = FakeClock(NOW * 1000)
    async with keeping(tmp_path / "d", ANN, clock=clock) as (keeper, _):
        sample = json.dumps(record_of(node, ANN)).encode()
        for data in mutants(sample, 300):
            clock.advance(60)
            if json_or_none(data) != json.loads(sample):
                with pytest.raises(Refused):
                    await keeper.accept(data)
        assert node.served == []


def json_or_none(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
