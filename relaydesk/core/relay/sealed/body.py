"""The sealed body of an answer that is not streamed (wire §4.7)."""

from __future__ import annotations

from typing import Final

import msgspec

from relaydesk.core.relay.records.canonical import RecordError, b64, decode_record, unb64
from relaydesk.core.relay.sealed.aad import body_aad
from relaydesk.core.relay.sealed.box import Exchange, seal, unseal
from relaydesk.core.relay.sealed.envelope import SealedError

MEDIA_TYPE: Final = "application/vnd.zs+json"


class _Body(msgspec.Struct, frozen=True):
    nonce: str
    ciphertext: str


_DECODER: Final = msgspec.json.Decoder(_Body)


def seal_body(exchange: Exchange, plaintext: bytes, nonce: bytes) -> bytes:
    """The JSON body that carries ``plaintext``; ``nonce`` has 12 random bytes."""
    aad = body_aad(exchange.tx_id, exchange.ticket_id)
    ciphertext = seal(exchange.key, aad, nonce, plaintext)
    return f'{{"nonce":"{b64(nonce)}","ciphertext":"{b64(ciphertext)}"}}'.encode()


def open_body(exchange: Exchange, body: bytes, limit: int) -> bytes:
    """The plaintext of a body of at most ``limit`` bytes. Raises `SealedError`; nothing unsealed passes."""
    if len(body) > limit:
        raise SealedError("the answer is too large")
    try:
        found = decode_record(_DECODER, body, "the answer")
        nonce = unb64(found.nonce, "the nonce")
        ciphertext = unb64(found.ciphertext, "the ciphertext")
    except RecordError as error:
        raise SealedError(str(error)) from None
    return unseal(exchange.key, body_aad(exchange.tx_id, exchange.ticket_id), nonce, ciphertext)
