"""What a minimal client holds and sees of one exchange."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.wire import codec
from tests.support.wire.events import Event
from tests.support.wire.server import MARKER


@dataclass(frozen=True)
class Target:
    """What a directory says of a node."""

    operator: int
    node: int
    signing: str


@dataclass(frozen=True)
class Sent:
    """One request as it went out; ``MinimalClient.resend`` repeats it byte for byte."""

    step: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Reply:
    """What came back. Header names are lower case. ``body`` stays empty for a stream."""

    status: int
    headers: dict[str, str]
    body: bytes = b""

    @property
    def marker(self) -> bool:
        return MARKER.lower() in self.headers

    @property
    def error(self) -> dict[str, Any]:
        """The error object of a plain body, {} where it holds none."""
        try:
            found = codec.document(self.body).get("error")
        except codec.Malformed:
            return {}
        return found if isinstance(found, dict) else {}


class Refused(Exception):
    """A plain answer that is no success; status 0 where there was no answer at all."""

    def __init__(self, step: str, reply: Reply) -> None:
        self.step, self.reply = step, reply
        self.status, self.code = reply.status, str(reply.error.get("code", ""))
        super().__init__(f"{step}: {self.status} {self.code or 'without a code'}")


class Violation(Exception):
    """The peer broke a rule of the wire. ``answer`` is what was seen until then, where there was any."""

    def __init__(self, rule: str, answer: Answer | None = None) -> None:
        self.rule, self.answer = rule, answer
        super().__init__(rule)


@dataclass(frozen=True)
class Reserved:
    """A ticket and what opens answers to it. ``secret`` and ``recipient`` are the reply key's halves."""

    ticket: dict[str, Any]
    key: bytes
    secret: str
    recipient: str
    response: dict[str, Any]
    request: dict[str, Any]

    @property
    def ticket_id(self) -> str:
        return str(self.ticket["ticket_id"])


@dataclass
class Answer:
    """Everything seen of one inference. ``chunks`` are the content's plaintexts: one for a whole body."""

    reserved: Reserved
    tx_id: str
    reply: Reply
    events: list[Event] = field(default_factory=list)
    chunks: list[bytes] = field(default_factory=list)
    receipt: dict[str, Any] | None = None
    settle_group: bytes | None = None
    done: bool = False
    comments: int = 0

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [codec.document(chunk) for chunk in self.chunks]

    @property
    def text(self) -> str:
        """The first choice's words."""
        choices = [choice for one in self.documents for choice in one.get("choices", [])]
        return "".join((c.get("delta") or c.get("message") or {}).get("content") or "" for c in choices)

    @property
    def error(self) -> dict[str, Any] | None:
        """The sealed error, where the target sealed one."""
        return next((one["error"] for one in self.documents if "error" in one), None)
