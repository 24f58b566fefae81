"""A request for embeddings, whatever dialect it came in."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.completions.prompt import Prompt, parse_prompts
from relaydesk.core.gateway.decode import check_text, decode, decoder, invalid, unsupported
from relaydesk.core.gateway.fields import MAX_MODEL_NAME
from relaydesk.core.gateway.work import Capabilities

MAX_INPUTS: Final = 2048
MAX_DIMENSIONS: Final = 65_536

Encoding = Literal["float", "base64"]


class EmbedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A checked request: one vector for each of ``inputs``, in their order.

    ``truncate`` cuts a text that is too long at its end instead of refusing it. ``keep_alive_s`` is how long
    the model is to stay loaded afterwards where the client said so.
    """

    model: str | None
    inputs: tuple[Prompt, ...]
    dimensions: int | None = None
    encoding: Encoding = "float"
    truncate: bool = False
    keep_alive_s: int | None = None

    @property
    def bound(self) -> int:
        """At least the tokens of all inputs: each stands for a byte, or begins or ends a text."""
        return sum(len(each.body) for each in self.inputs)

    def __repr__(self) -> str:
        # A request in a log line or a traceback must not carry what it embeds.
        return f"EmbedRequest(model={self.model!r}, inputs={len(self.inputs)})"


class Envelope(msgspec.Struct):
    """A request of OpenAI's clients as it came."""

    input: Raw = Raw()
    model: str | None = None
    encoding_format: str | None = None
    dimensions: int | None = None
    user: str | None = None


ENVELOPE: Final = decoder(Envelope)


def parse_embedding(body: bytes) -> EmbedRequest:
    """Check the body of ``POST /v1/embeddings``.

    Raises only `PeerError`: ``invalid_json`` or ``invalid_request`` with ``param`` naming the field. What
    depends on the model is left to `check_embedding`.
    """
    if not body or body.isspace():
        raise PeerError("invalid_json", "the request body is empty", "send a JSON object")
    check_text(body)
    envelope = decode(ENVELOPE, body)
    encoding: Encoding
    match envelope.encoding_format:
        case None | "float":
            encoding = "float"
        case "base64":
            encoding = "base64"
        case _:
            raise invalid("encoding_format", "encoding_format must be float or base64")
    if envelope.model is not None and len(envelope.model) > MAX_MODEL_NAME:
        raise invalid("model", f"model has {len(envelope.model)} characters, allowed is {MAX_MODEL_NAME}")
    check_dimensions(envelope.dimensions)
    return EmbedRequest(
        model=envelope.model or None,
        inputs=parse_inputs(envelope.input),
        dimensions=envelope.dimensions,
        encoding=encoding,
    )


def parse_inputs(raw: Raw, at: str = "input") -> tuple[Prompt, ...]:
    """Texts or lists of token ids. Raises `PeerError` naming the entry; an empty text has no vector."""
    inputs = parse_prompts(raw, at, MAX_INPUTS)
    for each in inputs:
        if each.body == b'""':
            raise invalid(each.at, f"{each.at} is an empty text, and nothing cannot be embedded")
    return inputs


def check_dimensions(dimensions: int | None) -> None:
    """Raises `PeerError` where no vector could have that length."""
    if dimensions is not None and not 1 <= dimensions <= MAX_DIMENSIONS:
        shown = dimensions if abs(dimensions) < 10**12 else "out of range"
        raise invalid("dimensions", f"dimensions is {shown}, allowed is 1 to {MAX_DIMENSIONS}")


def check_embedding(request: EmbedRequest, capabilities: Capabilities) -> None:
    """Refuse what the chosen model cannot do. Raises `PeerError` naming the field."""
    if not capabilities.embedding:
        raise unsupported("model", "this model makes no embeddings", "use another, best one made for it")
    wanted = request.dimensions
    if wanted is not None and capabilities.dimensions not in (0, wanted):
        raise unsupported(
            "dimensions",
            f"this model's embeddings have {capabilities.dimensions} dimensions, not {wanted}",
            "leave dimensions out",
        )
    if capabilities.embeds_ids:
        return
    for each in request.inputs:
        if not each.is_text:
            raise invalid(
                each.at,
                f"{each.at} is a list of token ids, which mean another text in this model's vocabulary than "
                "in the one they were made with: send text. With LangChain, set "
                "OpenAIEmbeddings(check_embedding_ctx_length=False)",
            )
