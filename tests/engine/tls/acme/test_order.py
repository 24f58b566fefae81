"""Certificates from a real ACME server, and from one whose answers are spoilt on the way."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from relaydesk.config.listen import Listen
from relaydesk.core.errors import FaultError
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.tls.acme import client
from relaydesk.engine.tls.acme.order import Issued, obtain
from relaydesk.engine.tls.acme.plan import AcmePlan
from relaydesk.engine.tls.acme.steps import Steps
from tests.support.acme_server import AcmeServer, Answer, Spoiler, as_json
from tests.support.pebble import Pebble, free_ports

Plans = Callable[..., AcmePlan]
ACCOUNT = ec.generate_private_key(ec.SECP256R1())


async def get(plan: AcmePlan) -> Issued:
    return await obtain(plan, ACCOUNT, Steps(plan.server), SystemClock(), os.environ)


async def refusal(plan: AcmePlan) -> FaultError:
    with pytest.raises(FaultError) as caught:
        await get(plan)
    assert caught.value.fault.code == "tls_failed"
    assert caught.value.fault.hint
    return caught.value


def names_of(found: Issued) -> list[str]:
    leaf = x509.load_pem_x509_certificates(found.chain)[0]
    key = serialization.load_pem_private_key(found.key, None)
    assert key.public_key() == leaf.public_key()
    return leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(
        x509.DNSName
    )


def dns_hook(directory: Path, pebble: Pebble) -> Path:
    """A script that tells pebble's own DNS server what to say."""
    path = directory / "hook"
    path.write_text(f"""#!/bin/sh
echo "$1 $2" >> '{directory}/calls'
verb=set-txt; [ "$1" = present ] || verb=clear-txt
exec curl -sf -d "{{\\"host\\": \\"$2.\\", \\"value\\": \\"$3\\"}}" {pebble.challtest_url}/$verb
""")
    path.chmod(0o755)
    return path


async def test_by_http_for_two_names_while_the_loop_goes_on(pebble: Pebble, plan_for: Plans) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.005)
            turns += 1

    counting = asyncio.ensure_future(count())
    try:
        found = await get(plan_for(pebble, "a.lab.test", "b.lab.test"))
    finally:
        counting.cancel()
    assert sorted(names_of(found)) == ["a.lab.test", "b.lab.test"]
    assert turns > 20, "the library sleeps for a second: not on the loop"
    assert "KEY" not in repr(found)


@pytest.mark.long
async def test_by_dns_with_a_wildcard(pebble: Pebble, plan_for: Plans, tmp_path: Path) -> None:
    plan = plan_for(pebble, "*.wild.lab.test", hook=dns_hook(tmp_path, pebble))
    # Nothing is listened to.
    with socket.create_server(("127.0.0.1", plan.listen.port)):
        assert names_of(await get(plan)) == ["*.wild.lab.test"]
    place = "_acme-challenge.wild.lab.test"
    assert (tmp_path / "calls").read_text().splitlines() == [f"present {place}", f"cleanup {place}"]


async def test_a_name_that_leads_elsewhere(pebble: Pebble, plan_for: Plans) -> None:
    plan = plan_for(pebble, "elsewhere.lab.test")
    error = await refusal(dataclasses.replace(plan, listen=Listen("127.0.0.1", free_ports(1)[0])))
    assert "gave no certificate for elsewhere.lab.test: it could not connect" in error.fault.message
    assert "RELAY_ACME_HTTP_LISTEN" in error.fault.hint


async def test_another_program_answers_for_the_name(pebble: Pebble, plan_for: Plans) -> None:
    async def hello(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        writer.close()

    plan = dataclasses.replace(plan_for(pebble), listen=Listen("127.0.0.1", free_ports(1)[0]))
    async with await asyncio.start_server(hello, "127.0.0.1", pebble.http_port):
        error = await refusal(plan)
    assert "did not find there what it had asked for" in error.fault.message


async def test_a_hook_that_sets_nothing(pebble: Pebble, plan_for: Plans, tmp_path: Path) -> None:
    path = tmp_path / "hook"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    error = await refusal(plan_for(pebble, "none.lab.test", hook=path))
    assert "none.lab.test: it did not find there" in error.fault.message
    assert "RELAY_ACME_DNS_HOOK" in error.fault.hint


async def test_a_port_in_use_is_found_before_the_server_is_asked(server: AcmeServer, plan_for: Plans) -> None:
    plan = plan_for(server)
    with socket.create_server(("127.0.0.1", plan.listen.port)):
        assert "in use" in (await refusal(plan)).fault.message
    assert server.asked == []


async def test_a_server_without_the_challenge(pebble: Pebble, plan_for: Plans) -> None:
    # pebble offers no HTTP-01 for a wildcard.
    error = await refusal(plan_for(pebble, "*.lab.test"))
    assert "does not offer http-01" in error.fault.message
    assert "RELAY_ACME_DNS_HOOK" in error.fault.hint


def html(_answer: Answer) -> Answer:
    return Answer(200, b"<html>", {"Content-Type": "text/html", "Replay-Nonce": "bm9uY2U"})


def empty(answer: Answer) -> Answer:
    return dataclasses.replace(answer, body=b"{}")


def busy(_answer: Answer) -> Answer:
    return as_json({"type": "urn:ietf:params:acme:error:rateLimited"}, 429, Retry_After="60")


@pytest.mark.parametrize(
    ("path", "change", "said"),
    [
        ("/authZ", html, "not ACME"),
        ("/authZ", empty, "not ACME"),
        ("/chalZ", html, "not ACME"),
        ("/chalZ", empty, "not ACME"),
        ("/finalize-order", busy, "too often"),
        pytest.param("/my-order", empty, "in time", marks=pytest.mark.long),
        pytest.param("/my-order", html, "not ACME", marks=pytest.mark.long),
    ],
)
async def test_an_answer_that_makes_no_sense_ends_the_order(
    pebble: Pebble,
    plan_for: Plans,
    tmp_path: Path,
    path: str,
    change: Callable[[Answer], Answer],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The library asks again for as long as an order says nothing.
    monkeypatch.setattr(client, "FINISH_S", 1.5)
    with Spoiler(tmp_path / "spoiler", pebble) as spoiler:
        spoiler.spoil = {path: change}
        plan = plan_for(spoiler)
        plan = dataclasses.replace(plan, listen=Listen("127.0.0.1", pebble.http_port))
        error = await refusal(plan)
    assert said in error.fault.message
    assert any(path in each for each in spoiler.asked)
    assert error.fault.retry_after == (60 if change is busy else None)
    # The door is closed again.
    with socket.create_server(("127.0.0.1", pebble.http_port)):
        pass


async def test_stopping_in_the_middle_closes_the_door(
    server: AcmeServer, plan_for: Plans, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_for(server)
    server.reply["/dir"] = lambda _request, _body: (time.sleep(1), Answer())[1]
    task = asyncio.ensure_future(get(plan))
    while not server.asked:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with socket.create_server(("127.0.0.1", plan.listen.port)):
        pass
