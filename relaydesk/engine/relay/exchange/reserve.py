"""One reserve at one target: sealed both ways, signed by the payer, its ticket checked (wire §4.3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from relaydesk.core.errors import Fault, PeerError, as_peer_error
from relaydesk.core.ledger.extensions import read_note
from relaydesk.core.ledger.keys import KeySigner
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ledger.voucher import parse_code
from relaydesk.core.ports import Age, AgeIdentity, Clock
from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.bound.reserve_count import reserve_input_count, tool_growth
from relaydesk.core.relay.catalogue import MOST_ERROR_BYTES, ErrorReport, read_error
from relaydesk.core.relay.exchange.demand import Demand
from relaydesk.core.relay.exchange.refused import move, reserve_fault
from relaydesk.core.relay.exchange.ticket_check import Terms, no_credit_left, ticket_fault
from relaydesk.core.relay.hop import RESERVE_PATH
from relaydesk.core.relay.price.advertised import Advertised
from relaydesk.core.relay.price.charge import leg
from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.details import Details
from relaydesk.core.relay.records.reserve import MEDIA_TYPE, ReserveRequest, encode_reserve, sign_reserve
from relaydesk.core.relay.records.reserve_response import ReserveResponse, decode_response
from relaydesk.core.relay.records.ticket import Ticket
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.schedule import INNER_ATTEMPTS
from relaydesk.core.relay.sealed.envelope import SealedError, open_envelope, seal_envelope
from relaydesk.core.relay.sealed.response_key import key_is_committed, unwrap_key
from relaydesk.core.relay.target.candidate import Candidate
from relaydesk.core.relay.target.constraints import Constraints
from relaydesk.core.relay.version import TIGHT_BOUND, at_least
from relaydesk.engine.ledger.purse import Extras, Purse
from relaydesk.engine.relay.asking.answered import Answered, NotReachedError
from relaydesk.engine.relay.asking.ask import Ask
from relaydesk.engine.relay.asking.asker import Asker
from relaydesk.engine.relay.asking.send import BODY_S
from relaydesk.engine.relay.exchange.accounts import Accounts
from relaydesk.engine.relay.exchange.market import Market
from relaydesk.engine.relay.exchange.passed_over import PassedOver, inconsistent, no_credit, not_reached
from relaydesk.engine.relay.exchange.sealing_peer import sealing_peer
from relaydesk.engine.relay.outbound.outbound import UnreachableError

_log: Final = logging.getLogger(__name__)

# A response has a ticket, a key and how an account stands: some kilobytes.
RESPONSE_LIMIT: Final = 256 * 1024
# Nobody's clock is further off; a stamp of another day would only let a caught reserve be kept for then.
_MOST_SKEW_S: Final = 86_400
# Of a request's time for vouchers that wait before it.
SORT_OUT_S: Final = 12.0
# How long a target's word on our credit is believed to be the last one.
_TOLD_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class Reservation:
    """A ticket that may be paid. ``key`` is the response key, ``reply`` what answers are sealed to.

    ``public`` is the target's signing key, ``ledger`` whether it keeps ours, ``relay`` who carried the
    reserve, ``rtt_ms`` how long that took.
    """

    ref: NodeRef
    ticket: Ticket
    public: bytes
    ledger: bool
    relay: NodeRef
    rtt_ms: float
    key: bytes = field(repr=False)
    reply: AgeIdentity = field(repr=False)


@dataclass(slots=True)
class _Try:
    """What the next attempt is made with, and how often which of its parts may be changed."""

    reply: AgeIdentity
    issued_at: int | None = None
    left: list[str] = field(default_factory=lambda: ["restamp", "reseal", *["renew"] * INNER_ATTEMPTS])


class Reserver:
    """Reserves at targets. ``fee_bps`` is the network's fee in 1/10000."""

    def __init__(
        self,
        asker: Asker,
        market: Market,
        purse: Purse,
        age: Age,
        clock: Clock,
        fee_bps: Callable[[], int],
    ) -> None:
        self._asker = asker
        self._market = market
        self._purse = purse
        self._age = age
        self._clock = clock
        self._fee_bps = fee_bps
        self._accounts = Accounts(asker, purse, age, clock)

    async def reserve(
        self,
        candidate: Candidate,
        demand: Demand,
        constraints: Constraints,
        credit_left: int | None,
        budget_s: float,
    ) -> Reservation:
        """Get a ticket, with a reply key that nobody has seen before.

        Raises `PassedOver` where another target may do, `PeerError` where none would, `EnvError` where the
        purse fails.
        """
        ref = candidate.ref
        end = self._clock.mono() + budget_s
        payer = await self._purse.key(ref.operator)
        attempt = _Try(self._age.new_identity())
        while True:
            peer = await sealing_peer(self._asker, self._clock, ref, self._left(end))
            details = peer.verified.details if peer.verified is not None else None
            assert details is not None
            ledger = bool(details.relaydesk_ledger)
            if ledger:
                await self._sort_out(ref, end)
            extras = await self._purse.extras(ref) if ledger else None
            asked = self._request(candidate, demand, constraints, details, payer, attempt, extras)
            price = _expected_price(self._market.advertised(ref, demand.model), asked)
            # A ticket that is not paid keeps a place from others: it is not asked for in the first place.
            if credit_left is not None and price > credit_left:
                raise as_peer_error(no_credit_left(price, credit_left))
            if extras is not None and not extras.fields:
                self._afford(ref, price)
            answered = await self._send(ref, details, asked, attempt.reply, end)
            async with answered:
                body = await _read(ref, answered)
            if 200 <= answered.status < 300:
                response = self._opened(ref, attempt.reply, body)
                await self._told(ref, response, extras)
                if await self._next_voucher(ref, response, extras):
                    attempt.reply = self._age.new_identity()
                    continue
                terms = Terms(
                    ref,
                    decode_address(peer.listed.signing),
                    asked,
                    self._market.advertised(ref, demand.model),
                    constraints.hints,
                    demand.max_output is not None,
                    credit_left,
                    self._fee_bps(),
                )
                return self._taken(terms, response, attempt.reply, answered, ledger=ledger)
            report = read_error(body)
            if not await self._again(ref, answered.code, report, attempt, end):
                raise self._refused(ref, answered, report)

    def _request(
        self,
        candidate: Candidate,
        demand: Demand,
        constraints: Constraints,
        details: Details,
        payer: KeySigner,
        attempt: _Try,
        extras: Extras | None,
    ) -> ReserveRequest:
        most = constraints.output_for(candidate)
        tight = at_least(details.proto_version, *TIGHT_BOUND)
        growth = tool_growth(
            grows=demand.grows,
            rounds=details.max_tool_iterations,
            headroom=details.tool_headroom_per_iteration,
        )
        count = reserve_input_count(
            demand.bounds.v2 if tight else demand.bounds.v1,
            growth=growth,
            max_output=most,
            context_window=candidate.capacity(demand.model).context_window,
        )
        request = ReserveRequest(
            model=demand.model,
            input_count=max(count, 1),
            max_output_count=most,
            stream=demand.stream,
            proxy_recipient=attempt.reply.recipient,
            payer_addr=payer.address,
            input_bound_version=2 if tight else None,
            relaydesk_voucher=(extras.voucher or None) if extras is not None else None,
            # With nothing to settle it still asks how the account stands.
            relaydesk_settle=msgspec.Raw(b"null" if extras is None else msgspec.json.encode(extras.settle)),
        )
        issued_at = attempt.issued_at if attempt.issued_at is not None else self._now_s()
        return sign_reserve(payer.sign, candidate.ref, request, issued_at)

    def _afford(self, ref: NodeRef, price: int) -> None:
        """Pass over a target where our credit was too little lately, whatever comes of what is held there."""
        account = next((each for each in self._purse.view() if (each.operator, each.node) == ref), None)
        if account is None or self._clock.wall_ms() - account.told_at_ms > _TOLD_MS or not account.told_at_ms:
            return
        if account.balance + account.held < price:
            raise no_credit(ref, price)

    async def _send(
        self, ref: NodeRef, details: Details, asked: ReserveRequest, reply: AgeIdentity, end: float
    ) -> Answered:
        try:
            body = seal_envelope(self._age, encode_reserve(asked), details.ephemeral_age_pubkey or "")
        except ValueError:
            raise inconsistent(ref, "what it advertises is no key") from None
        ask = Ask(
            target=ref,
            path=RESERVE_PATH,
            purpose="reserve",
            body=body,
            content_type=MEDIA_TYPE,
            accept="application/json",
            check=_opens_with(reply),
            check_limit=RESPONSE_LIMIT,
        )
        try:
            return await self._asker.send(ask, budget_s=self._left(end))
        except NotReachedError as error:
            raise not_reached(ref, error) from None

    def _opened(self, ref: NodeRef, reply: AgeIdentity, body: bytes) -> ReserveResponse:
        try:
            return decode_response(open_envelope(reply, body, RESPONSE_LIMIT))
        except (SealedError, RecordError) as error:
            raise inconsistent(ref, f"its answer to the reserve does not hold ({error})") from None

    async def _told(self, ref: NodeRef, response: ReserveResponse, sent: Extras | None) -> None:
        if sent is not None and response.ledger:
            try:
                await self._purse.told(ref, read_note(response.ledger), sent)
            except LedgerRefusal:
                raise inconsistent(ref, "how the account stands there cannot be read") from None

    async def _sort_out(self, ref: NodeRef, end: float) -> None:
        """Hand in several vouchers before: one that is refused with a reserve leaves a ticket nobody pays."""
        if len(await self._purse.waiting_vouchers(ref)) > 1:
            try:
                await self._accounts.tell(ref, min(SORT_OUT_S, self._left(end)))
            except PeerError as error:
                _log.info("node %s was not handed the vouchers before: %s", ref, error.fault.code)

    async def _next_voucher(self, ref: NodeRef, response: ReserveResponse, sent: Extras | None) -> bool:
        """Whether credit is short and a voucher waits behind the one that was just answered."""
        if sent is None or not sent.voucher or not response.ledger:
            return False
        if read_note(response.ledger).balance >= response.ticket.max_price:
            return False
        waiting = await self._purse.waiting_vouchers(ref)
        return bool(waiting) and parse_code(sent.voucher).id not in waiting

    def _taken(
        self, terms: Terms, response: ReserveResponse, reply: AgeIdentity, answered: Answered, *, ledger: bool
    ) -> Reservation:
        """The ticket, once everything about it holds."""
        ref, ticket = terms.ref, response.ticket
        fault = ticket_fault(ticket, terms, self._now_s())
        if fault is not None:
            raise PassedOver(ref, "refused", fault)
        try:
            key = unwrap_key(reply, response.wrapped_response_key)
        except SealedError as error:
            raise inconsistent(ref, str(error)) from None
        if not key_is_committed(key, ticket.commit_k):
            raise inconsistent(ref, "its ticket commits to another response key")
        if ledger and response.ledger and read_note(response.ledger).balance < ticket.max_price:
            raise no_credit(ref, ticket.max_price)
        rtt_ms = float(answered.hops[-1].duration_ms)
        return Reservation(ref, ticket, terms.public, ledger, answered.relay, rtt_ms, key, reply)

    async def _again(self, ref: NodeRef, code: str, report: ErrorReport, attempt: _Try, end: float) -> bool:
        """Whether the refusal is of a kind that is answered by asking once more, otherwise."""
        step = move(0, code)
        if step not in attempt.left:
            return False
        attempt.left.remove(step)
        if step == "restamp":
            stamp = report.node_time
            attempt.issued_at = stamp
            return stamp is not None and abs(stamp - self._now_s()) <= _MOST_SKEW_S
        if step == "reseal":
            await sealing_peer(self._asker, self._clock, ref, self._left(end), anew=True)
        # What was sealed to a key that is gone, or known as used, must not be seen again.
        attempt.reply = self._age.new_identity()
        return True

    def _refused(self, ref: NodeRef, answered: Answered, report: ErrorReport) -> PassedOver | PeerError:
        fault = reserve_fault(ref, answered.status, answered.code, report.message)
        step = move(answered.status, answered.code)
        if step == "stop":
            return as_peer_error(fault)
        if step not in ("busy", "unavailable"):
            return PassedOver(ref, "refused", fault)
        seconds = -(-answered.retry_after_ms // 1000)
        waited = Fault(fault.code, fault.message, fault.hint, retry_after=min(seconds, 3600) or None)
        return PassedOver(ref, "busy" if step == "busy" else "unavailable", waited)

    def _left(self, end: float) -> float:
        return max(0.0, end - self._clock.mono())

    def _now_s(self) -> int:
        return self._clock.wall_ms() // 1000


async def _read(ref: NodeRef, answered: Answered) -> bytes:
    good = 200 <= answered.status < 300
    try:
        async with asyncio.timeout(BODY_S):
            return await answered.read(RESPONSE_LIMIT if good else MOST_ERROR_BYTES)
    except (UnreachableError, TimeoutError):
        if not good:
            return b""
        fault = Fault("operators_unreachable", f"the answer of node {ref} broke off", "try again")
        raise PassedOver(ref, "unreachable", fault) from None


def _opens_with(reply: AgeIdentity) -> Callable[[NodeRef, bytes], Awaitable[str]]:
    """Why a body is not the target's answer: only the target knows the key that it must be sealed to.

    What stands in front of a relay also answers with 200, and so may a relay; another one is asked then.
    """

    async def why_not(_: NodeRef, body: bytes) -> str:
        try:
            open_envelope(reply, body, RESPONSE_LIMIT)
        except SealedError as error:
            return str(error)
        return ""

    return why_not


def _expected_price(told: Advertised | None, asked: ReserveRequest) -> int:
    """The most that a request should cost by what a node says of itself, in microUSDC."""
    if told is None:
        return 0
    rates = told.rates(asked.input_count)
    legs = leg(asked.input_count, rates.input) + leg(asked.max_output_count, rates.output)
    return max(legs, leg(told.min_charge_tokens, rates.output), told.min_charge_micro)
