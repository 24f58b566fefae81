"""An engine's chunks, rewritten as the stream a client of OpenAI's API reads.

Per choice: one opening delta with the role, the engine's text, logprobs and finish reason untouched, every
other key ours. Over all choices of a request: the same id, created and model; usage in one last chunk, and
only where it was asked for. A front never sees the engine's id, model path, timings or progress.
"""

from __future__ import annotations

import msgspec

from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.piece import ChoiceStream, Piece
from relaydesk.core.gateway.sse import data_frame
from relaydesk.core.gateway.usage import Tally, Usage
from relaydesk.core.ports import Rng


class Identity(msgspec.Struct, frozen=True):
    """What all chunks of one answer share. ``created`` is in seconds since 1970."""

    id: str
    model: str
    created: int


def new_identity(rng: Rng, model: str, wall_ms: int) -> Identity:
    """The identity of a new answer under the model's public name."""
    return Identity("chatcmpl-" + rng.token_bytes(12).hex(), model, wall_ms // 1000)


def call_prefix(identity: Identity, choice: int) -> str:
    """What the ids of tool calls begin with where the engine gave none of its own."""
    return f"call_{identity.id.rpartition('-')[2]}_{choice}"


class ChunkRewriter:
    """Rewrites the stream of one choice. `tally` is its account, up to date after every `feed`."""

    __slots__ = ("_head", "_opened", "_stream")

    def __init__(self, identity: Identity, choice: int = 0) -> None:
        self._stream = ChoiceStream(call_prefix(identity, choice))
        self._head = _head(identity) + b'"choices":[{"index":%d,"delta":' % choice
        self._opened = False

    @property
    def tally(self) -> Tally:
        """Tokens, progress and finish reason so far."""
        return self._stream.tally

    @property
    def done(self) -> bool:
        """Whether the engine said that it has finished."""
        return self._stream.done

    def feed(self, data: bytes, kind: str = "message") -> bytes:
        """The frames that one event's data makes, empty where the client need not know.

        ``kind`` is the event's type: some engines send an error as an event of its own.

        Raises `PeerError` where the engine reports an error or sends what is no chunk.
        """
        piece = self._stream.read(data, kind)
        return b"" if piece is None else self.render(piece)

    def render(self, piece: Piece) -> bytes:
        """The frames of one piece, the opening one first where it is due."""
        frame = data_frame(
            self._head
            + _delta(piece)
            + (b',"logprobs":' + piece.logprobs if piece.logprobs else b"")
            + b',"finish_reason":'
            + (piece.finish or b"null")
            + b"}]}"
        )
        return frame if self._opened else self.open() + frame

    def open(self) -> bytes:
        """The frame with the role, once; empty afterwards."""
        if self._opened:
            return b""
        self._opened = True
        return data_frame(self._head + b'{"role":"assistant","content":""},"finish_reason":null}]}')

    def end(self) -> None:
        """Check that the answer is finished. Raises `PeerError` ``engine_failed`` where it is not."""
        self._stream.end()


def usage_frame(identity: Identity, usage: Usage) -> bytes:
    """The last chunk of a stream whose client asked for usage: no choices, but the key must be there."""
    return data_frame(_head(identity) + b'"choices":[],"usage":' + encode(usage) + b"}")


def _head(identity: Identity) -> bytes:
    return b'{"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,' % (
        encode(identity.id),
        identity.created,
        encode(identity.model),
    )


def _delta(piece: Piece) -> bytes:
    if piece.content and not (piece.reasoning or piece.refusal or piece.calls):
        return b'{"content":' + piece.content + b"}"
    fields = [
        name + value
        for name, value in (
            (b'"content":', piece.content),
            (b'"reasoning_content":', piece.reasoning),
            (b'"refusal":', piece.refusal),
            (b'"tool_calls":', piece.calls),
        )
        if value
    ]
    return b"{" + b",".join(fields) + b"}"
