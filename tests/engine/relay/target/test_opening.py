"""What was sealed to this node is opened: small on the loop, large beside it."""

from __future__ import annotations

import threading

import pytest

from relaydesk.core.relay.records.ephemeral import sign_ephemeral
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.sealed.envelope import SealedError
from relaydesk.engine.relay.age import PyrageAge
from relaydesk.engine.relay.ephemerals import Ephemerals
from relaydesk.engine.relay.target import opening as module
from relaydesk.engine.relay.target.opening import Opening
from tests.support.clock import FakeClock
from tests.support.wire import codec


def sealed(recipient: str, data: bytes) -> bytes:
    return b'{"ciphertext":"' + codec.b64(codec.age_seal(recipient, data)).encode() + b'"}'


@pytest.fixture
def keys() -> Ephemerals:
    return Ephemerals(
        PyrageAge(), lambda *advert: sign_ephemeral(bytes(32), NodeRef(1, 0), *advert), FakeClock()
    )


@pytest.mark.parametrize(("size", "beside"), [(10, False), (100_000, True)])
async def test_large_ones_beside_the_loop(
    keys: Ephemerals, monkeypatch: pytest.MonkeyPatch, size: int, beside: bool
) -> None:
    threads: list[int] = []
    read = module.read_envelope

    def seen(body: bytes, limit: int) -> bytes:
        threads.append(threading.get_ident())
        return read(body, limit)

    monkeypatch.setattr(module, "read_envelope", seen)
    body = sealed(keys.advert().age_pubkey, b"x" * size)
    assert await Opening(keys).open(body, 1 << 20) == b"x" * size
    assert (threads != [threading.get_ident()]) == beside


async def test_what_does_not_open(keys: Ephemerals) -> None:
    opening = Opening(keys)
    keys.advert()
    for body in (b"", b"{}", sealed(codec.new_reply_key()[1], b"x"), b'{"ciphertext":"eA=="}'):
        with pytest.raises(SealedError):
            await opening.open(body, 1 << 20)
    with pytest.raises(SealedError):
        await opening.open(sealed(keys.advert().age_pubkey, b"x" * 2000), 1000)


async def test_the_keys_of_the_moment_it_came(keys: Ephemerals) -> None:
    """A key that is dropped while a thread works is still there for what was begun with it."""
    body = sealed(keys.advert().age_pubkey, b"held")
    opened = keys.opener()
    keys._current, keys._retired = None, []
    assert opened(module.read_envelope(body, 1 << 20)) == b"held"
