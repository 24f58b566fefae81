from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from relaydesk.config.listen import Listen, parse_listen
from relaydesk.core.errors import FaultError
from relaydesk.surfaces.public.sockets import bind


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def opens(stack: ExitStack, listen: str | Listen) -> list[socket.socket]:
    sockets = bind(parse_listen(listen) if isinstance(listen, str) else listen)
    for sock in sockets:
        stack.enter_context(closing(sock))
    return sockets


def port_of(sock: socket.socket) -> int:
    port: int = sock.getsockname()[1]
    return port


def test_one_address(opened: ExitStack) -> None:
    (sock,) = opens(opened, "127.0.0.1:0")
    assert sock.getsockname()[0] == "127.0.0.1"
    assert not sock.getblocking()
    with socket.create_connection(("127.0.0.1", port_of(sock)), timeout=1):
        pass


def test_no_host_means_every_interface_in_both_families(opened: ExitStack) -> None:
    (sock,) = opens(opened, ":0")
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        if family == socket.AF_INET6 and not socket.has_dualstack_ipv6():
            continue
        with socket.socket(family) as client:
            client.settimeout(1)
            client.connect((address, port_of(sock)))


def test_localhost_is_all_its_addresses(opened: ExitStack) -> None:
    (free,) = opens(opened, "127.0.0.1:0")
    port = port_of(free)
    free.close()
    sockets = opens(opened, f"localhost:{port}")
    assert {port_of(sock) for sock in sockets} == {port}
    assert sockets[0].family == socket.AF_INET


def test_a_port_in_use_names_the_port_and_the_way_out(opened: ExitStack) -> None:
    (sock,) = opens(opened, "127.0.0.1:0")
    port = port_of(sock)
    for listen in (f"127.0.0.1:{port}", f"localhost:{port}"):
        with pytest.raises(FaultError) as caught:
            opens(opened, listen)
        assert caught.value.fault.code == "port_in_use"
        assert str(port) in caught.value.fault.message
        assert "--listen" in caught.value.fault.hint


def test_where_one_of_two_addresses_is_taken_none_is_held(
    opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    (taken,) = opens(opened, "127.0.0.1:0")
    port = port_of(taken)

    def two(*_: object, **__: object) -> list[object]:
        kind = socket.SOCK_STREAM
        return [(socket.AF_INET, kind, 0, "", (host, port)) for host in ("127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", two)
    with pytest.raises(FaultError):
        opens(opened, f"localhost:{port}")
    monkeypatch.undo()
    opens(opened, f"127.0.0.2:{port}")


@pytest.mark.parametrize("listen", ["192.0.2.1:0", "nowhere.invalid:0"])
def test_an_address_that_is_not_ours(opened: ExitStack, listen: str) -> None:
    with pytest.raises(FaultError) as caught:
        opens(opened, listen)
    assert (caught.value.fault.code, caught.value.fault.param) == ("bad_setting", "RELAY_LISTEN")
    assert listen in caught.value.fault.message


def test_a_port_for_root(opened: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> socket.socket:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket, "create_server", refuse)
    with pytest.raises(FaultError) as caught:
        opens(opened, "127.0.0.1:443")
    assert "443" in caught.value.fault.message
    assert "1023" in caught.value.fault.hint


def test_a_machine_without_ipv6(opened: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.create_server

    def no_v6(address: tuple[str, int], **options: object) -> socket.socket:
        if options.get("family") == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported")
        return real(address, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "create_server", no_v6)
    (sock,) = opens(opened, ":0")
    assert sock.family == socket.AF_INET
