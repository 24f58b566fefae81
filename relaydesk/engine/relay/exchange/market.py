"""What the network offers now, out of details that were verified (wire §3.4, §5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from relaydesk.core.ports import Clock
from relaydesk.core.relay.exchange.nobody import Known
from relaydesk.core.relay.price.advertised import Advertised, LongContext, rates_of
from relaydesk.core.relay.price.rate import micro_rate, parse_usd
from relaydesk.core.relay.records.details import Details, OfferedModel
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.candidate import Candidate, Capacity
from relaydesk.core.relay.version import compatible
from relaydesk.engine.relay.asking.choice import Choice
from relaydesk.engine.relay.asking.peers import Peer, Peers, Verified

# How old the list of models may be: it is made of everything that is known.
LIST_S: Final = 1.0
# Nodes remembered as candidates; one more only costs making it again.
MOST: Final = 4096
_TEXT: Final = "text"


class NetworkModel(msgspec.Struct, frozen=True):
    """A model that somebody offers. Rates are the cheapest target's, in microUSDC per 1,000,000 tokens.

    ``context_window`` and ``max_output`` are the largest that any target declares, 0 where none does.
    ``warm``: at least one of its ``targets`` can be asked now, through a relay that may carry it; ``relays``
    is the most relays that may carry it to one of them.
    """

    id: str
    input_rate: int
    output_rate: int
    context_window: int
    max_output: int
    targets: int
    warm: bool
    relays: int = 0


class Market:
    """Offers of nodes other than this one."""

    def __init__(self, peers: Peers, choice: Choice, clock: Clock) -> None:
        self._peers = peers
        self._choice = choice
        self._clock = clock
        self._made: dict[NodeRef, tuple[Verified, bool, Candidate]] = {}
        self._listed: tuple[float, tuple[NetworkModel, ...]] | None = None

    def models(self) -> tuple[NetworkModel, ...]:
        """Every model that a node of our version offers, by name; nodes under test do not count."""
        now = self._clock.mono()
        if self._listed is None or not 0 <= now - self._listed[0] < LIST_S:
            self._listed = (now, tuple(self._models()))
        return self._listed[1]

    def find(self, model: str) -> NetworkModel | None:
        """One model by its id, None where nobody offers it."""
        offering = [each for each in self._offers() if each.serves(model)]
        return self._model(model, offering, self._relays(offering)) if offering else None

    def candidates(self) -> list[Candidate]:
        """Every node that may be asked, as selection wants it: verified once, and not left alone."""
        return [self._candidate(peer, held) for peer, held in self._verified() if not self._down(peer)]

    def known(self, model: str) -> Known:
        """What there is beside the candidates."""
        verified = [(peer, held) for peer, held in self._verified()]
        down = sum(self._down(peer) and self._candidate(peer, held).serves(model) for peer, held in verified)
        return Known(len(verified), down)

    def advertised(self, ref: NodeRef, model: str) -> Advertised | None:
        """The prices of a model at a node, None where it told none."""
        peer = self._peers.get(ref)
        if peer is None or peer.verified is None:
            return None
        details = peer.verified.details
        found = next((each for each in details.models if each.id == model), None)
        return None if found is None else _advertised(details, found)

    def _models(self) -> Iterator[NetworkModel]:
        offering: dict[str, list[Candidate]] = {}
        offers = list(self._offers())
        for each in offers:
            for model in each.models:
                offering.setdefault(model, []).append(each)
        # Once for all: a single node may list thousands of models.
        relays = self._relays(offers)
        for model in sorted(offering):
            yield self._model(model, offering[model], relays)

    def _offers(self) -> Iterator[Candidate]:
        for peer, held in self._verified():
            if not peer.listed.staging and compatible(peer.version):
                yield self._candidate(peer, held)

    def _model(self, model: str, offering: list[Candidate], counts: Mapping[NodeRef, int]) -> NetworkModel:
        found = [each.capacity(model) for each in offering]
        relays = max(counts[each.ref] for each in offering)
        cheapest = min(found, key=lambda each: (each.input_rate + each.output_rate, each.input_rate))
        return NetworkModel(
            id=model,
            input_rate=cheapest.input_rate,
            output_rate=cheapest.output_rate,
            context_window=max(each.context_window for each in found),
            max_output=max(each.max_output_tokens for each in found),
            targets=len(offering),
            warm=relays > 0,
            relays=relays,
        )

    def _relays(self, targets: Sequence[Candidate]) -> dict[NodeRef, int]:
        """Through how many relays each target can be asked now."""
        counts = self._choice.counts() if targets else {}
        now_ms = self._clock.wall_ms()
        found: dict[NodeRef, int] = {}
        for each in targets:
            peer = self._peers.get(each.ref)
            held = peer.verified if peer is not None and not self._down(peer) else None
            found[each.ref] = counts.get(each.ref, 0) if held is not None and held.usable(now_ms) else 0
        return found

    def _down(self, peer: Peer) -> bool:
        return self._peers.is_down(peer.listed.ref)

    def _verified(self) -> Iterator[tuple[Peer, Verified]]:
        for peer in self._peers:
            if peer.verified is not None:
                yield peer, peer.verified

    def _candidate(self, peer: Peer, held: Verified) -> Candidate:
        """The node as its newest details describe it; made anew only where those changed."""
        ref, staging = peer.listed.ref, peer.listed.staging
        made = self._made.get(ref)
        if made is not None and made[0] is held and made[1] == staging:
            return made[2]
        details = held.details
        models = {each.id: _capacity(each) for each in details.models if _speaks(each)}
        candidate = Candidate(
            ref,
            details.proto_version,
            models.keys(),
            models,
            builtin_tools=frozenset(str(tool.type) for tool in details.builtin_tools),
            staging=staging,
        )
        self._made[ref] = (held, staging, candidate)
        if len(self._made) > MOST:
            del self._made[next(iter(self._made))]
        return candidate


def _speaks(model: OfferedModel) -> bool:
    """Whether it answers in words: what only draws has a route of its own."""
    return not model.output_modalities or _TEXT in model.output_modalities


def _capacity(model: OfferedModel) -> Capacity:
    return Capacity(
        context_window=model.context_window,
        max_output_tokens=model.max_output_tokens,
        input_rate=micro_rate(_usd(model.input_rate_usd_per_1m)),
        output_rate=micro_rate(_usd(model.output_rate_usd_per_1m)),
    )


def _advertised(details: Details, model: OfferedModel) -> Advertised:
    cached = model.cache_read_rate_usd_per_1m
    base = rates_of(
        _usd(model.input_rate_usd_per_1m),
        _usd(model.output_rate_usd_per_1m),
        None if cached is None else _usd(cached),
    )
    long = None
    if model.long_context_threshold_tokens:
        long = LongContext(
            model.long_context_threshold_tokens,
            _micro(model.long_context_input_rate_usd_per_1m),
            _micro(model.long_context_output_rate_usd_per_1m),
            _micro(model.long_context_cache_read_rate_usd_per_1m),
        )
    return Advertised(base, long, details.min_charge_output_tokens, details.min_charge_microusdc)


def _usd(value: float) -> Decimal:
    """A price as it was told; one that nobody can mean is 0, above which no ticket is paid."""
    try:
        return parse_usd(value)
    except ValueError:
        return Decimal(0)


def _micro(value: float | None) -> int | None:
    return None if value is None else micro_rate(_usd(value))
