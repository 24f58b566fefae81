"""One certificate, from nothing to its chain: open a door, ask, prove, fetch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from relaydesk.core.errors import EnvError
from relaydesk.core.ports import Clock
from relaydesk.engine.tls.acme.dns01 import Dns01Hook
from relaydesk.engine.tls.acme.http01 import Http01Port
from relaydesk.engine.tls.acme.plan import AcmePlan
from relaydesk.engine.tls.acme.steps import Steps
from relaydesk.engine.tls.authority import private_pem

if TYPE_CHECKING:
    from relaydesk.engine.tls.acme.client import AcmeClient, Proof

# More than the bounds of one call in `net`, so that its own words come first.
STEP_S: Final = 75.0
PROVE_S: Final = 120.0
_FIRST_LOOK_S: Final = 0.25
_LONGEST_LOOK_S: Final = 5.0


@dataclass(frozen=True, slots=True, repr=False)
class Issued:
    """A key and the chain that was made for it, as PEM."""

    key: bytes
    chain: bytes


async def obtain(
    plan: AcmePlan,
    account: ec.EllipticCurvePrivateKey,
    steps: Steps,
    clock: Clock,
    environ: Mapping[str, str],
) -> Issued:
    """Get a certificate with a new key. Raises `FaultError` ``tls_failed``; what was opened is closed."""
    key = ec.generate_private_key(ec.SECP256R1())
    # The door first: a port in use costs the server nothing.
    async with _door(plan, environ) as door:
        client = await steps.do(partial(_connect, plan, account, clock), STEP_S)
        try:
            proofs = await steps.do(partial(client.order, _request(key, plan.names)), STEP_S)
            for proof in proofs:
                await door.publish(proof.place, proof.value)
            for proof in proofs:
                await steps.do(partial(client.answer, proof), STEP_S)
            await _wait_proved(client, proofs, steps, plan)
            chain = await steps.do(client.finish, 2 * STEP_S)
        finally:
            client.close()
    return Issued(private_pem(key), chain)


def _door(plan: AcmePlan, environ: Mapping[str, str]) -> Http01Port | Dns01Hook:
    return Http01Port(plan.listen) if plan.hook is None else Dns01Hook(plan.hook, environ)


def _connect(plan: AcmePlan, account: ec.EllipticCurvePrivateKey, clock: Clock) -> AcmeClient:
    # Libraries that take time and memory: not before they are needed, and not on the loop.
    from relaydesk.engine.tls.acme.client import AcmeClient

    client = AcmeClient(plan, account, clock)
    try:
        client.connect()
    except BaseException:
        client.close()
        raise
    return client


def _request(key: ec.EllipticCurvePrivateKey, names: tuple[str, ...]) -> bytes:
    return (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([]))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )


async def _wait_proved(client: AcmeClient, proofs: list[Proof], steps: Steps, plan: AcmePlan) -> None:
    """Look until the server has seen every proof, less often each time."""
    pause = _FIRST_LOOK_S
    left = list(proofs)
    try:
        async with asyncio.timeout(PROVE_S):
            while left:
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_LOOK_S)
                left = [each for each in left if not await steps.do(partial(client.proved, each), STEP_S)]
    except TimeoutError:
        raise EnvError(
            "tls_failed",
            f"{plan.server} did not look at {', '.join(each.name for each in left)} within {PROVE_S:g} s",
            "wait; this is tried again",
        ) from None
