"""The operator's own certificate and key (``RELAY_TLS_CERT``, ``RELAY_TLS_KEY``), reread when they change."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from relaydesk.core.errors import EnvError, FaultError
from relaydesk.core.ports import Clock
from relaydesk.core.tls.names import Name
from relaydesk.engine.tls.authority import utc
from relaydesk.engine.tls.context import load_context
from relaydesk.engine.tls.files import read_file, reason
from relaydesk.engine.tls.leaf import certificate_names

Signature = tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class OwnCertificate:
    """A pair that was read, checked and loaded."""

    context: ssl.SSLContext
    names: frozenset[Name]
    not_after: dt.datetime


class OwnPair:
    """Where the pair lies. Group may read the key (ACME clients share it so), others may not."""

    def __init__(self, certificate: Path, key: Path, clock: Clock) -> None:
        self.certificate = certificate
        self.key = key
        self._clock = clock
        self._seen: Signature | None = None

    def load(self) -> OwnCertificate:
        """Read and check both files. Raises `EnvError` ``tls_failed`` naming what is wrong with which."""
        self._seen = self.signature()
        leaf = self._check()
        context = load_context(self.certificate, self.key)
        return OwnCertificate(context, certificate_names(leaf), leaf.not_valid_after_utc)

    def signature(self) -> Signature | None:
        """What changes when a file is written, replaced or a link turned; None while one is missing."""
        try:
            stats = [os.stat(path) for path in (self.certificate, self.key)]
        except OSError:
            return None
        return tuple((s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in stats)

    async def watch(
        self,
        on_new: Callable[[OwnCertificate], None],
        on_bad: Callable[[str], None],
        interval: float,
    ) -> None:
        """Look every ``interval`` seconds, for ever; a changed pair goes to ``on_new``.

        Two files never change at once: a pair that does not fit is tried again at the next look, and only
        if it is unchanged and still bad then, ``on_bad`` gets one sentence. The old pair stays in use.
        """
        good = self._seen
        failed: Signature | None = None
        told = False
        while True:
            await asyncio.sleep(interval)
            now = await asyncio.to_thread(self.signature)
            if now == good and now is not None:
                if told:
                    on_bad("")
                failed, told = None, False
                continue
            try:
                pair = await asyncio.to_thread(self.load)
            except FaultError as exc:
                if now == failed and not told:
                    on_bad(exc.fault.sentence)
                    told = True
                elif now != failed:
                    failed, told = now, False
                continue
            good, failed, told = self._seen, None, False
            on_new(pair)

    def _check(self) -> x509.Certificate:
        try:
            chain = x509.load_pem_x509_certificates(read_file(self.certificate))
        except FileNotFoundError as exc:
            raise _missing("certificate", self.certificate, exc) from exc
        except ValueError as exc:
            raise EnvError(
                "tls_failed",
                f"{self.certificate} holds no PEM certificate",
                "set RELAY_TLS_CERT to a PEM chain",
            ) from exc
        try:
            key = serialization.load_pem_private_key(read_file(self.key, forbidden=0o007), password=None)
        except FileNotFoundError as exc:
            raise _missing("key", self.key, exc) from exc
        except TypeError as exc:
            raise EnvError(
                "tls_failed", f"the key {self.key} is encrypted", "give a key without a pass phrase"
            ) from exc
        except ValueError as exc:
            raise EnvError(
                "tls_failed", f"{self.key} holds no PEM private key", "set RELAY_TLS_KEY to one"
            ) from exc
        if key.public_key() != chain[0].public_key():
            raise EnvError(
                "tls_failed",
                f"the key {self.key} does not belong to the first certificate in {self.certificate}",
                "give the key it was issued for, and a chain with the leaf first",
            )
        if chain[0].not_valid_after_utc <= utc(self._clock):
            raise EnvError(
                "tls_failed",
                f"the certificate {self.certificate} ended on {chain[0].not_valid_after_utc:%Y-%m-%d}",
                "renew it; a new file is picked up without a restart",
            )
        return chain[0]


def _missing(what: str, path: Path, exc: OSError) -> EnvError:
    return EnvError("tls_failed", f"the {what} {path} cannot be read ({reason(exc)})", "check the path")
