"""What a client needs to use a key."""

from __future__ import annotations

from relaydesk.core.access.key import DEFAULT_KEY
from relaydesk.core.view.sections import KeyView, MetaView
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, paragraph, path_fact
from relaydesk.surfaces.console.widgets.spans import Line, Span


def client_lines(meta: MetaView | None, width: int, key: KeyView | None = None) -> tuple[Line, ...]:
    """Address, key and trust, and how programs of OpenAI's library are told."""
    if meta is None or not meta.listening:
        return ()
    in_path = key is not None and key.in_path
    named = key is not None and key.name != DEFAULT_KEY
    address = f"{meta.listening[0]}{'/k/KEY' if in_path else ''}/v1"
    lines: list[Line] = [(Span("What a client needs", "strong"),)]
    lines += fact("address", address, width, "accent")
    if named:
        where = "KEY in the address is its secret" if in_path else "its secret"
        lines += fact("key", f"{where}, shown once when it was made", width)
    else:
        lines += fact("key", "v shows it, `relaydesk token --api` prints it", width)
    if meta.ca_path and address.startswith("https"):
        lines += path_fact("trust", meta.ca_path, width)
        lines += fact("SHA-256", _groups(meta.fingerprint), width, "dim")
    lines += [NOTHING, *paragraph("For programs that use OpenAI's library:", width, "dim")]
    secret = "none" if in_path else "…" if named else "$(relaydesk token --api)"
    for line in (f"OPENAI_BASE_URL={address}", f"OPENAI_API_KEY={secret}"):
        lines += paragraph(line, width, indent=2)
    return tuple(lines)


def _groups(fingerprint: str) -> str:
    """Eight bytes at a time, so that a line ends between two groups."""
    pairs = fingerprint.split(":")
    return " ".join(":".join(pairs[at : at + 8]) for at in range(0, len(pairs), 8))
