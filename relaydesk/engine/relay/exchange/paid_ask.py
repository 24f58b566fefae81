"""The sealed request of a ticket that was opened, sent once, and the head of its answer (wire §2.5, §4.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from relaydesk.core.errors import Fault, PeerError, as_peer_error
from relaydesk.core.ports import Age
from relaydesk.core.relay.catalogue import MOST_ERROR_BYTES, read_error
from relaydesk.core.relay.exchange.demand import Demand
from relaydesk.core.relay.exchange.refused import plain_fault
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.schedule import INNER_ATTEMPTS, inner_delay_ms
from relaydesk.core.relay.sealed.admission import admission_tag
from relaydesk.core.relay.sealed.body import MEDIA_TYPE
from relaydesk.core.relay.sealed.box import Exchange as Sealed
from relaydesk.core.relay.sealed.envelope import SealedError, seal_envelope
from relaydesk.core.relay.sealed.inner import Inner, write_inner
from relaydesk.core.relay.sealed.response_key import RESPONSE_KEY_HEADER, key_is_committed, unwrap_key
from relaydesk.core.relay.sealed.stream import STREAM_TYPE
from relaydesk.engine.relay.asking.answered import Answered, NotReachedError
from relaydesk.engine.relay.asking.ask import LONG_HEAD_S, Ask
from relaydesk.engine.relay.asking.asker import Asker
from relaydesk.engine.relay.asking.send import BODY_S
from relaydesk.engine.relay.exchange.bill import Bill
from relaydesk.engine.relay.exchange.stream import ON_LOOP
from relaydesk.engine.relay.outbound.outbound import UnreachableError

Sleep = Callable[[float], Awaitable[None]]


class PaidAsk:
    """Sends what was paid for, and never the same ticket twice past a relay that may have forwarded it."""

    def __init__(self, asker: Asker, age: Age, sleep: Sleep) -> None:
        self._asker = asker
        self._age = age
        self._sleep = sleep

    async def ask(self, demand: Demand, bill: Bill) -> tuple[Answered, Sealed]:
        """The sealed answer, its key checked against the ticket and nothing of it read; the caller closes it.

        Its content type is the stream's or the sealed body's. Raises `PeerError`, with ``bill`` told: a
        refusal in plain text, ``operator_unsealed_response``, ``operator_inconsistent_response``.
        """
        body = await self._sealed(demand, bill)
        answered = await self._send(demand, bill, body)
        try:
            return answered, await self._checked(answered, bill)
        except BaseException:
            await answered.aclose()
            raise

    async def _sealed(self, demand: Demand, bill: Bill) -> bytes:
        held = bill.reservation
        peer = self._asker.peers.get(held.ref)
        if peer is None or peer.verified is None:
            bill.refused()
            raise PeerError("operators_unreachable", f"node {held.ref} is listed no more", retry_after=60)
        opening = msgspec.json.encode(bill.paid.extension) if held.ledger else b""
        key = peer.verified.sealing_key
        try:
            if len(demand.body) > ON_LOOP:
                return await asyncio.to_thread(_seal, self._age, demand.body, bill, key, opening)
            return _seal(self._age, demand.body, bill, key, opening)
        except ValueError:
            # Another one than was reserved with: nothing was sent.
            bill.refused()
            raise _inconsistent(held.ref, "what it advertises is no key") from None

    async def _send(self, demand: Demand, bill: Bill, body: bytes) -> Answered:
        """The same bytes, again only where a relay says that it did not forward them."""
        held = bill.reservation
        ask = Ask(
            target=held.ref,
            path=demand.path,
            purpose="inference",
            body=body,
            content_type=MEDIA_TYPE,
            accept=STREAM_TYPE if demand.stream else "application/json",
            head_s=LONG_HEAD_S,
        )
        tried: list[NodeRef] = []
        while True:
            if delay := inner_delay_ms(len(tried)):
                await self._sleep(delay / 1000)
            try:
                answered = await self._asker.send_once(ask, tried=tried)
            except NotReachedError as error:
                if error.fault.code == "no_relay_available":
                    bill.refused()
                    if tried:
                        raise as_peer_error(plain_fault(held.ref, 503, "relay_busy", _NO_WORDS)) from None
                raise
            bill.relay = answered.relay
            if not answered.may_repeat or len(tried) + 1 >= INNER_ATTEMPTS:
                return answered
            tried.append(answered.relay)
            await answered.aclose()

    async def _checked(self, answered: Answered, bill: Bill) -> Sealed:
        held = bill.reservation
        wrapped = answered.headers.get(RESPONSE_KEY_HEADER)
        good = 200 <= answered.status < 300
        if wrapped is None and not good:
            bill.refused()
            raise as_peer_error(await _plain(answered, held.ref))
        media = answered.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if wrapped is None or media not in (MEDIA_TYPE, STREAM_TYPE):
            raise PeerError(
                "operator_unsealed_response",
                f"the answer of node {held.ref} is not sealed, and nothing of it was read",
                "send the request again",
            )
        try:
            key = unwrap_key(held.reply, wrapped)
        except SealedError as error:
            raise _inconsistent(held.ref, str(error)) from None
        if not key_is_committed(key, held.ticket.commit_k):
            raise _inconsistent(held.ref, "it is sealed with another key than its ticket commits to")
        return Sealed(key, bill.tx_id, held.ticket.ticket_id)


_NO_WORDS: Final = read_error(b"").message


def _seal(age: Age, body: bytes, bill: Bill, recipient: str, opening: bytes) -> bytes:
    held = bill.reservation
    tag = admission_tag(held.key, held.ticket.ticket_id, bill.tx_id, body)
    inner = Inner(held.reply.recipient, bill.tx_id, held.ticket.ticket_id, tag, body, opening)
    return seal_envelope(age, write_inner(inner), recipient)


async def _plain(answered: Answered, ref: NodeRef) -> Fault:
    """What a plain refusal says."""
    try:
        async with asyncio.timeout(BODY_S):
            body = await answered.read(MOST_ERROR_BYTES)
    except (UnreachableError, TimeoutError):
        body = b""
    return plain_fault(ref, answered.status, answered.code, read_error(body).message)


def _inconsistent(ref: NodeRef, why: str) -> PeerError:
    return PeerError(
        "operator_inconsistent_response", f"the answer of node {ref} does not hold: {why}", "send it again"
    )
