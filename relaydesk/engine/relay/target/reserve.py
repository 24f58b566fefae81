"""Reserves: who asks for what, and the ticket he gets, or why not (wire §4.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from relaydesk.core.errors import EnvError
from relaydesk.core.ledger.extensions import Settlement, read_settlements
from relaydesk.core.ledger.port import Ledger
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ports import Age, Clock, Rng
from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.records.reserve import ReserveError, ReserveRequest, check_payer, decode_reserve
from relaydesk.core.relay.records.reserve_response import ReserveResponse, encode_response
from relaydesk.core.relay.records.ticket import ID_SIZE, Ticket, new_ticket_id, sign_ticket
from relaydesk.core.relay.sealed.box import KEY_SIZE
from relaydesk.core.relay.sealed.envelope import SealedError, seal_envelope
from relaydesk.core.relay.sealed.response_key import commit_key, wrap_key
from relaydesk.engine.relay.identity import Identity
from relaydesk.engine.relay.target.offers import Offer, Offers
from relaydesk.engine.relay.target.opening import Opening
from relaydesk.engine.relay.target.replay import ReplaySet
from relaydesk.engine.relay.target.terms import ticket_of
from relaydesk.engine.relay.target.tickets import TICKET_LIFE_S, Held, Tickets

# Of a sealed reserve; the wire names no figure (§8.4). Our own field with 64 settlements fits.
RESERVE_LIMIT: Final = 64 * 1024


class ReserveDesk:
    """Answers reserves. What it refuses leaves nothing behind but claims and vouchers that were taken."""

    def __init__(
        self,
        identity: Identity,
        age: Age,
        opening: Opening,
        offers: Offers,
        tickets: Tickets,
        ledger: Ledger,
        clock: Clock,
        rng: Rng,
        draining: Callable[[], bool],
    ) -> None:
        self._identity = identity
        self._age = age
        self._opening = opening
        self._offers = offers
        self._tickets = tickets
        self._ledger = ledger
        self._clock = clock
        self._rng = rng
        self._draining = draining
        self._replay = ReplaySet(clock)

    async def answer(self, body: bytes) -> bytes:
        """The sealed answer to a sealed reserve. Raises `WireError`."""
        if self._draining():
            raise WireError("node_draining", "this node is going down")
        request, settlements = await self._read(body)
        held = self._grant(request)
        # Nothing has been waited for since it was looked for: two of the same cannot both be here.
        self._tickets.add(held)
        self._replay.add(held.recipient, request.payer_issued_at or 0)
        try:
            return self._sealed(held, await self._note(request, settlements))
        except BaseException:
            self._tickets.drop(held)
            self._replay.drop(held.recipient)
            raise

    async def _read(self, body: bytes) -> tuple[ReserveRequest, tuple[Settlement, ...]]:
        """The request, by whom it says, and for the first time."""
        now = self._clock.wall_ms() // 1000
        try:
            request = decode_reserve(await self._opening.open(body, RESERVE_LIMIT))
            check_payer(request, self._identity.ref, now)
            settlements = read_settlements(request.settle) if request.settle else ()
        except SealedError as error:
            raise WireError("bad_reserve_envelope", str(error)) from None
        except ReserveError as error:
            node_time = now if error.code == "invalid_payer_sig" else None
            raise WireError(error.code, str(error), node_time=node_time) from None
        except LedgerRefusal:
            raise WireError("invalid_reserve", "relaydesk_settle cannot be read") from None
        return request, settlements

    def _grant(self, request: ReserveRequest) -> Held:
        """The ticket, signed; nothing is kept of it yet."""
        if self._replay.seen(request.proxy_recipient):
            raise WireError("reserve_replayed", "proxy_recipient was used already: make a new one")
        offer = self._offers.find(request.model)
        if offer is None:
            raise WireError("unsupported_model", "this node does not serve that model now")
        key = self._rng.token_bytes(KEY_SIZE)
        ticket = ticket_of(
            request,
            offer,
            self._identity.ref,
            ticket_id=new_ticket_id(self._rng.token_bytes(ID_SIZE)),
            commit_k=commit_key(key),
            expires_at=self._clock.wall_ms() // 1000 + TICKET_LIFE_S,
        )
        try:
            wrap_key(self._age, key, request.proxy_recipient)
        except ValueError:
            raise WireError("invalid_proxy_recipient", "proxy_recipient is no age recipient") from None
        self._require_capacity(offer)
        return Held(
            self._signed(ticket),
            key,
            request.proxy_recipient,
            request.payer_addr,
            request.bound_version,
            offer.window,
        )

    def _require_capacity(self, offer: Offer) -> None:
        """A slot must be idle for this one too, beside all that tickets were given for (design §6)."""
        coming = self._tickets.promised(offer.name) - offer.lent
        share = self._offers.share
        over = share is not None and self._tickets.promised() >= share
        if offer.idle <= coming or over or self._tickets.full:
            raise WireError("no_capacity", "no slot is idle for this model")

    def _signed(self, ticket: Ticket) -> Ticket:
        return sign_ticket(self._identity.seed, ticket)

    async def _note(self, request: ReserveRequest, settlements: tuple[Settlement, ...]) -> bytes:
        """How the account stands, for those who speak our extensions, if only to ask; empty for others."""
        if not request.relaydesk_voucher and not request.settle:
            return b""
        try:
            note = await self._ledger.note(request.payer_addr, request.relaydesk_voucher or "", settlements)
        except EnvError:
            raise WireError("provider_unavailable", "this node's books cannot be written now") from None
        return msgspec.json.encode(note)

    def _sealed(self, held: Held, note: bytes) -> bytes:
        wrapped = wrap_key(self._age, held.key, held.recipient)
        response = ReserveResponse(ticket=held.ticket, wrapped_response_key=wrapped)
        if note:
            response = msgspec.structs.replace(response, relaydesk_ledger=msgspec.Raw(note))
        return seal_envelope(self._age, encode_response(response), held.recipient)
