from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from relaydesk.engine.relay.outbound import dial as module
from relaydesk.engine.relay.outbound.dial import Address, Resolve, dial, system_resolve
from relaydesk.engine.relay.outbound.unreachable import UnreachableError
from tests.support.lab_tls import make_lab_tls


def answering(*addresses: tuple[int, str]) -> Resolve:
    async def resolve(_host: str, port: int) -> Sequence[Address]:
        return [
            Address(family, (address, port) if family == socket.AF_INET else (address, port, 0, 0))
            for family, address in addresses
        ]

    return resolve


async def refusal(host: str, port: int = 9, context: ssl.SSLContext | None = None, **how: object) -> str:
    with pytest.raises(UnreachableError) as caught:
        await dial(host, port, context, **{"allow_private": False, **how})  # type: ignore[arg-type]
    assert host not in caught.value.reason
    return caught.value.kind


class Silent:
    """A server that counts who connects and says nothing."""

    def __init__(self) -> None:
        self.connected = 0

    async def __aenter__(self) -> Silent:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connected += 1
        await reader.read()
        writer.close()


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "::1", "::ffff:127.0.0.1", "0.0.0.0", "0x7f.1", "2130706433", "127.1",
     "10.0.0.1", "169.254.169.254", "100.64.0.1", "fe80::1", "fd00::1", "192.168.1.1"],
)  # fmt: skip
async def test_no_address_of_this_machine_or_network(host: str) -> None:
    """Literals, in every spelling that the system's resolver takes, and names."""
    assert await refusal(host) == "refused_address"


async def test_a_name_that_changes_its_mind_is_dialed_where_it_was_checked() -> None:
    """DNS rebinding: nobody asks for the second answer, which a client that resolves twice would dial."""
    asked = 0

    async def rebinding(_host: str, port: int) -> Sequence[Address]:
        nonlocal asked
        asked += 1
        return [Address(socket.AF_INET, ("127.0.0.1" if asked == 1 else "8.8.8.8", port))]

    async with Silent() as server:
        assert await refusal("a.example", server.port, resolve=rebinding) == "refused_address"
        assert (asked, server.connected) == (1, 0)


async def test_private_addresses_among_public_ones_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    dialed: list[str] = []

    async def connect(address: Address, _timeout_s: float, _source: str) -> socket.socket:
        dialed.append(address.sockaddr[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(module, "_connect", connect)
    mixed = answering(
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET6, "2600::1"),
        (socket.AF_INET6, "::ffff:10.0.0.1"),
        (socket.AF_INET, "8.8.8.8"),
        (socket.AF_INET, "8.8.8.8"),
    )
    assert await refusal("a.example", resolve=mixed) == "connect"
    assert dialed == ["2600::1", "8.8.8.8"]
    dialed.clear()
    many = answering(*[(socket.AF_INET, f"8.8.8.{number}") for number in range(100)])
    assert await refusal("a.example", resolve=many) == "connect"
    assert len(dialed) == module.MOST_ADDRESSES


async def test_names_that_cannot_be_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(_host: str, _port: int) -> Sequence[Address]:
        raise socket.gaierror(-2, "not known")

    async def hanging(_host: str, _port: int) -> Sequence[Address]:
        await asyncio.Event().wait()
        return []

    assert await refusal("a.example", resolve=failing) == "resolve"
    assert await refusal("a.example", resolve=answering()) == "resolve"
    assert await refusal("a" * 64 + ".example", resolve=system_resolve) == "resolve"
    monkeypatch.setattr(module, "RESOLVE_S", 0.01)
    assert await refusal("a.example", resolve=hanging) == "resolve"


async def test_an_address_to_connect_from() -> None:
    seen: list[str] = []

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer.get_extra_info("peername")[0])
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        source = "127.0.0.1" if sys.platform == "darwin" else "127.9.8.7"
        connection = await dial("127.0.0.1", port, None, allow_private=True, source=source)
        while not seen:
            await asyncio.sleep(0.01)
        connection.abort()
        assert seen == [source]
        # One that is not this machine's, and one of the other family.
        assert await refusal("127.0.0.1", port, allow_private=True, source="192.0.2.1") == "connect"
        assert await refusal("127.0.0.1", port, allow_private=True, source="::1") == "connect"
        assert len(seen) == 1


async def test_who_takes_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert await refusal("127.0.0.1", port, allow_private=True) == "connect"


async def test_tls_to_whom_we_trust_and_to_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = make_lab_tls(tmp_path)
    server = await asyncio.start_server(
        lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=lab.server()
    )
    port = server.sockets[0].getsockname()[1]
    connection = await dial("127.0.0.1", port, lab.client(), allow_private=True)
    connection.abort()
    # By this name the server has no certificate, and nobody has signed the other's.
    here = answering((socket.AF_INET, "127.0.0.1"))
    assert await refusal("b.example", port, lab.client(), allow_private=True, resolve=here) == "tls"
    strangers = ssl.create_default_context()
    assert await refusal("127.0.0.1", port, strangers, allow_private=True) == "tls"
    server.close()
    monkeypatch.setattr(module, "TLS_S", 0.05)
    async with Silent() as silent:
        assert await refusal("127.0.0.1", silent.port, lab.client(), allow_private=True) == "tls"
