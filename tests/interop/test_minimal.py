"""The minimal client, relay and target among themselves: honest exchanges, and each knob seen by the other.

They are written from the wire alone. What they will say of the real ones rests on this: they say it of each
other, and `test_minimal_vectors.py` that their bytes are the network's.
"""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.wire import codec, lies, prices
from tests.support.wire.client import MinimalClient
from tests.support.wire.events import DONE, Reader, block
from tests.support.wire.exchange import Answer, Refused, Target, Violation
from tests.support.wire.lies import put
from tests.support.wire.relay import MinimalRelay
from tests.support.wire.server import close, coded, uncoded
from tests.support.wire.target import MinimalTarget

CANARY = "the heron stands in the cold water"


def body(*, stream: bool = False, **more: Any) -> dict[str, Any]:
    return {"model": "lab/tiny", "messages": [{"role": "user", "content": CANARY}], "stream": stream} | more


class World:
    """One of each, on loopback."""

    def __init__(self, client: MinimalClient, relay: MinimalRelay, target: MinimalTarget) -> None:
        self.client, self.relay, self.target = client, relay, target


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with MinimalTarget(fee_bps=1000) as target, MinimalRelay() as relay:
        relay.peers[7, 1] = target.base_url + "/"
        payer, where = Ed25519PrivateKey.generate(), Target(7, 1, target.signing)
        async with MinimalClient(relay.base_url, where, payer, fee_bps=1000) as client:
            yield World(client, relay, target)


# --- honest


async def test_a_whole_answer_comes_back_opened_and_paid(world: World) -> None:
    world.target.lies.settle_group = b"group"
    answer = await world.client.exchange(body())
    assert answer.text == world.target.words.text
    assert answer.reply.marker and answer.reply.status == 200
    assert answer.settle_group == b"group"
    [held] = world.target.tickets.values()
    assert held.spent and held.tx_id == answer.tx_id and len(answer.tx_id) == 52
    assert answer.receipt == held.receipt
    assert answer.receipt is not None and answer.receipt["amount_charged"] == 2000
    assert json.loads(world.target.bodies[0]) == body()


async def test_a_stream_comes_back_in_order_to_its_end(world: World) -> None:
    world.target.lies.settle_group, world.target.lies.keep_alive = b"group", True
    heard: list[str] = []
    world.client.on_event = lambda answer, event: heard.append(event.name)
    answer = await world.client.exchange(body(stream=True, stream_options={"include_usage": True}))
    assert answer.text == world.target.words.text and answer.done
    assert heard[-6::2] == [":", ":", ":"] and heard[-5::2] == ["zs-settle-group", "zs-receipt", ""]
    assert answer.comments == len(answer.events) // 2
    assert answer.documents[-1]["usage"]["completion_tokens"] == 4
    assert answer.settle_group == b"group"


async def test_the_relay_reads_neither_prompt_nor_payer(world: World) -> None:
    answer = await world.client.exchange(body(stream=True))
    carried = b"".join(one.body + repr(one.headers).encode() for one in world.relay.seen)
    carried += b"".join(bytes(back) + repr(headers).encode() for _, headers, back in world.relay.answered)
    assert world.target.recipient.encode() in carried, "the control: this does pass in the clear"
    for secret in (CANARY, world.client.payer_address, answer.reserved.ticket_id, answer.tx_id, "forty-two"):
        assert secret.encode() not in carried


async def test_more_fields_travel_to_the_target_and_are_ignored(world: World) -> None:
    more: dict[str, Any] = {"relaydesk_open": {"voucher": "v"}}
    answer = await world.client.exchange(
        body(), fields={"input_bound_version": 2, "other": [1]}, opened=lambda reserved: ("TX", more)
    )
    assert answer.tx_id == "TX"
    assert world.target.headers[0]["relaydesk_open"] == {"voucher": "v"}


async def test_a_node_can_be_asked_directly(world: World) -> None:
    where = Target(7, 1, world.target.signing)
    async with MinimalClient(
        world.target.base_url, where, world.client.payer, direct=True, fee_bps=1000
    ) as one:
        assert (await one.exchange(body())).text == world.target.words.text
    assert not world.relay.seen


# --- a target that lies


LIES: dict[str, tuple[bool, str, object, str]] = {
    # name: (stream, knob, its value, the rule that the client names)
    "foreign node": (False, "details", put(node_id=2), "details: another node's"),
    "details changed": (False, "details", put(ephemeral_expiry=1_900_000_000), "details: signature"),
    "no sealing key": (False, "details", put(ephemeral_age_pubkey=None), "details: no sealing key"),
    "old key": (False, "ephemeral", put(ephemeral_issued_at=1, ephemeral_expiry=1000), "details: window"),
    "sum": (False, "ticket", put(max_price=1), "ticket: max price"),
    "rate": (False, "ticket", put(output_rate=4_000_001), "ticket: output rate"),
    "floor": (False, "ticket", put(min_price=10_000, max_price=11_000), "ticket: min price"),
    "count": (False, "ticket", put(input_count=10_000), "ticket: input count"),
    "model": (False, "ticket", put(model="other"), "ticket: model"),
    "expired": (False, "ticket", put(expires_at=1), "ticket: expiry"),
    "other commitment": (False, "ticket", put(commit_k="AAAA"), "ticket: commit"),
    "ticket changed": (False, "ticket_sent", put(expires_at=1_900_000_000), "ticket: signature"),
    "no ticket": (False, "reserve_response", put(ticket=None), "reserve: 'ticket'"),
    "amount": (False, "receipt", put(amount_charged=2001), "receipt: amount"),
    "more than held": (False, "receipt", put(amount_charged=10**9), "receipt: max price"),
    "hash": (True, "receipt", put(body_hash="0" * 64), "receipt: body hash"),
    "cached": (True, "receipt", put(cached_input_count=13), "receipt: cached"),
    "other ticket's": (True, "receipt", put(ticket_id="AA=="), "receipt: ticket"),
    "receipt changed": (True, "receipt_sent", put(ttft_ms=9_999_999), "receipt: signature"),
    "receipt without a field": (True, "receipt_sent", put(decode_ms=None), "receipt: fields"),
    "unsealed": (False, "unsealed", True, "unsealed answer"),
    "unsealed stream": (True, "unsealed", True, "unsealed answer"),
    "no key": (False, "headers", lies.without("X-Zs-Response-Key"), "unsealed answer"),
    "other key": (False, "key", b"k" * 32, "commit"),
    "no receipt header": (False, "headers", lies.without("X-Zs-Receipt"), "no receipt"),
    "body": (False, "body", lambda raw: raw.replace(b'": "', b'": "AAAA', 1), "body does not open"),
    "swapped": (True, "events", lies.swap(0, 1), "zs does not open"),
    "dropped": (True, "events", lies.drop(1), "zs does not open"),
    "last dropped": (True, "events", lies.drop(-3), "zs-receipt does not open"),
    "doubled": (True, "events", lies.double(1), "zs does not open"),
    "altered": (True, "events", lies.flip(2), "zs does not open"),
    "receipt early": (True, "events", lies.move(-2, 3), "zs-receipt does not open"),
    "no receipt": (True, "events", lies.drop(-2), "no receipt"),
    "no done": (True, "events", lies.drop(-1), "cut"),
    "plain event": (True, "events", lies.insert(1, b"data: {}\n\n"), "unsealed event"),
    "after done": (True, "events", lies.insert(99, block("zs", "AAAA")), "event after [DONE]"),
    "ended early": (True, "events", lies.end_after(2), "no receipt"),
    "cut in the headers": (True, "close", "headers", "cut"),
    "cut before an event": (True, "close", "event:2", "cut"),
    "cut body": (False, "close", "headers", "cut"),
}


@pytest.mark.parametrize("name", LIES)
async def test_a_lie_is_named(world: World, name: str) -> None:
    stream, knob, value, rule = LIES[name]
    assert hasattr(world.target.lies, knob)
    setattr(world.target.lies, knob, value)
    with pytest.raises(Violation) as raised:
        await world.client.exchange(body(stream=stream))
    assert raised.value.rule == rule


async def test_a_settle_group_in_the_content_is_a_violation(world: World) -> None:
    world.target.lies.settle_group, world.target.lies.events = b"group", lies.move(-3, 1)
    with pytest.raises(Violation, match="settlement before"):
        await world.client.exchange(body(stream=True))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_sealed_error_costs_nothing(world: World, stream: bool) -> None:
    world.target.lies.sealed_error = (429, "provider_overloaded")
    answer = await world.client.exchange(body(stream=stream))
    assert answer.error is not None and answer.error["code"] == "provider_overloaded"
    assert answer.receipt is not None and answer.receipt["amount_charged"] == 0
    assert answer.reply.status == (200 if stream else 429)
    world.target.lies.receipt = put(actual_input_count=1, amount_charged=2000)
    with pytest.raises(Violation, match="receipt: error for nothing"):
        await world.client.exchange(body(stream=stream))


@pytest.mark.parametrize("step", ["details", "reserve", "inference"])
async def test_a_refusal_and_a_closed_door_at_each_step(world: World, step: str) -> None:
    for status, code in ((503, "node_draining"), (503, "")):
        world.target.lies.refuse = {step: (status, code)}
        with pytest.raises(Refused) as raised:
            await world.client.exchange(body())
        assert (raised.value.step, raised.value.status, raised.value.code) == (step, status, code)
        assert raised.value.reply.marker
    world.target.lies.refuse, world.target.lies.close = {}, step
    with pytest.raises(Refused) as raised:
        await world.client.exchange(body())
    assert (raised.value.step, raised.value.code) == (step, "relay_upstream_unreachable")
    assert not any(held.spent for held in world.target.tickets.values())


async def test_an_answer_made_and_not_sent_has_spent_its_ticket(world: World) -> None:
    world.target.lies.close = "answer"
    with pytest.raises(Refused):
        await world.client.exchange(body())
    [held] = world.target.tickets.values()
    assert held.spent and held.receipt is not None


async def test_an_inference_waits_at_the_gate(world: World) -> None:
    world.target.lies.gate = asyncio.Event()
    running = asyncio.create_task(world.client.exchange(body()))
    while not any(held.spent for held in world.target.tickets.values()):
        await asyncio.sleep(0.001)
    assert not running.done()
    world.target.lies.gate.set()
    assert (await running).text == world.target.words.text


# --- a client that misbehaves


async def infer(world: World, **knobs: Any) -> Answer:
    """From a good ticket on; ``knobs`` are those of ``sealed_request``."""
    raw = json.dumps(body()).encode()
    details = await world.client.details()
    reserved = await world.client.reserve(details, "lab/tiny", prices.input_bound(raw), 64)
    sent = world.client.sealed_request(details, reserved, raw, **{"tx_id": "TX"} | knobs)
    return await world.client.receive(sent, reserved, "TX")


def turn(at: str) -> Callable[[str, bytes], bytes]:
    return lambda what, raw: raw[:-1] + bytes([raw[-1] ^ 1]) if what == at else raw


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("reserve.plain", "bad_reserve_envelope"),
        ("reserve.envelope", "bad_reserve_envelope"),
        ("header", "bad_envelope"),
        ("envelope", "bad_envelope"),
        ("body", "admission_tag_invalid"),
        ("frame", "admission_tag_invalid"),
    ],
)
async def test_bytes_altered_on_the_way_out(world: World, what: str, code: str) -> None:
    world.client.alter = turn(what)
    with pytest.raises(Refused) as raised:
        await infer(world)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ({"ticket_id": None}, "ticket_required"),
        ({"ticket_id": codec.b64(b"0" * 16)}, "ticket_invalid"),
        ({"admission_tag": codec.b64(b"0" * 32)}, "admission_tag_invalid"),
        ({"admission_tag": codec.b64(b"short")}, "bad_envelope"),
        ({"algorand_tx_id": "OTHER"}, "admission_tag_invalid"),
        ({"reply_to_public_key": codec.new_reply_key()[1]}, "reply_to_mismatch"),
    ],
)
async def test_a_wrong_inner_header_leaves_the_ticket(
    world: World, header: dict[str, Any], code: str
) -> None:
    with pytest.raises(Refused) as raised:
        await infer(world, header=header)
    assert raised.value.code == code
    assert not any(held.spent for held in world.target.tickets.values())


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"payer_sig": codec.b64(b"0" * 64)}, "invalid_payer_sig"),
        ({"payer_issued_at": 1_000_000_000}, "invalid_payer_sig"),
        ({"payer_addr": ""}, "missing_payer_addr"),
        ({"payer_addr": "A" * 58}, "invalid_payer_addr"),
        ({"proxy_recipient": "age1x"}, "invalid_proxy_recipient"),
        ({"input_count": 0}, "invalid_reserve"),
        ({"input_bound_version": 3}, "invalid_reserve"),
        ({"max_output_count": 9000}, "context_length_exceeded"),
        ({"model": "other"}, "unsupported_model"),
    ],
)
async def test_a_wrong_reserve_gets_no_ticket(world: World, fields: dict[str, Any], code: str) -> None:
    with pytest.raises(Refused) as raised:
        await world.client.exchange(body(), fields=fields)
    assert raised.value.code == code
    assert not world.target.tickets


async def test_replays(world: World) -> None:
    first = await world.client.exchange(body())
    reserve, inference = world.client.sent[-2:]
    again = await world.client.resend(reserve)
    assert (again.status, again.error["code"]) == (409, "reserve_replayed")
    again = await world.client.resend(inference)
    assert (again.status, again.error["code"]) == (402, "ticket_invalid")
    assert first.text and len(world.target.bodies) == 1


async def test_an_unpaid_ticket_is_burned(world: World) -> None:
    world.target.lies.paid = lambda tx_id, ticket, header: False
    with pytest.raises(Refused, match="payment_verification_failed"):
        await infer(world)
    assert [held.spent for held in world.target.tickets.values()] == [True]


async def test_an_old_ticket_and_a_body_beyond_its_count(world: World) -> None:
    raw = json.dumps(body()).encode()
    details = await world.client.details()
    small = await world.client.reserve(details, "lab/tiny", 33, 64)
    answer = await world.client.receive(
        world.client.sealed_request(details, small, raw, tx_id="TX"), small, "TX"
    )
    assert answer.error is not None and answer.error["code"] == "input_budget_exceeded"
    old = await world.client.reserve(details, "lab/tiny", prices.input_bound(raw), 64)
    world.target.tickets[old.ticket_id].ticket["expires_at"] = 1
    with pytest.raises(Refused, match="ticket_invalid"):
        await world.client.receive(world.client.sealed_request(details, old, raw, tx_id="TX"), old, "TX")


async def test_a_client_hangs_up(world: World) -> None:
    def leave(answer: Answer, event: object) -> None:
        if len(answer.chunks) == 2:
            raise KeyError("gone")

    world.client.on_event = leave
    with pytest.raises(KeyError):
        await world.client.exchange(body(stream=True))


# --- a relay that misbehaves


async def test_what_a_relay_answers_by_itself(world: World) -> None:
    world.relay.answers = [lambda _: coded(503, "relay_busy", Retry_After="2"), lambda _: uncoded(502)]
    seen = []
    for _ in range(2):
        with pytest.raises(Refused) as raised:
            await world.client.details()
        seen.append((raised.value.status, raised.value.code, raised.value.reply.marker))
    assert seen == [(503, "relay_busy", True), (502, "", True)]
    world.relay.marks, world.relay.always = False, lambda _: uncoded(429)
    with pytest.raises(Refused) as raised:
        await world.client.details()
    assert not raised.value.reply.marker
    world.relay.always = close
    with pytest.raises(Refused) as raised:
        await world.client.details()
    assert raised.value.status == 0
    assert not world.target.seen


@pytest.mark.parametrize(
    ("header", "value", "code"),
    [
        ("X-Zs-Relay-Target", "-1", "relay_bad_target"),
        ("X-Zs-Relay-Target", "8", "relay_unknown_target"),
        ("X-Zs-Relay-Target-Node", "one", "relay_bad_target"),
        ("X-Zs-Relay-Path", "/v1/zs/relay", "relay_bad_path"),
        ("X-Zs-Relay-Path", "/v1/models/../x", "relay_bad_path"),
        ("X-Zs-Relay-Method", "PUT", "relay_bad_method"),
    ],
)
async def test_what_a_relay_refuses(world: World, header: str, value: str, code: str) -> None:
    world.client.alter_headers = lambda step, headers: headers.update({header: value})
    with pytest.raises(Refused, match=code) as raised:
        await world.client.details()
    assert raised.value.reply.marker


async def test_a_relay_alters_cuts_or_swallows_an_answer(world: World) -> None:
    world.relay.tamper = lambda path, raw: raw.replace(b"event: zs\n", b"event: zs-receipt\n", 1)
    # An event's name is sealed nowhere: it is the place of the receipt that gives the relay away.
    with pytest.raises(Violation, match="settlement before"):
        await world.client.exchange(body(stream=True))
    world.relay.tamper = None
    details = await world.client.details()
    reserved = await world.client.reserve(details, "lab/tiny", 100, 64, stream=True)
    raw = json.dumps(body(stream=True)).encode()
    world.relay.cut_after = 400
    with pytest.raises(Violation, match="cut"):
        await world.client.receive(
            world.client.sealed_request(details, reserved, raw, tx_id="TX"), reserved, "TX"
        )
    world.relay.cut_after, world.relay.after = None, lambda _: uncoded(504)
    count = len(world.target.tickets)
    with pytest.raises(Refused):
        await world.client.reserve(details, "lab/tiny", 100, 64)
    assert len(world.target.tickets) == count + 1


async def test_a_target_cannot_set_the_marker(world: World) -> None:
    world.relay.marks = False
    world.target.lies.headers = lambda headers: headers.update({"X-Zs-Relay-Hop": "1", "X-Zs-Other": "x"})
    answer = await world.client.exchange(body())
    assert not answer.reply.marker and answer.reply.headers["x-zs-other"] == "x"


# --- bytes


def test_they_share_no_code_with_the_node() -> None:
    modules = sorted(Path(codec.__file__).parent.glob("*.py"))
    assert modules
    for module in modules:
        names: list[str] = []
        for one in ast.walk(ast.parse(module.read_text())):
            if isinstance(one, ast.Import):
                names += [alias.name for alias in one.names]
            elif isinstance(one, ast.ImportFrom):
                names.append(one.module or "")
        ours = [name for name in names if name.split(".")[0] in ("relaydesk", "tests")]
        assert all(name.startswith("tests.support.wire") for name in ours), (module.name, ours)


def test_events_however_they_arrive() -> None:
    raw = block("zs", "AAAA") + b": ping\n\n" + b": first\nevent: zs\ndata: BBBB\n\n" + DONE
    for size in (1, 2, 7, len(raw)):
        reader = Reader()
        got = [one for at in range(0, len(raw), size) for one in reader.feed(raw[at : at + size])]
        assert [(one.name, one.data) for one in got if one.name != ":"] == [
            ("zs", "AAAA"),
            ("zs", "BBBB"),
            ("", "[DONE]"),
        ]
        assert len(got) == 4 and not reader.rest


def test_a_frame_is_read_back_and_a_broken_one_is_not() -> None:
    frame = codec.request_frame(b'{"ticket_id": "t"}', b"body")
    assert codec.parse_request_frame(frame) == ({"ticket_id": "t"}, b"body")
    for broken in (frame[:8], b"zsrx" + frame[4:], frame[:4] + b"\x02" + frame[5:], frame[:5] + b"\xff" * 4):
        with pytest.raises(codec.Malformed):
            codec.parse_request_frame(broken)
