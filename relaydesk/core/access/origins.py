"""Which web origins may read the hub's answers from a page (WHATWG HTML, "origin").

Without a setting: pages of this machine, and the shells that editors and desktop programs run their pages
in. It lets nobody past the key; it only decides whose script a browser shows an answer to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_ORIGIN: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._~-]*)(?::(?P<port>[0-9]{1,5}))?"
)
_PATTERN: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>\[[0-9a-f:.]+\]|\*|(?:\*\.)?[a-z0-9._~-]*)"
    r"(?::(?P<port>[0-9]{1,5}|\*))?"
)
ANY: Final = "*"
# What a browser sends for pages without an origin of their own, sandboxed frames of any site among them.
OPAQUE: Final = "null"

_LOCAL_HOSTS: Final = ("localhost", "*.localhost", "127.0.0.1", "[::1]")
ALWAYS: Final[tuple[str, ...]] = (
    *(f"{scheme}://{host}:*" for scheme in ("http", "https") for host in _LOCAL_HOSTS),
    *(f"{scheme}://*" for scheme in ("app", "file", "tauri", "vscode-webview", "vscode-file")),
)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """``host`` is ``*`` for any, ``*.x`` for what is below x; ``port`` is ``*`` for any, empty for none."""

    scheme: str
    host: str
    port: str

    def matches(self, scheme: str, host: str, port: str) -> bool:
        if self.scheme != scheme or self.port not in (ANY, port):
            return False
        if self.host.startswith("*."):
            return host.endswith(self.host[1:]) and host != self.host[1:]
        return self.host in (ANY, host)


def parse_origin(text: str) -> str:
    """One origin of the setting, as it is kept: lower case, no slash at its end.

    ``scheme://host`` or ``scheme://host:port``, where ``*`` may stand for the host, for the labels before
    ``.domain``, or for the port; ``*`` for every origin; ``null``. Raises `ValueError`.
    """
    origin = text.lower().removesuffix("/") if not text.endswith("//") else text.lower()
    if origin in (ANY, OPAQUE):
        return origin
    if not _PATTERN.fullmatch(origin):
        raise ValueError("not an origin")
    return origin


class Origins:
    """The allowed origins: `ALWAYS`, and those of the setting as `parse_origin` returned them."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        given = (*ALWAYS, *more)
        self._any = ANY in given
        self._opaque = OPAQUE in given
        found = (_PATTERN.fullmatch(text) for text in given)
        self._patterns = tuple(
            _Pattern(each["scheme"], each["host"], each["port"] or "") for each in found if each
        )

    def allows(self, origin: str) -> bool:
        """Whether a page of ``origin``, as its browser wrote it, may read answers."""
        if origin == OPAQUE:
            return self._opaque
        found = _ORIGIN.fullmatch(origin.lower())
        if found is None:
            return False
        scheme, host, port = found["scheme"], found["host"], found["port"] or ""
        return self._any or any(pattern.matches(scheme, host, port) for pattern in self._patterns)
