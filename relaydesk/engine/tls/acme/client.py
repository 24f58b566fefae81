"""One conversation with an ACME server (RFC 8555), step by step, by the `acme` library.

Every call blocks: in a thread, never on the loop. What a call raises is a `FaultError` ``tls_failed``
whose ``retry_after`` holds what the server asked for. Importing this loads the libraries: see `order`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import acme.errors
from acme import challenges, messages
from acme.client import ClientV2
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from josepy.jwk import JWKEC

from relaydesk.core.errors import EnvError, PeerError
from relaydesk.core.ports import Clock
from relaydesk.core.text import safe_text
from relaydesk.core.tls.renewal import clock_error_s, retry_after_s
from relaydesk.engine.tls.acme.faults import fault_of
from relaydesk.engine.tls.acme.net import AcmeNetwork
from relaydesk.engine.tls.acme.plan import AcmePlan
from relaydesk.engine.tls.authority import utc
from relaydesk.engine.tls.files import read_file

_log: Final = logging.getLogger(__name__)

FINISH_S: Final = 60.0
_KINDS: Final = {"http-01": challenges.HTTP01, "dns-01": challenges.DNS01}


@dataclass(frozen=True, slots=True)
class Proof:
    """What has to be found for one name, and where.

    HTTP-01: the text ``value`` at the path ``place`` of port 80. DNS-01: a TXT record ``value`` at the name
    ``place``.
    """

    name: str
    place: str
    value: str
    _challenge: Any
    _authorization: Any


class AcmeClient:
    """An account on a server, and one order at a time."""

    def __init__(self, plan: AcmePlan, key: ec.EllipticCurvePrivateKey, clock: Clock) -> None:
        self._plan = plan
        self._clock = clock
        self._key = JWKEC(key=key)
        self._network = AcmeNetwork(self._key, plan.ca, clock)
        self._client: ClientV2
        self._order: messages.OrderResource

    def connect(self) -> None:
        """Read the server's directory, compare clocks, and make or find the account."""
        with self._told():
            self._check_ca()
            answer = self._network.get(self._plan.directory)
            self._compare_clocks(answer.headers.get("Date", ""))
            self._client = ClientV2(messages.Directory.from_json(answer.json()), self._network)
            account = messages.NewRegistration.from_data(
                email=self._plan.email or None, terms_of_service_agreed=True
            )
            try:
                self._client.new_account(account)
            except acme.errors.ConflictError as known:
                # The account is there already; its address is all that is needed.
                body = messages.Registration()
                self._network.account = messages.RegistrationResource(uri=known.location, body=body)

    def order(self, csr_pem: bytes) -> list[Proof]:
        """Ask for a certificate; what has to be proved for it, empty where all of it is already."""
        with self._told():
            self._order = self._client.new_order(csr_pem)
            left = [each for each in self._order.authorizations if each.body.status != messages.STATUS_VALID]
            if lost := [each for each in left if each.body.status != messages.STATUS_PENDING]:
                raise acme.errors.ValidationError(lost)
            return [self._proof(each) for each in left]

    def answer(self, proof: Proof) -> None:
        """Say that a proof is in its place."""
        with self._told():
            self._client.answer_challenge(proof._challenge, proof._challenge.response(self._key))

    def proved(self, proof: Proof) -> bool:
        """Whether the server has seen a proof; raises where it says that it is not there."""
        with self._told():
            found, _answer = self._client.poll(proof._authorization)
            if found.body.status == messages.STATUS_VALID:
                return True
            if found.body.status == messages.STATUS_PENDING:
                return False
            raise acme.errors.ValidationError([found])

    def finish(self) -> bytes:
        """Have the certificate made; its chain as PEM, leaf first."""
        with self._told():
            # The library compares with the same clock.
            deadline = dt.datetime.now() + dt.timedelta(seconds=FINISH_S)  # noqa: DTZ005, TID251
            done = self._client.finalize_order(self._order, deadline)
            return done.fullchain_pem.encode()

    def close(self) -> None:
        """Close the connection."""
        self._network.close()

    def _check_ca(self) -> None:
        ca = self._plan.ca
        if ca is None:
            return
        try:
            x509.load_pem_x509_certificates(read_file(ca))
        except FileNotFoundError:
            raise EnvError(
                "tls_failed", f"RELAY_ACME_CA names {ca}, which is not there", "correct it"
            ) from None
        except ValueError:
            raise EnvError(
                "tls_failed", f"RELAY_ACME_CA names {ca}, which holds no PEM certificate", "correct it"
            ) from None

    def _compare_clocks(self, date: str) -> None:
        now = utc(self._clock)
        ahead = clock_error_s(date, now)
        if ahead:
            raise EnvError(
                "tls_failed",
                f"this machine's clock says {now:%Y-%m-%d %H:%M} UTC and that of {self._plan.server} "
                f"{now - dt.timedelta(seconds=ahead):%Y-%m-%d %H:%M}",
                "set the clock; until it is right no certificate is asked for",
            )

    def _proof(self, authorization: messages.AuthorizationResource) -> Proof:
        wanted = _KINDS[self._plan.challenge]
        name = str(authorization.body.identifier.value)
        for challenge in authorization.body.challenges:
            chall = challenge.chall
            if not isinstance(chall, wanted):
                continue
            place = chall.path if isinstance(chall, challenges.HTTP01) else chall.validation_domain_name(name)
            return Proof(name, place, chall.validation(self._key), challenge, authorization)
        other = "dns-01" if self._plan.challenge == "http-01" else "http-01"
        raise PeerError(
            "tls_failed",
            f"{self._plan.server} does not offer {self._plan.challenge} for {safe_text(name, 80)}",
            "set RELAY_ACME_DNS_HOOK to prove it by DNS"
            if other == "dns-01"
            else "unset RELAY_ACME_DNS_HOOK",
        )

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Make a fault of whatever is raised within: a server can make the library raise anything."""
        try:
            yield
        except Exception as error:
            fault = fault_of(error, self._plan)
            _log.debug("an ACME call failed: %r", error)
            asked = retry_after_s(self._network.retry_after, utc(self._clock))
            raise PeerError(
                fault.code,
                fault.message,
                fault.hint,
                param=fault.param,
                retry_after=None if asked is None else round(asked),
            ) from None
