"""What a check sees at layers, made by hand: all well, and with faults that layers add on the way out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from relaydesk.core.hopcheck.browser import REQUESTED
from relaydesk.core.hopcheck.faults import SENT_HEADERS, TWICE
from relaydesk.core.hopcheck.model import Exchange, Headers, Layer, Observation, Place, Trust
from relaydesk.core.hopcheck.record import chunk

Seen = dict[str, Observation]

NODE: Final = Layer("loopback", "http://127.0.0.1:8384", "loopback")
PUBLIC: Final = Layer("public", "https://node.example.org", "public")
EXPOSED: Final = "X-Zs-Relay-Hop, X-Zs-Response-Key, X-Zs-Receipt, X-Zs-Settle-Group, Retry-After"
_CORS: Final = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", EXPOSED))
_OWN: Final = (("X-Zs-Relay-Hop", "1"), *_CORS, ("Content-Type", "application/json"), ("Server", "relaydesk"))


def error(code: str) -> bytes:
    """An error body as the wire has it."""
    return f'{{"error":{{"message":"m","type":"{code}","code":"{code}"}}}}'.encode()


def layers(*names: str) -> tuple[Layer, ...]:
    """The node, layers of these names, and the public one."""
    via = tuple(Layer(name, f"http://127.0.0.1:9{at:03}", "via") for at, name in enumerate(names))
    return (NODE, *via, PUBLIC)


def answer(status: int, body: bytes, headers: Headers = _OWN, **fields: object) -> Exchange:
    """An answer of the node."""
    made = Exchange("POST", "https://node.example.org/v1/zs/relay", status=status, headers=headers, body=body)
    return replace(made, took_ms=12, **fields)  # type: ignore[arg-type]


def clean(layer: Layer) -> Seen:
    """What is seen at a layer where all is well."""

    def saw(probe: str, **exchanges: Exchange) -> Observation:
        return Observation(probe, layer.name, tuple(exchanges.items()), took_ms=3)

    refusal = answer(400, error("relay_bad_target"))
    fault = answer(502, error("relay_upstream_unreachable"))
    echo = answer(200, b'{"zs_probe":"echo","received":0}')
    details = answer(
        200,
        b'{"operator_id":7,"node_id":0,"proto_version":"9.10"}',
        tuple(each for each in _OWN if each[0] != "X-Zs-Relay-Hop"),
    )
    preflight = answer(
        204,
        b"",
        (
            *_OWN,
            ("Access-Control-Allow-Methods", "GET, POST, OPTIONS"),
            ("Access-Control-Allow-Headers", ", ".join(REQUESTED)),
        ),
    )
    sent = answer(
        200,
        b'{"zs_probe":"headers"}',
        (*_OWN, *((name, "1") for name in SENT_HEADERS), (TWICE, "one"), (TWICE, "two")),
    )
    seen = [
        saw("reach", refusal=refusal),
        saw("version", details=details),
        saw("refusal", refusal=refusal),
        saw("error", error=answer(404, error("relay_unknown_target")), fault=fault),
        saw("success", success=echo),
        saw("preflight", preflight=preflight),
        saw("exposed", refusal=refusal, fault=fault, success=echo),
        replace(
            saw("stream", stream=answer(200, chunk(0) * 6)),
            arrivals=(0, 200, 401, 600, 800, 1000),
            gap_ms=200,
        ),
        saw("body", **{"12582912": replace(echo, sent=12_582_912)}),
        saw("compression", answer=answer(200, chunk(0))),
        saw("headers", headers=sent),
        saw("silence-20", silence=answer(200, b'{"zs_probe":"silence","seconds":20}')),
    ]
    if layer.kind == "public":
        places = (Place("203.0.113.7", own=False, public=True),)
        seen.append(replace(saw("name"), places=places))
        seen.append(replace(saw("tls"), trust=Trust("", 5_000_000, "h2")))
        seen.append(saw("http2", http2=replace(refusal, protocol="HTTP/2")))
    return {each.probe: each for each in seen}


def mapped(seen: Mapping[str, Observation], change: Callable[[Exchange], Exchange], *probes: str) -> Seen:
    """The same with every exchange (of ``probes``) changed."""
    return {
        name: replace(each, exchanges=tuple((aspect, change(found)) for aspect, found in each.exchanges))
        if not probes or name in probes
        else each
        for name, each in seen.items()
    }


def without(exchange: Exchange, *names: str) -> Exchange:
    """An answer without these headers."""
    gone = {name.lower() for name in names}
    return replace(exchange, headers=tuple(each for each in exchange.headers if each[0].lower() not in gone))


def stripped(seen: Mapping[str, Observation]) -> Seen:
    """The marker is taken away."""
    return mapped(seen, lambda each: without(each, "X-Zs-Relay-Hop"))


def own_pages(seen: Mapping[str, Observation]) -> Seen:
    """A 502 becomes a page."""

    def page(found: Exchange) -> Exchange:
        return replace(found, headers=(), body=b"<html>Bad gateway</html>") if found.status == 502 else found

    return mapped(seen, page)


def unexposed(seen: Mapping[str, Observation]) -> Seen:
    """The list of exposed headers is another."""

    def rewritten(found: Exchange) -> Exchange:
        kept = without(found, "Access-Control-Expose-Headers")
        return replace(kept, headers=(*kept.headers, ("Access-Control-Expose-Headers", "X-Foo")))

    return mapped(seen, rewritten)


def buffered(seen: Mapping[str, Observation]) -> Seen:
    """A stream comes in one piece."""
    return {**seen, "stream": replace(seen["stream"], arrivals=(1000, 1000, 1001, 1001, 1001, 1001))}


def compressed(seen: Mapping[str, Observation]) -> Seen:
    """Who takes gzip gets it."""

    def packed(found: Exchange) -> Exchange:
        return replace(found, headers=(*found.headers, ("Content-Encoding", "br")))

    return mapped(seen, packed, "compression")


def limited(seen: Mapping[str, Observation]) -> Seen:
    """A large body is refused."""
    page = Exchange(
        "POST", "http://x/v1/zs/relay", status=413, sent=1_114_112, body=b"<html>too large</html>"
    )
    return {**seen, "body": replace(seen["body"], exchanges=(("1114112", page),))}


def failing(seen: Mapping[str, Observation]) -> Seen:
    """It cannot keep a large body."""
    page = Exchange(
        "POST", "http://x/v1/zs/relay", status=500, sent=1_114_112, body=b"<html>Internal error</html>"
    )
    return {**seen, "body": replace(seen["body"], exchanges=(("1114112", page),))}


def impatient(seen: Mapping[str, Observation]) -> Seen:
    """A silence is cut."""
    page = Exchange("POST", "http://x/v1/zs/relay", status=504, body=b"<html></html>", took_ms=10_000)
    return {**seen, "silence-20": replace(seen["silence-20"], exchanges=(("silence", page),))}


def listed_only(seen: Mapping[str, Observation]) -> Seen:
    """Only headers on a list pass, and none of the network's is on it."""
    return mapped(seen, lambda each: without(each, "X-Zs-Relay-Hop", "Retry-After", TWICE, *SENT_HEADERS))


def closed(_seen: Mapping[str, Observation]) -> Seen:
    """Nobody is there."""
    gone = Exchange("POST", "http://x/v1/zs/relay", kind="refused", problem="the connection is refused")
    return {"reach": Observation("reach", "x", (("refusal", gone),))}


# What a layer does, and the codes under which that is found.
FAULTS: Final[Mapping[str, tuple[Callable[[Mapping[str, Observation]], Seen], frozenset[str]]]] = {
    "stripped": (stripped, frozenset({"marker_removed"})),
    "own_pages": (own_pages, frozenset({"answer_replaced"})),
    "unexposed": (unexposed, frozenset({"marker_not_exposed"})),
    "buffered": (buffered, frozenset({"stream_buffered"})),
    "compressed": (compressed, frozenset({"compressed"})),
    "limited": (limited, frozenset({"body_limited"})),
    "failing": (failing, frozenset({"body_failed"})),
    "impatient": (impatient, frozenset({"silence_cut"})),
    "listed_only": (listed_only, frozenset({"marker_removed", "headers_dropped"})),
}
