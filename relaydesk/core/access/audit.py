"""One line of the audit: who asked what of which model, where it ran, and what came of it.

Never a word of a prompt or an answer, and no secret: a key is there by name and id.
"""

from __future__ import annotations

import msgspec


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request that a key opened. Times in milliseconds; ``at_ms`` is when it came, since 1970.

    ``client`` is the address it came from; ``machines`` those that saw its prompt: ``host`` is the hub's own,
    ``operator:node`` a target of the relay network, to which it went sealed, through ``relays``. ``paid`` is
    what that cost in microunits. ``outcome`` is ``done``, ``failed``, ``cancelled`` (the client left) or
    ``refused`` (before any work); ``code`` says why it is not ``done``. ``untold`` refusals of the same kind
    went before this one without a record of their own.
    """

    at_ms: int
    id: str
    key: str
    key_id: str
    route: str
    outcome: str
    status: int
    client: str = ""
    model: str = ""
    placement: str = ""
    machines: tuple[str, ...] = ()
    stream: bool = False
    choices: int = 1
    code: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    queue_ms: int | None = None
    load_ms: int | None = None
    first_token_ms: int | None = None
    total_ms: int = 0
    untold: int = 0
    relays: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    paid: int = 0


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which records are wanted: each field that is given has to match.

    ``since_ms`` and ``until_ms`` bound ``at_ms``, the first included.
    """

    key: str = ""
    model: str = ""
    route: str = ""
    outcome: str = ""
    since_ms: int = 0
    until_ms: int = 0

    def matches(self, record: AuditRecord) -> bool:
        """Whether ``record`` is wanted."""
        return (
            self.key in ("", record.key)
            and self.model in ("", record.model)
            and self.route in ("", record.route)
            and self.outcome in ("", record.outcome)
            and record.at_ms >= self.since_ms
            and (not self.until_ms or record.at_ms < self.until_ms)
        )
