"""Where the demo looks for leaks, and what it plants there.

The sentence and the payer must not be with anybody who relays, nor on the wire. The address that the client
connects from must not be with the target: not in what it wrote, and not where a sealed request came from. In
its memory that address is: a target also relays, and the client asks others through it.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from relaydesk.surfaces.demo.leaks import Place, files, memory
from relaydesk.surfaces.demo.network import CONNECTS, Network, Operator

# An address that none of the operators has.
STRANGER: Final = CONNECTS.format(255)
# Who passes on what others ask: everybody but who asks and who answers.
_RELAYS: Final = ("keeper", "relay")
_TIMEOUT_S: Final = 10.0
RESERVE: Final = "/v1/zs/reserve"
# What is for a target alone.
_SEALED: Final = (RESERVE, "/v1/chat/completions", "/v1/zs/ledger")


@dataclass(frozen=True, slots=True)
class Planted:
    """A ``word`` for those who relay, and an ``address`` for the target."""

    word: str
    address: str = STRANGER


def named_in_log(planted: str) -> dict[str, str]:
    """A setting that there is none of: a node says so in its log, by name."""
    return {f"PLANTED_{planted}": "1"}


def plant(network: Network, planted: Planted) -> None:
    """Put what must be found into the books of each who is searched, into its memory, and on the wire.

    Vouchers carry it in their notes, which a node writes down and shows.
    """
    for name in _RELAYS:
        network[name].node.command("issue-credit", amount=1, note=planted.word)
        _send(network[name], "/v1/zs/relay", planted.word)
    network["target"].node.command("issue-credit", amount=1, note=planted.address)
    if network.distinct:
        _send(network["target"], RESERVE, "", planted.address)


def places(network: Network, planted: Planted, secrets: tuple[str, ...]) -> Iterator[Place]:
    """Everything to search, for ``secrets`` and for the client's address."""
    yield Place("the wire", lambda: _wire(network), planted.word, secrets)
    for name in _RELAYS:
        relay = network[name]
        yield from _written(relay, planted.word, secrets)
        yield Place(f"{name}: memory", partial(_memory, relay), planted.word, secrets)
    if network.distinct:
        client = (network["client"].source,)
        yield Place("target: sealed requests", lambda: _sealed(network), planted.address, client)
        yield from _written(network["target"], planted.address, client)
    else:
        yield Place("target", _one_address, planted.address, ())


def _written(operator: Operator, planted: str, secrets: tuple[str, ...]) -> Iterator[Place]:
    node = operator.node
    yield Place(f"{operator.name}: files", lambda: files(node.folder, without=(node.log,)), planted, secrets)
    yield Place(f"{operator.name}: log", lambda: [node.log.read_bytes()], planted, secrets)


def _memory(operator: Operator) -> Iterator[bytes]:
    return memory(operator.node.pid)


def _wire(network: Network) -> Iterator[bytes]:
    """All that went between nodes, both ways: without TLS here, so what is sealed is so by itself."""
    for each in network.taps.conversations():
        yield bytes(each.inward)
        yield bytes(each.outward)


def _sealed(network: Network) -> Iterator[bytes]:
    """What came to the target to be answered by it, and from where."""
    begins = [f"POST {path} ".encode() for path in _SEALED]
    for each in network.taps.conversations():
        if each.to == "target" and any(begin in each.inward for begin in begins):
            yield b"from " + each.source.encode()
            yield bytes(each.inward)


def _one_address() -> Iterable[bytes]:
    raise OSError("all operators have one address on this system")


def _send(operator: Operator, path: str, word: str, source: str = "") -> None:
    """A request to a node with ``word`` in it, as a stranger who knows nothing of the wire would send it."""
    url = urlsplit(operator.tap.url)
    assert url.hostname is not None
    connection = http.client.HTTPConnection(
        url.hostname, url.port, timeout=_TIMEOUT_S, source_address=(source, 0) if source else None
    )
    try:
        connection.request("POST", path, word)
        connection.getresponse().read()
    finally:
        connection.close()
