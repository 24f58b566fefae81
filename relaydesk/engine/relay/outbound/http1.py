"""The receiving half of HTTP/1.1 as other nodes speak it: bytes in, raw body bytes out. No sockets.

The framing is that of `engine.infer.http1`. Other nodes are strangers, so more is refused: interim responses
and upgrades (nothing of ours asks for them), two framings at once, two lengths.
"""

from __future__ import annotations

from typing import Final

from relaydesk.engine.infer.http1 import ResponseParser
from relaydesk.engine.relay.outbound.unreachable import UnreachableError

_FRAMING: Final = ("content-length", "transfer-encoding")


class NodeResponse(ResponseParser):
    """One response of a node. ``feed`` and ``feed_eof`` raise `UnreachableError` ``broken`` for what is none.

    ``fields`` are the headers as they came, names in lower case.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fields: list[tuple[str, str]] = []
        self._persistent = False

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request now."""
        return self.done and self._persistent and not self.surplus

    def _take_head(self, line: bytes, status: int, fields: list[tuple[str, str]]) -> None:
        if status < 200:
            raise self._broken("an interim response or an upgrade")
        self.status, self.fields, self.headers = status, fields, dict(fields)
        if len(self.headers) != len(fields):
            names = [name for name, _ in fields]
            if any(names.count(name) > 1 for name in _FRAMING):
                raise self._broken("its framing is given twice")
        if all(name in self.headers for name in _FRAMING):
            raise self._broken("a length and an encoding at once")
        closing = any("close" in value.lower() for name, value in fields if name == "connection")
        self._begin_body()
        self._persistent = line.startswith(b"HTTP/1.1") and not closing and self._step != "eof"

    def _broken(self, what: str) -> Exception:
        return UnreachableError("broken", f"its answer cannot be read: {what}")

    def _cut(self) -> Exception:
        return UnreachableError("broken", "the connection ended before the answer was complete")
