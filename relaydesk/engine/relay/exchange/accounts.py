"""Our accounts at targets, asked about between two reserves, at a path of ours (design §6)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, NoReturn

import msgspec

from relaydesk.core.errors import Fault, PeerError, as_peer_error
from relaydesk.core.ledger.ask import Answer, Want
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.statement import MOST_ROWS, Statement
from relaydesk.core.ports import Age, AgeIdentity, Clock
from relaydesk.core.relay.catalogue import MOST_ERROR_BYTES, read_error
from relaydesk.core.relay.hop import LEDGER_PATH
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.sealed.body import MEDIA_TYPE
from relaydesk.core.relay.sealed.envelope import SealedError, open_envelope, read_envelope, seal_envelope
from relaydesk.engine.ledger.purse import Purse
from relaydesk.engine.relay.asking.answered import Answered
from relaydesk.engine.relay.asking.ask import Ask
from relaydesk.engine.relay.asking.asker import Asker
from relaydesk.engine.relay.asking.send import BODY_S
from relaydesk.engine.relay.exchange.passed_over import PassedOver
from relaydesk.engine.relay.exchange.sealing_peer import sealing_peer
from relaydesk.engine.relay.outbound.outbound import UnreachableError

# A page of a statement is some hundred kilobytes.
ANSWER_LIMIT: Final = 2 * 1024 * 1024
BUDGET_S: Final = 60.0
_ON_LOOP: Final = 64 * 1024
# No row is from after the year 9999.
_MOST_MS: Final = 253_402_300_800_000
_ANSWER: Final = msgspec.json.Decoder(Answer)


@dataclass(frozen=True, slots=True)
class HeldAgainst:
    """A target's statement of our account, and the first thing in it that our own book does not bear out."""

    ref: NodeRef
    statement: Statement
    disagreement: str


class Accounts:
    """Asks through relays that announce the path. What is asked may be repeated: nothing is booked twice."""

    def __init__(self, asker: Asker, purse: Purse, age: Age, clock: Clock) -> None:
        self._asker = asker
        self._purse = purse
        self._age = age
        self._clock = clock

    async def ask(
        self,
        ref: NodeRef,
        want: Want = "balance",
        after: int = 0,
        *,
        voucher: str = "",
        budget_s: float = BUDGET_S,
    ) -> Answer:
        """How our account at ``ref`` stands, and with ``statement`` its rows after number ``after``.

        Whatever the target is still to be told goes along: a voucher, claims, protests. The purse is told the
        answer. ``voucher`` is the id of the one that goes before others; whoever asks says what became of
        it. Raises `PeerError`, `EnvError` where the purse's disk fails.
        """
        if self._asker.peers.get(ref) is None:
            raise PeerError("not_found", f"no directory admits node {ref}", "see `relaydesk relays`")
        try:
            peer = await sealing_peer(self._asker, self._clock, ref, budget_s)
        except PassedOver as over:
            raise as_peer_error(over.passed.fault) from None
        if not peer.keeps_ledger or peer.verified is None:
            raise PeerError("unsupported", f"node {ref} announces no ledger that could be asked")
        sent = await self._purse.extras(ref, voucher)
        reply = self._age.new_identity()
        question = msgspec.json.decode(
            await self._purse.ask(ref, want, sent, after), type=dict[str, msgspec.Raw]
        )
        question["reply_to"] = msgspec.Raw(msgspec.json.encode(reply.recipient))
        try:
            body = seal_envelope(self._age, msgspec.json.encode(question), peer.verified.sealing_key)
        except ValueError:
            _inconsistent(ref, "what it advertises is no key")
        found = await self._send(ref, body, reply, budget_s)
        await self._purse.told(ref, found.relaydesk_ledger, sent, quiet=voucher)
        return found

    async def tell(self, ref: NodeRef, budget_s: float = BUDGET_S) -> None:
        """Tell a target what waits, one question for each voucher that it answers. Raises as `ask` does."""
        waiting = await self._purse.waiting_vouchers(ref)
        while True:
            await self.ask(ref, budget_s=budget_s)
            before, waiting = waiting, await self._purse.waiting_vouchers(ref)
            if not waiting or waiting == before:
                return

    async def statement(self, ref: NodeRef) -> HeldAgainst:
        """All of our account at ``ref``, held against what we opened and agreed to. Raises as `ask` does."""
        first = (await self.ask(ref, "statement")).statement
        if first is None:
            _inconsistent(ref, "it gave no statement")
        head, rows = first.statement, list(first.rows)
        # What is booked meanwhile is left for the next statement.
        while len(rows) < min(head.rows, MOST_ROWS):
            page = (await self.ask(ref, "statement", len(rows))).statement
            if page is None or not page.rows:
                _inconsistent(ref, "its statement ends too early")
            rows += page.rows
        whole = Statement(head, tuple(rows[: head.rows]))
        if not all(0 <= row.at_ms < _MOST_MS for row in whole.rows):
            _inconsistent(ref, "its statement has a row of no time")
        peer = self._asker.peers.get(ref)
        signing = peer.listed.signing if peer is not None else ""
        return HeldAgainst(ref, whole, await self._purse.disagreement(ref, signing, whole))

    async def _send(self, ref: NodeRef, body: bytes, reply: AgeIdentity, budget_s: float) -> Answer:
        ask = Ask(
            target=ref,
            path=LEDGER_PATH,
            purpose="ledger",
            body=body,
            content_type=MEDIA_TYPE,
            accept=MEDIA_TYPE,
            check=_carries,
            check_limit=ANSWER_LIMIT,
        )
        async with await self._asker.send(ask, budget_s=budget_s) as answered:
            data = await _read(ref, answered)
        try:
            if len(data) > _ON_LOOP:
                return await asyncio.to_thread(_opened, reply, data)
            return _opened(reply, data)
        except (SealedError, LedgerRefusal, msgspec.MsgspecError, ValueError, RecursionError):
            _inconsistent(ref, "how our account stands there cannot be read")


def _opened(reply: AgeIdentity, data: bytes) -> Answer:
    return _ANSWER.decode(open_envelope(reply, data, ANSWER_LIMIT))


async def _read(ref: NodeRef, answered: Answered) -> bytes:
    """The sealed answer. Raises `PeerError` for a refusal, and where it breaks off."""
    good = 200 <= answered.status < 300
    try:
        async with asyncio.timeout(BODY_S):
            data = await answered.read(ANSWER_LIMIT if good else MOST_ERROR_BYTES)
    except (UnreachableError, TimeoutError):
        if good:
            said = f"the answer of node {ref} broke off"
            raise PeerError("operators_unreachable", said, "try again") from None
        data = b""
    if not good:
        named = answered.code or f"status {answered.status}"
        said = f"node {ref} does not answer about our account ({named}): {read_error(data).message}"
        busy = answered.status >= 500
        code = "operators_busy" if busy else "operator_inconsistent_response"
        raise PeerError(code, said.removesuffix(": "), "try again" if busy else "")
    return data


async def _carries(_: NodeRef, body: bytes) -> str:
    """Why a body is no target's answer: what stands in front of a relay also answers with 200."""
    try:
        if len(body) > _ON_LOOP:
            await asyncio.to_thread(read_envelope, body, ANSWER_LIMIT)
        else:
            read_envelope(body, ANSWER_LIMIT)
    except SealedError as error:
        return str(error)
    return ""


def _inconsistent(ref: NodeRef, why: str) -> NoReturn:
    raise as_peer_error(Fault("operator_inconsistent_response", f"node {ref}: {why}")) from None
