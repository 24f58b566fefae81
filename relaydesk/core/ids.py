"""Identifiers and the strict parsers that make them."""

from __future__ import annotations

import re
from typing import Final

from relaydesk.core.errors import LocalError
from relaydesk.core.ports import Rng

_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:/@+-]{0,126}[A-Za-z0-9_+])?")
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def parse_model_name(text: str) -> str:
    """A model's name as clients use it: 1 to 128 of ``A-Z a-z 0-9 . _ : / @ + -``, no ``//`` or ``..``.

    Raises `LocalError` ``invalid_request``. ``net/`` is kept for models of the relay network (design §6).
    """
    if not _MODEL_NAME.fullmatch(text) or "//" in text or ".." in text or text.startswith("net/"):
        raise LocalError(
            "invalid_request",
            "a model name has 1 to 128 characters out of letters, digits and . _ : / @ + -, starts with a "
            "letter or digit, and does not begin with net/",
            "choose another with --name",
            param="name",
        )
    return text


def new_request_id(rng: Rng) -> str:
    """``req_`` and 24 hex digits."""
    return "req_" + rng.token_bytes(12).hex()


def accept_request_id(text: str | None) -> str | None:
    """A client's own ``x-request-id`` where it is short and plain, else None."""
    return text if text is not None and _REQUEST_ID.fullmatch(text) else None
