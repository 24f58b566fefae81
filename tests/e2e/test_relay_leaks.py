"""What a relay keeps of what it forwards, and what a target learns of who asked: nothing (design §6).

Four operators as four processes, and a client, each in a network namespace of its own. What is searched is
everything: frames, streams, files, databases, logs, the relay's memory. Each search first finds what it looks
for where that is known to be.
"""

from __future__ import annotations

import base64
import http.client
import secrets
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.capture import Capture
from tests.support.lab_tls import LabTls, make_lab_tls
from tests.support.namespaces import LACKING, Namespace, Namespaces
from tests.support.operators import Operator, Operators, Plan
from tests.support.process_memory import Snapshot

pytestmark = [pytest.mark.net, pytest.mark.skipif(bool(LACKING), reason=LACKING)]

PORT = 19400
# A relay overwrites 1, 2, 4, 7 and 11 s after the last thing was let go; machines are slow.
FORGOTTEN_S = 14.0
# What OpenSSL took meanwhile for the connection to the target it keeps as long as that rests: up to 45 s.
FORGOTTEN_TLS_S = 60.0
# The C library gives out up to 31 bytes more than a block asks for, and nobody fills those.
PART = 32


@dataclass
class Secrets:
    """What must not be found. All of it is new in each run."""

    sentence: str
    address: str
    headers: dict[str, str]

    @property
    def sentences(self) -> tuple[bytes, ...]:
        """Parts of the sentence, as text: any stretch of twice their length has one."""
        text = self.sentence.encode()
        return tuple(text[at : at + PART] for at in range(0, len(text) - PART + 1, PART))

    @property
    def addresses(self) -> tuple[bytes, ...]:
        """The client's address, as text and as sockets have it."""
        return self.address.encode(), socket.inet_aton(self.address)

    @property
    def names(self) -> tuple[bytes, ...]:
        """What in the headers names the client, beside its address."""
        return tuple(value.encode() for value in self.headers.values() if self.address not in value)

    @property
    def written(self) -> tuple[bytes, ...]:
        """All of it in every form in which something might write it down."""
        texts = (self.sentence, self.address, *(name.decode() for name in self.names))
        return (*self.sentences, *(form for text in texts for form in _forms(text)), self.addresses[1])


def _forms(text: str) -> Iterator[bytes]:
    data = text.encode()
    yield from (data, data.hex().encode(), text.encode("utf-16-le"))
    for shift in range(3):
        # Without the characters that what is around takes part in.
        yield base64.b64encode(b"\0" * shift + data).rstrip(b"=")[(0, 2, 3)[shift] : -1]


@dataclass
class Evidence:
    """What was left of one run."""

    secrets: Secrets
    by_tls: bool
    memory: dict[str, Snapshot] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    at_relay: bytes = b""
    at_target: bytes = b""
    straight: bytes = b""
    target_name: bytes = b""
    relay_files: dict[str, bytes] = field(default_factory=dict)
    target_files: dict[str, bytes] = field(default_factory=dict)


class Client:
    """Sends through a relay, from a namespace of its own, saying all about itself."""

    def __init__(
        self, place: Namespace, relay: Operator, target: Operator, known: Secrets, tls: LabTls | None
    ) -> None:
        self._place, self._relay, self._target, self._known = place, relay, target, known
        self._tls = tls.client() if tls is not None else None

    def connect(self, to: Operator | None = None) -> http.client.HTTPConnection:
        host, _, port = (to or self._relay).bind.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=20)
        connection.sock = self._place.connect(host, int(port))
        if self._tls is not None:
            connection.sock = self._tls.wrap_socket(connection.sock, server_hostname=host)
        return connection

    def headers(self, path: str) -> dict[str, str]:
        ref = self._target.node_ref
        return {
            **self._known.headers,
            "Content-Type": "application/vnd.zs-reserve+json",
            "Accept": "application/json",
            "X-Zs-Relay-Target": str(ref.operator),
            "X-Zs-Relay-Target-Node": str(ref.node),
            "X-Zs-Relay-Path": path,
            "X-Zs-Relay-Method": "POST",
        }

    def send(
        self,
        connection: http.client.HTTPConnection,
        body: bytes,
        *,
        path: str = "/v1/zs/reserve",
        chunked: bool = False,
        **more: str,
    ) -> tuple[int, bytes]:
        pieces = iter([body[at : at + 9000] for at in range(0, len(body), 9000)]) if chunked else body
        headers = self.headers(path) | {name.replace("_", "-"): value for name, value in more.items()}
        connection.request("POST", "/v1/zs/relay", pieces, headers, encode_chunked=chunked)
        response = connection.getresponse()
        assert response.headers["X-Zs-Relay-Hop"] == "1"
        return response.status, response.read()

    def begin(self, connection: http.client.HTTPConnection, length: int, sent: bytes) -> None:
        """The head and a part of the body; the circuit stays open."""
        connection.putrequest("POST", "/v1/zs/relay")
        for name, value in {**self.headers("/v1/zs/reserve"), "Content-Length": str(length)}.items():
            connection.putheader(name, value)
        connection.endheaders(sent)


def _body(sentence: str, length: int) -> bytes:
    """JSON of this length with the sentence in it, once or all over."""
    fill = length - len('{"ciphertext":""}')
    return b'{"ciphertext":"%b"}' % (sentence * (fill // len(sentence) + 1)).encode()[:fill]


def _known(address: str) -> Secrets:
    tag = secrets.token_hex(6)
    return Secrets(
        # With its end, exactly what a body of 60 bytes holds.
        sentence=f"herons-wait-where-reeds-are-thin-{tag[:10]}",
        address=address,
        headers={
            "X-Forwarded-For": address,
            "Forwarded": f"for={address};proto=https",
            "X-Real-Ip": address,
            "Via": f"1.1 via-of-the-client-{tag}",
            "User-Agent": f"agent-of-the-client/{tag}",
            "Cookie": f"cookie-of-the-client={tag}",
            "Authorization": f"Bearer token-of-the-client-{tag}",
            "Sec-CH-UA": f'"hint-of-the-client-{tag}";v="1"',
            "Referer": f"https://page-of-the-client-{tag}.example/",
            "Accept-Language": f"tlh-{tag}",
            "X-Request-Id": f"number-of-the-client-{tag}",
        },
    )


def _send_everything(client: Client, known: Secrets) -> tuple[list[http.client.HTTPConnection], list[int]]:
    """Bodies by every way through the relay, and what errors are made of."""
    sizes, resting, statuses = (60, 60, 1000, 20_000, 60_000, 60, 20_000), [], []
    for size in sizes:
        connection = client.connect()
        statuses.append(client.send(connection, _body(known.sentence, size))[0])
        resting.append(connection)
    again = resting[0]
    statuses.append(client.send(again, _body(known.sentence, 20_000))[0])
    # Longer than what is held: passed on piece by piece.
    broken = client.connect()
    statuses.append(client.send(broken, _body(known.sentence, 200_000), chunked=True)[0])
    broken.close()
    echo, answer = client.send(again, b"", path=f"/v1/models/{known.sentence}", X_Zs_Relay_Method="GET")
    bad, refused = client.send(again, b"", path=f"/v2/{known.sentence}")
    assert (echo, bad) == (404, 400)
    assert known.sentence.encode() not in answer + refused
    garbled = client.connect()
    garbled.sock.sendall(f"POST /v1/zs/relay {known.sentence}\r\n{known.sentence}\r\n\r\n".encode())
    assert garbled.sock.recv(100).startswith(b"HTTP/1.0 400")
    garbled.close()
    gone = client.connect()
    client.begin(gone, 30_000, _body(known.sentence, 20_000))
    gone.close()
    return resting, statuses


def _wait(relay: Operator, *needles: bytes, most_s: float = FORGOTTEN_S) -> Snapshot:
    """The relay's memory once none of these is in it, or after as long as that may take."""
    deadline = time.monotonic() + most_s
    while True:
        time.sleep(1.5)
        memory = Snapshot(relay.pid)
        if time.monotonic() > deadline or not memory.find(*needles, most=1):
            return memory


def _files(node: Operator) -> dict[str, bytes]:
    """Every file of a node: state, databases, log."""
    return {str(path): path.read_bytes() for path in node.dir.rglob("*") if path.is_file()}


def _seen(capture: Capture) -> bytes:
    """Frames as they were, and the bytes of each connection in their order.

    Without ARP: on one link everybody hears the relay ask where the client is.
    """
    frames = [frame for frame in capture.frames() if frame[12:14] != b"\x08\x06"]
    return b"\0".join([*frames, *capture.streams().values()])


def _plan(place: Namespace, tls: LabTls | None) -> Plan:
    bind, settings = f"{place.address}:{PORT}", {"LOG_LEVEL": "debug"}
    if tls is None:
        return Plan(settings, prefix=place.prefix, bind=bind)
    settings |= {"TLS_CERT": str(tls.pem), "TLS_KEY": str(tls.pem), "NETWORK_CA": str(tls.ca)}
    return Plan(settings | {"NETWORK_TLS": "on"}, prefix=place.prefix, bind=bind, url=f"https://{bind}")


def _run(lab: Namespaces, folder: Path, *, by_tls: bool) -> Evidence:
    known = _known(lab[4].address)
    places = (lab[0], lab[1], lab[2], lab[3])
    tls = make_lab_tls(folder, *(each.address for each in places)) if by_tls else None
    if tls is not None:
        tls.pem.chmod(0o600)
    plans = [_plan(each, tls) for each in places]
    with Operators(*plans) as operators:
        relay, target = operators[1], operators[2]
        found = Evidence(known, by_tls)
        client = Client(lab[4], relay, target, known, tls)
        with Capture(lab[1], folder / "relay") as at_relay, Capture(lab[2], folder / "target") as at_target:
            half = client.connect()
            client.begin(half, 20_000, _body(known.sentence, 20_000)[:15_000])
            time.sleep(0.3)
            found.memory["open"] = Snapshot(relay.pid)
            half.send(_body(known.sentence, 20_000)[15_000:])
            found.statuses.append(int(half.sock.recv(100).split()[1]))
            half.close()
            resting, statuses = _send_everything(client, known)
            found.statuses += statuses
            looked_for = known.names if by_tls else (*known.sentences, *known.names)
            found.memory["resting"] = _wait(relay, *looked_for)
            for connection in resting:
                connection.close()
            found.memory["gone"] = _wait(relay, *known.names, *known.addresses)
            found.memory["closed"] = _wait(
                relay, *known.sentences, most_s=FORGOTTEN_TLS_S if by_tls else FORGOTTEN_S
            )
        found.at_relay, found.at_target = _seen(at_relay), _seen(at_target)
        with Capture(lab[2], folder / "straight") as straight:
            asking = client.connect(target)
            asking.request("GET", "/v1/zs/details", headers=known.headers)
            assert asking.getresponse().status == 200
            asking.close()
        found.straight = _seen(straight)
        found.target_name = str(target.node_ref.operator).encode()
        found.relay_files, found.target_files = _files(relay), _files(target)
    return found


@pytest.fixture(scope="module", params=["http", pytest.param("https", marks=pytest.mark.long)])
def left(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Evidence:
    """By TLS frames say nothing, and what was in them is not looked at; files and memory are."""
    with Namespaces(5) as lab:
        return _run(lab, tmp_path_factory.mktemp("captures"), by_tls=request.param == "https")


def _in(data: bytes, needles: Iterable[bytes]) -> set[bytes]:
    return {needle for needle in needles if needle in data}


def test_everything_was_forwarded(left: Evidence) -> None:
    assert len(left.statuses) == 10
    assert set(left.statuses) <= {400, 413, 503}
    # It really went to the target, by the relay.
    assert left.by_tls or _in(left.at_target, left.secrets.sentences) == set(left.secrets.sentences)


def test_the_target_receives_nothing_of_the_client(left: Evidence) -> None:
    known = left.secrets
    wanted = {*known.addresses[1:], *(() if left.by_tls else (known.addresses[0], *known.names))}
    assert _in(left.straight, wanted) == wanted, "asked straight, the target sees who asks"
    assert _in(left.at_relay, wanted) == wanted, "the relay sees who asks"
    assert not _in(left.at_target, wanted)


def test_the_target_writes_nothing_of_the_client(left: Evidence, tmp_path: Path) -> None:
    files = left.target_files
    known = left.secrets
    assert any(name.endswith("/log") for name in files)
    for name, data in files.items():
        # It was asked straight afterwards: that is no secret of the relay, and nothing keeps it either.
        assert not _in(data, known.written), name
    _plant(tmp_path, known)


def test_the_relay_writes_nothing_of_what_it_forwards(left: Evidence, tmp_path: Path) -> None:
    known = left.secrets
    assert any(name.endswith("/log") for name in left.relay_files)
    assert any(data.startswith(b"SQLite format 3") for data in left.relay_files.values())
    for name, data in left.relay_files.items():
        assert not _in(data, known.written), name
    _plant(tmp_path, known)


def _plant(folder: Path, known: Secrets) -> None:
    """The control: in a log, in a database, in forms that are not text, each is found."""
    (folder / "log").write_text(f"a request of {known.address}: {known.sentence}")
    with sqlite3.connect(folder / "node.db") as database:
        database.execute("CREATE TABLE hops (who TEXT, packed BLOB, what TEXT)")
        row = (known.names[0].decode(), known.addresses[1], base64.b64encode(known.sentence.encode()))
        database.execute("INSERT INTO hops VALUES (?, ?, ?)", row)
    database.close()
    text, table = ((folder / name).read_bytes() for name in ("log", "node.db"))
    assert _in(text, known.written) >= {*known.sentences, known.addresses[0]}
    assert _in(table, known.written) >= {known.names[0], known.addresses[1]}
    assert _in(table, _forms(known.sentence))


def test_the_search_of_memory_finds_what_is_there(left: Evidence) -> None:
    """While a circuit is open the relay holds all of it."""
    memory, known = left.memory["open"], left.secrets
    for needle in (*known.sentences, *known.addresses, *known.names):
        assert memory.find(needle, most=1), needle
    # By TLS the head as it came is gone by then, and with it the one place that says both.
    both = memory.together(known.addresses[:1], [left.target_name], 4096)
    assert left.by_tls or both


def test_once_a_circuit_is_closed_the_relay_holds_nothing_of_it(left: Evidence) -> None:
    """Also while the client's connection rests, which the relay must know the address of."""
    known = left.secrets
    assert not left.memory["resting"].find(*known.names, most=3, around=200)
    # By TLS OpenSSL's buffers of a connection that rests can lie where the body was, and are not filled.
    assert left.by_tls or not left.memory["resting"].find(*known.sentences, most=3, around=200)
    assert not left.memory["closed"].find(*known.sentences, *known.names, most=3, around=200)


def test_once_a_client_is_gone_its_address_is_nowhere(left: Evidence) -> None:
    """So nothing joins it with a target. The targets are there: every node of the directory is."""
    known, memory = left.secrets, left.memory["gone"]
    assert memory.find(left.target_name, most=1)
    assert not memory.find(*known.names, *known.addresses, most=3)
