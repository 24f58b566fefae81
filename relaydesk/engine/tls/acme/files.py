"""What is kept of an ACME server in ``<state dir>/tls/acme/<server>/``, all of it 0600.

``account-key.pem`` is the account: the server knows the rest by it. ``certificate.pem`` holds key and
chain together, so that they change together. ``tries.json`` is what failed since the last success. A
server of its own has a directory of its own: going from a test server to the real one and back loses
nothing and mixes nothing up.
"""

from __future__ import annotations

import hashlib
import logging
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from relaydesk.core.errors import EnvError, FaultError, PeerError
from relaydesk.core.ports import Clock
from relaydesk.core.tls.names import Name
from relaydesk.core.tls.renewal import Age, Life, Tries
from relaydesk.engine.tls.acme.order import Issued
from relaydesk.engine.tls.acme.plan import AcmePlan
from relaydesk.engine.tls.authority import private_pem, utc
from relaydesk.engine.tls.context import load_context
from relaydesk.engine.tls.files import read_file
from relaydesk.engine.tls.leaf import certificate_names
from relaydesk.store.files import atomic_write, private_dir, sweep_temp, sync_dir

_log: Final = logging.getLogger(__name__)

ACCOUNT_FILE: Final = "account-key.pem"
CERTIFICATE_FILE: Final = "certificate.pem"
TRIES_FILE: Final = "tries.json"
_NEW: Final = ".new"


@dataclass(frozen=True, slots=True)
class Kept:
    """A certificate that was read, checked and loaded."""

    context: ssl.SSLContext
    names: frozenset[Name]
    life: Life


class AcmeFiles:
    """The files of one plan. Every call blocks on the disk."""

    def __init__(self, state_dir: Path, plan: AcmePlan, clock: Clock) -> None:
        digest = hashlib.sha256(plan.directory.encode()).hexdigest()[:8]
        self.directory = state_dir / "tls" / "acme" / f"{plan.server}-{digest}"
        self._plan = plan
        self._clock = clock

    def prepare(self) -> None:
        """Make the directory, and clear away what a killed writer left. Raises ``tls_failed``."""
        try:
            private_dir(self.directory)
            sweep_temp(self.directory)
        except (EnvError, OSError) as error:
            raise _as_tls(error, self.directory) from error

    def account(self) -> ec.EllipticCurvePrivateKey:
        """The account's key, made where there is none that can be used: nothing depends on an old one."""
        path = self.directory / ACCOUNT_FILE
        try:
            key = serialization.load_pem_private_key(read_file(path, forbidden=0o077), password=None)
            if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
                return key
            _log.warning("%s is no key for an ACME account: a new one is made", path)
        except FileNotFoundError:
            pass
        except (EnvError, ValueError, TypeError) as error:
            _log.warning("the ACME account's key cannot be used, a new one is made: %s", error)
        made = ec.generate_private_key(ec.SECP256R1())
        self._write(path, private_pem(made))
        return made

    def load(self) -> Kept | None:
        """The certificate that is kept, whatever its age; None where none can be used."""
        path = self.directory / CERTIFICATE_FILE
        try:
            leaf = check_pair(read_file(path, forbidden=0o077))
            return Kept(load_context(path), certificate_names(leaf), _life(leaf))
        except FileNotFoundError:
            return None
        except FaultError as error:
            _log.warning("the certificate that was kept cannot be used: %s", error.fault.sentence)
            return None

    def save(self, issued: Issued) -> Kept:
        """Check a new certificate, load it, and only then put it in the place of the old one.

        Raises `PeerError` ``tls_failed`` for one that does not do what was asked for, `EnvError` where it
        cannot be written.
        """
        data = issued.key + issued.chain
        leaf = check_pair(data)
        names = certificate_names(leaf)
        missing = [name for name in self._plan.names if name not in names]
        if missing:
            raise _useless(self._plan, f"a certificate without {', '.join(missing)}")
        life, now = _life(leaf), utc(self._clock)
        if life.age(now) in (Age.EARLY, Age.OVER):
            raise EnvError(
                "tls_failed",
                f"the new certificate is valid from {life.start:%Y-%m-%d %H:%M} to {life.end:%Y-%m-%d %H:%M} "
                f"and this machine's clock says {now:%Y-%m-%d %H:%M} UTC",
                "set the clock",
            )
        path = self.directory / CERTIFICATE_FILE
        fresh = path.with_name(path.name + _NEW)
        self._write(fresh, data)
        context = load_context(fresh)
        try:
            os.replace(fresh, path)
            sync_dir(self.directory)
        except OSError as error:
            raise _as_tls(error, path) from error
        return Kept(context, names, life)

    def tries(self) -> Tries:
        """What an earlier run left behind; none where that cannot be read."""
        try:
            return msgspec.json.decode(read_file(self.directory / TRIES_FILE), type=Tries)
        except (FileNotFoundError, EnvError, msgspec.MsgspecError):
            return Tries()

    def keep_tries(self, tries: Tries) -> None:
        """Write down the tries that failed, for the next run."""
        self._write(self.directory / TRIES_FILE, msgspec.json.encode(tries))

    def _write(self, path: Path, data: bytes) -> None:
        try:
            private_dir(self.directory)
            atomic_write(path, data, 0o600)
        except EnvError as error:
            raise _as_tls(error, path) from error


def check_pair(data: bytes) -> x509.Certificate:
    """The leaf of a PEM file with key and chain. Raises `PeerError` ``tls_failed`` where they do not fit."""
    try:
        key = serialization.load_pem_private_key(data, password=None)
        chain = x509.load_pem_x509_certificates(data)
        if key.public_key() != chain[0].public_key():
            raise ValueError("another key")
        if len(chain) > 1:
            chain[0].verify_directly_issued_by(chain[1])
        certificate_names(chain[0])
    except (ValueError, TypeError, InvalidSignature) as error:
        raise PeerError(
            "tls_failed",
            "key and chain of the certificate do not belong together",
            "look at the ACME server's log; this is tried again",
        ) from error
    return chain[0]


def _life(leaf: x509.Certificate) -> Life:
    return Life(leaf.not_valid_before_utc, leaf.not_valid_after_utc)


def _useless(plan: AcmePlan, what: str) -> PeerError:
    return PeerError(
        "tls_failed", f"{plan.server} gave {what}", "look at the server's log; this is tried again"
    )


def _as_tls(error: EnvError | OSError, path: Path) -> EnvError:
    if isinstance(error, EnvError):
        return EnvError("tls_failed", error.fault.message, error.fault.hint)
    return EnvError("tls_failed", f"cannot write {path} ({error.strerror or error})", "check that path")
