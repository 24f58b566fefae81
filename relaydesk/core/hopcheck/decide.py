"""Which layer is guilty of what: the first one, from the inside outwards, at which it shows.

What is seen further out of the same fault is its consequence. Nobody is blamed for what was seen of a public
name from the inside: there it leads past the edge, or to a router that answers for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from relaydesk.core.hopcheck import evidence
from relaydesk.core.hopcheck.answers import details_of
from relaydesk.core.hopcheck.effect import effect
from relaydesk.core.hopcheck.faults import BLOCKING, blocked, faults_at
from relaydesk.core.hopcheck.model import Exchange, Fault, Finding, Layer, Observation, Place, Report
from relaydesk.core.hopcheck.product import NODE, PAGE, is_node, recognise
from relaydesk.core.hopcheck.remedies.table import remedy_of
from relaydesk.core.relay.version import PROTO_VERSION
from relaydesk.core.view.hopcheck import Severity

Observed = Mapping[str, Mapping[str, Observation]]

_EXPLICIT: Final = frozenset({"localhost"})

# In the order in which they are shown: what costs most comes first.
RANKED: Final[dict[str, tuple[Severity, str]]] = {
    "unresolved": ("error", "the name of {layer} leads nowhere"),
    "unreachable": ("error", "{layer} takes no connection"),
    "black_hole": ("error", "{layer} gives no answer"),
    "tls_failed": ("error", "{layer} does not complete a TLS handshake"),
    "tls_untrusted": ("error", "callers do not trust the certificate of {layer}"),
    "another_node": ("error", "{layer} leads to another node"),
    "redirected": ("error", "{layer} redirects callers, who follow no redirect"),
    "wrong_route": ("error", "{layer} leads to relaydesk, but not to its relay's route"),
    "edge_answers": ("error", "{layer} answers in the node's place"),
    "request_headers_lost": ("error", "{layer} takes the relay's request headers away"),
    "marker_removed": ("error", "{layer} removes X-Zs-Relay-Hop"),
    "answer_replaced": ("error", "{layer} puts its own pages in the place of the node's answers"),
    "http2_broken": ("error", "{layer} offers HTTP/2, and does not answer over it"),
    "headers_dropped": ("error", "{layer} removes headers of the network"),
    "marker_everywhere": ("error", "{layer} sets X-Zs-Relay-Hop itself"),
    "preflight_refused": ("error", "{layer} answers a browser's preflight itself"),
    "origin_refused": ("error", "{layer} keeps pages of other origins from reading"),
    "marker_not_exposed": ("error", "{layer} keeps X-Zs-Relay-Hop from browsers"),
    "stream_cut": ("error", "{layer} cuts streams off"),
    "stream_buffered": ("error", "{layer} holds streams back"),
    "body_limited": ("error", "{layer} refuses large bodies"),
    "body_failed": ("error", "{layer} fails at large bodies"),
    "details_hidden": ("warning", "{layer} does not let the node's details through"),
    "silence_cut": ("warning", "{layer} does not wait for a slow target"),
    "compressed": ("warning", "{layer} compresses answers"),
    "headers_changed": ("warning", "{layer} changes headers"),
    "node_busy": ("warning", "the node takes no requests now"),
    "tls_ends_soon": ("warning", "the certificate of {layer} ends soon"),
    "version_old": ("warning", "{layer} shows a version without the marker"),
    "not_seen_from_inside": ("info", "{layer} cannot be seen from here"),
    "seen_from_inside": ("info", "{layer} leads to the inside here"),
}
_ORDER: Final = {code: at for at, code in enumerate(RANKED)}


def decide(
    layers: Sequence[Layer],
    observed: Observed,
    *,
    from_node: bool = False,
    lab: bool = False,
) -> Report:
    """The report over all layers, which come from the inside outwards; ``observed`` is by layer, then probe.

    ``from_node``: it was seen from the node's own machine. ``lab``: private addresses are the world.
    """
    inside = frozenset(
        layer.name for layer in layers if _leads_inside(layer, observed.get(layer.name, {}), lab)
    )
    products = _products(layers, observed)
    chain = _Chain(layers, observed, products, from_node, inside)
    findings = sorted(chain.findings(), key=lambda finding: _ORDER[finding.code])
    observations = tuple(each for layer in layers for each in observed.get(layer.name, {}).values())
    return Report(tuple(layers), observations, tuple(findings), products, inside)


def failing(layer: Layer, seen: Mapping[str, Observation]) -> dict[str, str]:
    """By probe: what is wrong, from this layer alone; whose doing it is comes later."""
    found: dict[str, str] = {}
    for fault in faults_at(layer, seen):
        found.setdefault(fault.probe, fault.sentence)
    return found


class _Chain:
    """The walk from the inside outwards."""

    def __init__(
        self,
        layers: Sequence[Layer],
        observed: Observed,
        products: dict[str, str],
        from_node: bool,
        inside: frozenset[str],
    ) -> None:
        self._layers = layers
        self._seen = {layer.name: observed.get(layer.name, {}) for layer in layers}
        self._products = products
        self._from_node = from_node
        self._inside = inside
        self._faults = {layer.name: faults_at(layer, self._seen[layer.name]) for layer in layers}
        self._version = next(
            (version for layer in layers if (version := _version_at(self._seen[layer.name]))), PROTO_VERSION
        )

    def findings(self) -> list[Finding]:
        """Every fault at the layer that is guilty of it, those of one code at one layer in one finding."""
        through = max(
            (
                at
                for at, layer in enumerate(self._layers)
                if self._looked_at(layer) and blocked(self._faults[layer.name]) is None
            ),
            default=-1,
        )
        known: set[tuple[str, str]] = set()
        found: list[Finding] = []
        for at, layer in enumerate(self._layers):
            faults = self._judged(layer)
            if at < through:
                # Not to be reached from here, but what is further out gets through it.
                faults = [fault for fault in faults if fault.code not in BLOCKING]
            fresh = [fault for fault in faults if (_family(fault.code), fault.aspect) not in known]
            known |= {(_family(fault.code), fault.aspect) for fault in faults}
            by_code: dict[str, list[Fault]] = {}
            for fault in fresh:
                by_code.setdefault(fault.code, []).append(fault)
            found += [self._finding(layer, at, some) for some in by_code.values()]
        return found + self._unjudged() + self._strangers()

    def _looked_at(self, layer: Layer) -> bool:
        return "reach" in self._seen[layer.name] and layer.name not in self._inside

    def _judged(self, layer: Layer) -> list[Fault]:
        """The faults of a layer that may be laid at anybody's door; what a peer saw always may."""
        faults = self._faults[layer.name]
        if layer.name in self._inside or self._hairpin(layer):
            return [fault for fault in faults if fault.probe == "outside"]
        return list(faults)

    def _hairpin(self, layer: Layer) -> bool:
        """Whether a public address did not lead to the node from the node's own machine."""
        blocking = blocked(self._faults[layer.name])
        if layer.kind != "public" or not self._from_node or blocking is None:
            return False
        places = _places(self._seen[layer.name])
        if not places or not all(place.public and not place.own for place in places):
            return False
        return blocking.code in ("black_hole", "unreachable") or not self._products.get(layer.name)

    def _unjudged(self) -> list[Finding]:
        """What cannot be told from here, said so."""
        found: list[Finding] = []
        for layer in self._layers:
            outside = self._seen[layer.name].get("outside")
            if outside is not None and outside.exchanges:
                continue
            code = (
                "seen_from_inside"
                if layer.name in self._inside
                else "not_seen_from_inside"
                if self._hairpin(layer)
                else ""
            )
            if code:
                places = ", ".join(place.address for place in _places(self._seen[layer.name]))
                said = f"{_host(layer)} is {places} here" if places else f"{_host(layer)} gave no answer here"
                found.append(self._made(code, layer, "", "", (said,)))
        return found

    def _strangers(self) -> list[Finding]:
        """A layer whose details are another node's than those further in."""
        own: tuple[object, object] | None = None
        for layer in self._layers:
            details = _details_at(self._seen[layer.name])
            if details is None or layer.name in self._inside:
                continue
            found = (details.get("operator_id"), details.get("node_id"))
            own = own or found
            if found != own:
                said = f"further in it is node {own[0]}:{own[1]}, here {found[0]}:{found[1]}"
                return [self._made("another_node", layer, layer.name, self._product(layer), (said,))]
        return []

    def _finding(self, layer: Layer, at: int, faults: Sequence[Fault]) -> Finding:
        first = next((fault for fault in faults if fault.exchange is not None), faults[0])
        sentences = dict.fromkeys(fault.sentence for fault in faults if fault.sentence)
        told = list(sentences)
        if first.exchange is not None:
            told += evidence.lines(first.exchange)
        inner = next((each for each in reversed(self._layers[:at]) if self._looked_at(each)), None)
        if inner is not None and blocked(self._faults[inner.name]) is None:
            told.append(f"one layer further in, at {inner.name} ({inner.url}), this is not so")
        elif inner is None and layer.kind == "public":
            told.append("no layer further in was looked at: it may also be one behind this")
        status = first.exchange.status if first.exchange is not None else 0
        return self._made(first.code, layer, layer.name, self._product(layer), tuple(told), status)

    def _made(
        self, code: str, layer: Layer, name: str, product: str, told: tuple[str, ...], status: int = 0
    ) -> Finding:
        severity, title = RANKED[code]
        shown = {"loopback": "the node itself", "lan": "the node itself"}.get(layer.kind, layer.name)
        if not name:
            shown = _host(layer)
        elif product and product.lower() != layer.name.lower() and product != NODE:
            shown = f"{layer.name} ({product})"
        return Finding(
            code=code,
            severity=severity,
            title=title.format(layer=shown),
            layer=name,
            product=product,
            evidence=told,
            effect=effect(code, self._version, status),
            remedy=remedy_of(code, product),
        )

    def _product(self, layer: Layer) -> str:
        return self._products.get(layer.name, "")


def _products(layers: Sequence[Layer], observed: Observed) -> dict[str, str]:
    found: dict[str, str] = {}
    inner: list[Exchange] = []
    for layer in layers:
        aspects = [each for seen in observed.get(layer.name, {}).values() for each in seen.exchanges]
        exchanges = [answer for aspect, answer in aspects if aspect != PAGE]
        # Whoever is first to read what nobody can parse answers it: that page is this layer's own. One that
        # reads nothing passes it on, so that the node's page says something only where nothing is further in.
        pages = [answer for aspect, answer in aspects if aspect == PAGE]
        if layer.kind in ("loopback", "lan") or (not inner and any(is_node(page) for page in pages)):
            found[layer.name] = NODE
        elif product := recognise(pages) or recognise(exchanges, inner):
            found[layer.name] = product
        inner = exchanges or inner
    return found


def _leads_inside(layer: Layer, seen: Mapping[str, Observation], lab: bool) -> bool:
    """Whether a public *name* stands for an address of the inside. An address that was given is meant so."""
    host = _host(layer)
    places = _places(seen)
    if layer.kind != "public" or not places or host in _EXPLICIT:
        return False
    if any(place.address == host for place in places):
        return False
    return any(place.own or (not place.public and not lab) for place in places)


def _places(seen: Mapping[str, Observation]) -> tuple[Place, ...]:
    observed = seen.get("name")
    return observed.places if observed is not None else ()


def _details_at(seen: Mapping[str, Observation]) -> dict[str, object] | None:
    observed = seen.get("version")
    answer = observed.exchange("details") if observed is not None else None
    return details_of(answer) if answer is not None else None


def _version_at(seen: Mapping[str, Observation]) -> str:
    details = _details_at(seen)
    return str(details["proto_version"])[:32] if details is not None else ""


def _host(layer: Layer) -> str:
    return urlsplit(layer.url).hostname or layer.url


def _family(code: str) -> str:
    """Faults of one family hide each other: where nothing gets through, it does not matter in which way."""
    if code in BLOCKING:
        return "way"
    if code in ("marker_removed", "answer_replaced"):
        return "marker"
    # A limit further in, which cuts a body off, is a failure to whoever was passing it on.
    return "body" if code in ("body_limited", "body_failed") else code
