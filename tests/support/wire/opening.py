"""How a minimal client opens what a target sealed (§4.3, §4.7)."""

from __future__ import annotations

from typing import Any, Final

from tests.support.wire import codec
from tests.support.wire.events import COMMENT, CONTENT, RECEIPT, SETTLE, Event
from tests.support.wire.exchange import Answer, Reply, Reserved, Violation

SEALED: Final = "application/vnd.zs+json"


def media_type(reply: Reply) -> str:
    return reply.headers.get("content-type", "").partition(";")[0].strip().lower()


def open_reserve(reply: Reply, secret: str, asked: dict[str, Any]) -> Reserved:
    try:
        envelope = codec.document(reply.body)
        if set(envelope) != {"ciphertext"}:
            raise Violation("reserve: the envelope has one key")
        response = codec.document(codec.age_open(secret, codec.unb64(envelope["ciphertext"])))
        key = codec.age_open(secret, codec.unb64(response["wrapped_response_key"]))
        return Reserved(response["ticket"], key, secret, asked["proxy_recipient"], response, asked)
    except (codec.Malformed, KeyError) as error:
        raise Violation(f"reserve: {error}") from None


def open_whole(answer: Answer) -> None:
    ids, key = (answer.tx_id, answer.reserved.ticket_id), answer.reserved.key
    if media_type(answer.reply) != SEALED:
        raise Violation("content type", answer)
    try:
        envelope = codec.document(answer.reply.body)
        sealed = codec.unb64(envelope.get("nonce")) + codec.unb64(envelope.get("ciphertext"))
        answer.chunks.append(codec.unseal(key, sealed, codec.body_aad(*ids)))
    except codec.Malformed:
        raise Violation("body does not open", answer) from None
    answer.done = True
    answer.settle_group = _header(answer, "settle-group")
    receipt = _header(answer, "receipt")
    answer.receipt = None if receipt is None else codec.document(receipt)


def _header(answer: Answer, name: str) -> bytes | None:
    """A sealed header; one that does not open counts as absent."""
    aad = codec.header_aad(answer.tx_id, answer.reserved.ticket_id, name)
    try:
        sealed = codec.unb64(answer.reply.headers.get(f"x-zs-{name}"))
        return codec.unb64(codec.unseal(answer.reserved.key, sealed, aad).decode())
    except (codec.Malformed, UnicodeDecodeError):
        return None


def take(answer: Answer, event: Event) -> None:
    """One event of a stream, at its place."""
    key, tx_id, ticket_id = answer.reserved.key, answer.tx_id, answer.reserved.ticket_id
    if event.name == COMMENT:
        answer.comments += 1
        return
    if answer.done:
        raise Violation("event after [DONE]", answer)
    if event.done:
        answer.done = True
        return
    if event.name not in (CONTENT, RECEIPT, SETTLE):
        raise Violation("unsealed event", answer)
    ended = answer.receipt is not None or answer.settle_group is not None
    if ended and (event.name == CONTENT or (event.name == RECEIPT and answer.receipt is not None)):
        raise Violation("settlement before the content's end", answer)
    # Only what the frame AAD seals has a place, and the receipt takes the next one.
    aad = codec.frame_aad(tx_id, ticket_id, len(answer.chunks))
    if event.name == SETTLE:
        aad = codec.header_aad(tx_id, ticket_id, "settle-group")
    try:
        plain = codec.unseal(key, codec.unb64(event.data), aad)
        if event.name == CONTENT:
            answer.chunks.append(plain)
        elif event.name == RECEIPT:
            answer.receipt = codec.document(plain)
        else:
            answer.settle_group = codec.unb64(plain.decode())
    except (codec.Malformed, UnicodeDecodeError):
        raise Violation(f"{event.name} does not open", answer) from None
