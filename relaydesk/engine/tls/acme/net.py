"""HTTP to an ACME server, with bounds that the library does not set.

The library's time-out is for one read: a server that sends a byte now and then would hold a call for ever,
and one that sends without end would fill the memory. Here a call has a deadline and an answer a size, and
only HTTPS is spoken, wherever a redirect leads.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Final

import requests
from acme.client import ClientNetwork
from josepy.jwa import ES256
from josepy.jwk import JWKEC
from requests.adapters import HTTPAdapter

from relaydesk import __version__
from relaydesk.core.ports import Clock

CONNECT_S: Final = 10.0
READ_S: Final = 20.0
CALL_S: Final = 30.0
# More than any directory, order or chain.
MAX_ANSWER: Final = 1 << 20
_BLOCK: Final = 1 << 16


class _Adapter(HTTPAdapter):
    """Reads whole answers within the bounds, and keeps what the library would drop."""

    def __init__(self, ca: Path | None, clock: Clock) -> None:
        self._ca = ca
        self._clock = clock
        self.retry_after = ""
        super().__init__()

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        deadline = self._clock.mono() + CALL_S
        if self._ca is not None:
            kwargs["verify"] = str(self._ca)
        kwargs |= {"stream": True, "timeout": (CONNECT_S, READ_S)}
        self.retry_after = ""
        response = super().send(request, *args, **kwargs)
        response.raw = io.BytesIO(self._whole(response.raw, deadline))
        if response.status_code >= 400:
            self.retry_after = response.headers.get("Retry-After", "")
        return response

    def _whole(self, raw: Any, deadline: float) -> bytes:
        body = bytearray()
        try:
            while block := raw.read1(_BLOCK, decode_content=False):
                body += block
                if len(body) > MAX_ANSWER:
                    raise requests.exceptions.ContentDecodingError("an answer of more than 1 MiB")
                if self._clock.mono() > deadline:
                    raise requests.exceptions.ReadTimeout(f"more than {CALL_S:g} s for an answer")
        except BaseException:
            raw.close()
            raise
        return bytes(body)


class AcmeNetwork(ClientNetwork):
    """The library's connection for one account key, within our bounds."""

    def __init__(self, key: JWKEC, ca: Path | None, clock: Clock) -> None:
        super().__init__(key, alg=ES256, user_agent=f"relaydesk/{__version__}", timeout=round(READ_S))
        self._adapter = _Adapter(ca, clock)
        # What is compressed could be small on the wire and large in memory.
        self.session.headers["Accept-Encoding"] = "identity"
        self.session.adapters.clear()
        self.session.mount("https://", self._adapter)
        self.session.max_redirects = 3

    @property
    def retry_after(self) -> str:
        """The header of the newest answer, where that was an error."""
        return self._adapter.retry_after

    def close(self) -> None:
        """Close what is open."""
        self.session.close()
