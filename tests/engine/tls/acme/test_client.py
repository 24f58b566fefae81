"""What a client says of a server that fails in every way; the good way is in `test_order`."""

from __future__ import annotations

import datetime as dt
import email.utils
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from relaydesk.core.errors import Fault, FaultError
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.tls.acme import net
from relaydesk.engine.tls.acme.client import AcmeClient
from relaydesk.engine.tls.acme.order import _request
from relaydesk.engine.tls.acme.plan import AcmePlan
from tests.engine.tls.conftest import FakeClock
from tests.support.acme_server import AcmeServer, Answer, as_json, problem
from tests.support.pebble import Pebble, free_ports

KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AcmeServer]:
    with AcmeServer(tmp_path_factory.mktemp("acme-server")) as server:
        yield server


@pytest.fixture
def server(running: AcmeServer) -> AcmeServer:
    """One for all tests here: no call of theirs outlives them."""
    running.reset()
    return running


def refusal(plan: AcmePlan, clock: Any = None) -> Fault:
    client = AcmeClient(plan, KEY, clock or SystemClock())
    try:
        client.connect()
        client.order(_request(KEY, plan.names))
    except FaultError as error:
        fault = error.fault
    else:
        pytest.fail("it was taken for an ACME server")
    finally:
        client.close()
    assert fault.code == "tls_failed"
    assert fault.message
    assert fault.hint
    assert fault.sentence.isprintable()
    assert len(fault.sentence) < 500
    return fault


def drip(request: Any) -> None:
    """A byte now and then: each of them ends the wait that the library bounds."""
    try:
        for _ in range(200):
            request.wfile.write(b" ")
            request.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass


def flood(request: Any) -> None:
    try:
        while True:
            request.wfile.write(b" " * 65536)
    except OSError:
        pass


def break_off(request: Any) -> None:
    request.wfile.write(b'{"newNonce": "')


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(200, b"<html><body>It works!</body></html>", {"Content-Type": "text/html"}), "not ACME"),
        (as_json([]), "not ACME"),
        (as_json({}), "not ACME"),
        (as_json("hello"), "not ACME"),
        (as_json({"newNonce": 5, "newAccount": [], "newOrder": None}), "not ACME"),
        (as_json({"meta": 7}), "not ACME"),
        (Answer(200, b"[" * 100_000), "not ACME"),
        (Answer(200, b"\xff\xfe\x00"), "not ACME"),
        (Answer(200, b"{}" + b" " * net.MAX_ANSWER), "more than 1 MiB"),
        (Answer(200, flood), "more than 1 MiB"),
        (Answer(200, break_off, {"Content-Length": "500"}), "cannot be reached"),
        (Answer(500, b"<h1>oops</h1>"), "HTTP 500"),
        (Answer(404), "HTTP 404"),
        (Answer(301, b"", {"Location": "http://127.0.0.1:1/"}), "not ACME"),
        (Answer(301, b"", {"Location": "/dir"}), "not ACME"),
        (problem("serverInternal", 500, "come\x1b[31m back"), "an error of its own (come"),
        (as_json({"type": "about:blank", "title": "no"}, 403), "refused the request (no reason given) (no)"),
        (as_json({"type": 5, "detail": {}}, 403), "refused"),
    ],
)
def test_a_directory_that_is_none(
    server: AcmeServer, plan_for: Callable[..., AcmePlan], answer: Answer, said: str
) -> None:
    server.reply["/dir"] = answer
    fault = refusal(plan_for(server))
    assert said in fault.message
    assert "127.0.0.1" in fault.message


@pytest.mark.parametrize(
    ("answer", "said", "asked"),
    [
        (problem("rateLimited", 429, "too many accounts", Retry_After="900"), "too often", 900),
        (problem("rateLimited", 429, "too many", Retry_After="soon"), "too often", None),
        (problem("rateLimited", 429, "too many"), "too often", None),
        (problem("unauthorized", 403, "who?"), "account may not", None),
        (problem("malformed", 400, "what?"), "(malformed) (what?)", None),
        (problem("externalAccountRequired", 403), "wants an account", None),
        (problem("invalidContact", 400), "mail address", None),
        (Answer(503, b"busy", {"Retry-After": "7"}), "HTTP 503", 7),
        (as_json({}, 201), "HTTP 404", None),  # an account without an address; then no order
    ],
)
def test_an_account_that_is_refused(
    server: AcmeServer, plan_for: Callable[..., AcmePlan], answer: Answer, said: str, asked: int | None
) -> None:
    server.reply["/newAccount"] = answer
    fault = refusal(plan_for(server))
    assert said in fault.message
    assert fault.retry_after == asked


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (problem("rejectedIdentifier", 400, "not a public name"), "makes none for such a name"),
        (problem("caa", 403, "CAA says no"), "CAA"),
        (as_json({}, 201), "not ACME"),
        (as_json({"status": "perhaps", "authorizations": [1, 2]}, 201), "not ACME"),
        (as_json({"status": "pending", "authorizations": "x", "finalize": 4}, 201), "not ACME"),
        (Answer(200, b"<html>"), "not ACME"),
    ],
)
def test_an_order_that_is_refused_or_makes_no_sense(
    server: AcmeServer, plan_for: Callable[..., AcmePlan], answer: Answer, said: str
) -> None:
    server.reply["/newAccount"] = as_json({"status": "valid"}, 201, Location=server.url("acct/1"))
    server.reply["/newOrder"] = answer
    assert said in refusal(plan_for(server)).message
    assert "POST /newOrder" in server.asked


def test_parts_of_a_refusal_say_more_than_the_whole(
    server: AcmeServer, plan_for: Callable[..., AcmePlan]
) -> None:
    whole = {
        "type": "urn:ietf:params:acme:error:compound",
        "detail": "several",
        "subproblems": [
            {
                "type": "urn:ietf:params:acme:error:caa",
                "detail": "no",
                "identifier": {"type": "dns", "value": "b.lab.test"},
            }
        ],
    }
    server.reply["/newAccount"] = as_json(whole, 403)
    fault = refusal(plan_for(server, "a.lab.test", "b.lab.test"))
    assert "for b.lab.test: a CAA record" in fault.message


def test_a_slow_server_is_not_waited_for(
    server: AcmeServer, plan_for: Callable[..., AcmePlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(net, "CALL_S", 0.3)
    monkeypatch.setattr(net, "READ_S", 0.3)
    server.reply["/dir"] = Answer(200, drip)
    assert "did not answer in time" in refusal(plan_for(server)).message
    gate = threading.Event()
    server.reply["/dir"] = lambda _request, _body: (gate.wait(10), Answer())[1]
    assert "did not answer in time" in refusal(plan_for(server)).message
    gate.set()


def test_a_server_that_is_not_there(server: AcmeServer, plan_for: Callable[..., AcmePlan]) -> None:
    down = f"https://127.0.0.1:{free_ports(1)[0]}/dir"
    fault = refusal(plan_for(server, directory=down))
    assert "cannot be reached (connection refused)" in fault.message
    unknown = refusal(plan_for(server, directory="https://acme.invalid/dir"))
    assert "acme.invalid cannot be reached" in unknown.message


def test_a_port_that_speaks_no_tls(server: AcmeServer, plan_for: Callable[..., AcmePlan]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def speak() -> None:
            peer, _ = plain.accept()
            with peer:
                peer.sendall(b"220 mail.example ESMTP\r\n")
                peer.recv(1024)

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        fault = refusal(plan_for(server, directory=f"https://127.0.0.1:{plain.getsockname()[1]}/dir"))
        assert "no TLS on that port" in fault.message
        thread.join(5)


def test_a_server_is_trusted_by_the_ca_it_was_given(
    server: AcmeServer, plan_for: Callable[..., AcmePlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Somebody's own bundle in the environment must not stand in for it.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(server.ca))
    monkeypatch.setenv("CURL_CA_BUNDLE", str(server.ca))
    with AcmeServer(tmp_path / "other") as other:
        fault = refusal(plan_for(server, ca=other.ca))
    assert "not trusted here" in fault.message
    assert "RELAY_ACME_CA" in fault.hint
    assert server.asked == []


def test_a_ca_file_that_is_none(
    server: AcmeServer, plan_for: Callable[..., AcmePlan], tmp_path: Path
) -> None:
    assert "which is not there" in refusal(plan_for(server, ca=tmp_path / "ca.pem")).message
    (tmp_path / "ca.pem").write_text("hello")
    assert "no PEM certificate" in refusal(plan_for(server, ca=tmp_path / "ca.pem")).message


@pytest.mark.parametrize("days", [-40, 40])
def test_a_wrong_clock_costs_no_order(
    server: AcmeServer, plan_for: Callable[..., AcmePlan], days: float
) -> None:
    clock = FakeClock()
    clock.forward_days(days)
    fault = refusal(plan_for(server), clock)
    assert "clock says" in fault.message
    assert fault.hint.startswith("set the clock")
    assert server.asked == ["GET /dir"]


def test_a_date_that_is_none_is_no_wrong_clock(server: AcmeServer, plan_for: Callable[..., AcmePlan]) -> None:
    server.reply["/dir"] = as_json({}, Date="yesterday")
    assert "clock" not in refusal(plan_for(server)).message


def test_retry_after_as_a_date(server: AcmeServer, plan_for: Callable[..., AcmePlan]) -> None:
    when = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=10)
    server.reply["/newAccount"] = problem(
        "rateLimited", 429, Retry_After=email.utils.format_datetime(when, True)
    )
    asked = refusal(plan_for(server)).retry_after
    assert asked is not None and 500 < asked <= 600


def test_the_same_account_is_found_again(pebble: Pebble, plan_for: Callable[..., AcmePlan]) -> None:
    where = []
    for _ in range(2):
        client = AcmeClient(plan_for(pebble), KEY, SystemClock())
        client.connect()
        assert client._network.account is not None
        where.append(client._network.account.uri)
        client.close()
    assert where[0] == where[1]
