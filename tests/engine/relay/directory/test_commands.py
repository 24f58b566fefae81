from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from relaydesk.core.commands import (
    BlockOperator,
    Command,
    ForgetOperator,
    ImportCertificate,
    ShowOperators,
    TrustOperator,
)
from relaydesk.core.relay.directory.document import open_document
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.relay.directory.commands import OperatorCommands
from relaydesk.engine.relay.directory.publisher import Publisher
from relaydesk.engine.relay.identity import Identity
from relaydesk.store.secrets import FileSecrets
from tests.support.clock import FakeRng
from tests.support.directory_rig import Side, side
from tests.support.directory_world import ANN, BOB, EVE, KEEPER, NOW, certificate, document, record


def offered(folder: Path, here: Side) -> tuple[Dispatcher, Identity]:
    secrets = FileSecrets(folder)
    secrets.prepare()
    identity = Identity.open(secrets, folder / "network", here.clock, FakeRng())
    publisher = Publisher(
        identity,
        here.sources,
        here.repo,
        here.outbound,
        here.clock,
        here.alerts,
        lambda: None,
        on_change=lambda: None,
    )
    dispatcher = Dispatcher()
    OperatorCommands(here.book, identity, publisher).register(dispatcher)
    return dispatcher, identity


async def done(dispatcher: Dispatcher, command: Command) -> Any:
    outcome = await dispatcher.call(command)
    assert outcome.ok, outcome.fault
    return outcome.value


async def refused(dispatcher: Dispatcher, command: Command) -> str:
    outcome = await dispatcher.call(command)
    assert outcome.fault is not None
    return outcome.fault.code


async def test_operators_are_shown_and_decided_about(tmp_path: Path) -> None:
    shown = document(admits=(ANN,), records=[record(ANN), record(ANN, 1), record(EVE)])
    async with side(tmp_path) as here:
        dispatcher, identity = offered(tmp_path, here)
        await here.book.update([open_document(shown, KEEPER.address, NOW)])
        value = await done(dispatcher, ShowOperators())
        assert value["own"] == {
            "operator": str(identity.operator_id),
            "node": 0,
            "owner": identity.owner_addr,
            "signing": identity.signing_addr,
            "self_certified": True,
            "certificate_expires_ms": identity.certificate.expires_at * 1000,
        }
        rows = {each["owner"]: each for each in value["operators"]}
        assert set(rows) == {ANN.address, EVE.address}
        assert [each["standing"] for each in rows[ANN.address]["nodes"]] == ["admitted"] * 2
        assert [each["standing"] for each in rows[EVE.address]["nodes"]] == ["unknown"]
        assert rows[ANN.address]["name"] == "ann"
        trusted = await done(dispatcher, TrustOperator(EVE.address))
        assert trusted == {"owner": EVE.address, "operator": str(EVE.operator), "name": "", "eligible": 1}
        assert (await done(dispatcher, BlockOperator(ANN.address)))["eligible"] == 0
        await done(dispatcher, BlockOperator(BOB.address))
        rows = {each["owner"]: each for each in (await done(dispatcher, ShowOperators()))["operators"]}
        assert {owner: each["choice"] for owner, each in rows.items()} == {
            ANN.address: "blocked",
            BOB.address: "blocked",
            EVE.address: "trusted",
        }
        assert rows[BOB.address]["nodes"] == []
        assert (await done(dispatcher, ForgetOperator(ANN.address)))["eligible"] == 2
        json.dumps(value)


async def test_what_cannot_be_decided(tmp_path: Path) -> None:
    async with side(tmp_path) as here:
        dispatcher, identity = offered(tmp_path, here)
        assert await refused(dispatcher, TrustOperator("nobody\x1b[2J")) == "invalid_request"
        assert await refused(dispatcher, BlockOperator(identity.owner_addr)) == "invalid_request"
        assert await refused(dispatcher, ForgetOperator(ANN.address)) == "not_found"


async def test_an_operator_is_meant_by_address_id_or_name(tmp_path: Path) -> None:
    shown = document(admits=(ANN, BOB), records=[record(ANN)])
    async with side(tmp_path) as here:
        dispatcher, _ = offered(tmp_path, here)
        await here.book.update([open_document(shown, KEEPER.address, NOW)])
        for text in (ANN.address, str(ANN.operator), "ann", "ANN"):
            found = await done(dispatcher, BlockOperator(text))
            assert (found["owner"], found["name"]) == (ANN.address, "ann")
            assert here.book.known.blocked == {ANN.address}
            assert (await done(dispatcher, ForgetOperator(text)))["name"] == "ann"
        # One without a node, as well.
        assert (await done(dispatcher, BlockOperator("bob")))["owner"] == BOB.address
        for text in ("", "eve", str(EVE.operator)):
            fault = (await dispatcher.call(TrustOperator(text))).fault
            assert fault is not None and f"no operator is known as {text!r}" in fault.message


async def test_a_name_of_two_is_refused_with_their_ids(tmp_path: Path) -> None:
    first = open_document(document(admits=(ANN,)), KEEPER.address, NOW)
    twins = tuple(replace(each, owner=key.address) for key in (ANN, EVE) for each in first.operators)
    async with side(tmp_path) as here:
        dispatcher, _ = offered(tmp_path, here)
        await here.book.update([replace(first, operators=twins)])
        fault = (await dispatcher.call(BlockOperator("ann"))).fault
        assert fault is not None and fault.message == "2 operators are called 'ann'"
        assert str(ANN.operator) in fault.hint and str(EVE.operator) in fault.hint
        assert here.book.known.blocked == frozenset()


async def test_a_certificate_is_imported(tmp_path: Path) -> None:
    async with side(tmp_path) as here:
        dispatcher, identity = offered(tmp_path, here)
        made = json.dumps(certificate(ANN, signing=identity.signing_addr))
        assert await done(dispatcher, ImportCertificate(made)) == {"in_force": False}
        other = json.dumps(certificate(ANN))
        assert await refused(dispatcher, ImportCertificate(other)) == "directory_refused"
