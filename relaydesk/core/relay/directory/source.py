"""Where a pinned directory is: one item of the setting, ``ADDRESS@URL-or-path``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from relaydesk.core.relay.address import decode_address

DOCUMENT_PATH: Final = "/v1/zs/directory"
RECORDS_PATH: Final = f"{DOCUMENT_PATH}/records"
ALLOWED: Final = "ADDRESS@https://HOST[/PATH] (in labs http:// too) or ADDRESS@/absolute/file"


@dataclass(frozen=True, slots=True)
class Source:
    """A directory by its key's address, and the place where it is read: a URL, or an absolute path."""

    key: str
    place: str

    def __str__(self) -> str:
        return f"{self.key}@{self.place}"

    @property
    def is_url(self) -> bool:
        """Whether it is fetched by HTTP."""
        return not self.place.startswith("/")

    @property
    def document_url(self) -> str:
        """Where the document is: a URL of a ``.json`` file as it is, else the node's route below it."""
        if self._served and not self.place.endswith(DOCUMENT_PATH):
            return self.place.rstrip("/") + DOCUMENT_PATH
        return self.place

    @property
    def records_url(self) -> str | None:
        """Where records are handed in; None for a plain file, which takes none."""
        return f"{self.document_url}/records" if self._served else None

    @property
    def _served(self) -> bool:
        return self.is_url and not self.place.endswith(".json")


def parse_source(text: str) -> Source:
    """One item of the setting. Raises `ValueError` with what is wrong."""
    key, mark, place = text.partition("@")
    if not mark or not place:
        raise ValueError("no @ between address and place")
    decode_address(key)
    if place.startswith("/"):
        if not place.isprintable():
            raise ValueError("not a path")
        return Source(key, place)
    parts = urlsplit(place)
    if (
        parts.scheme not in ("https", "http")
        or not parts.hostname
        or "@" in parts.netloc
        or parts.query
        or parts.fragment
        or not (place.isascii() and place.isprintable())
        or " " in place
        or len(place) > 2048
    ):
        raise ValueError("neither an http(s):// URL without user, query and fragment nor an absolute path")
    _ = parts.port  # raises for one out of range
    return Source(key, place)
