"""A blocking client of the control socket for CLI verbs.

Only the standard library, without asyncio: `relaydesk status` has 200 ms for everything, and importing
aiohttp alone would take most of them.
"""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from relaydesk.core.errors import EnvError
from relaydesk.surfaces.control.lines import LineSplitter, LineTooLongError
from relaydesk.surfaces.control.routes import KEEPALIVE_S

DEFAULT_TIMEOUT_S: Final = 30.0
# Two keep-alives may be late before a watch counts as lost.
WATCH_TIMEOUT_S: Final = KEEPALIVE_S * 2.5
_READ_SIZE: Final = 64 << 10


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(self.timeout)
            sock.connect(self._path)
        except BaseException:
            sock.close()
            raise
        self.sock = sock


def request(
    socket_path: str | os.PathLike[str],
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT_S,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    """One request; the HTTP status and the whole body, whatever the status.

    ``timeout`` bounds each wait for the node, in seconds. Raises `EnvError` ``no_node`` where no node
    answers, ``refused`` where the socket is another user's.
    """
    connection = _UnixConnection(os.fspath(socket_path), timeout)
    sent = {"Content-Type": "application/json", **(headers or {})}
    with _named_failures(socket_path, timeout):
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            # Without a size: only then does http.client notice an answer that was cut short.
            return response.status, response.read()
        finally:
            connection.close()


def lines(
    socket_path: str | os.PathLike[str],
    path: str,
    *,
    timeout: float = WATCH_TIMEOUT_S,
    headers: Mapping[str, str] | None = None,
) -> Iterator[bytes]:
    """Lines of a watch as they come, without keep-alives and line ends; ends when the node ends it.

    The last line of a watch that the node closed is ``{"closed": reason}``; an error is a single line
    ``{"error": …}``. Raises like `request`, also when the node falls silent or vanishes.
    """
    connection = _UnixConnection(os.fspath(socket_path), timeout)
    with _named_failures(socket_path, timeout):
        try:
            connection.request("GET", path, headers=dict(headers or {}))
            response = connection.getresponse()
            splitter = LineSplitter()
            while data := response.read1(_READ_SIZE):
                yield from splitter.feed(data)
        finally:
            connection.close()


@contextmanager
def _named_failures(socket_path: str | os.PathLike[str], timeout: float) -> Iterator[None]:
    where = Path(socket_path)
    try:
        yield
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        raise EnvError("no_node", f"no node answers at {where}", "start one with `relaydesk serve`") from None
    except PermissionError:
        raise EnvError(
            "refused", f"the node at {where} belongs to another user", "try it with sudo"
        ) from None
    except TimeoutError:
        raise EnvError(
            "no_node", f"the node at {where} did not answer within {timeout:g} s", "look at its log"
        ) from None
    except LineTooLongError:
        raise EnvError(
            "no_node", f"what answers at {where} sends a line without end", "see what listens there"
        ) from None
    except http.client.IncompleteRead:
        raise EnvError(
            "no_node",
            f"the node at {where} went away in the middle of its answer",
            "see whether it still runs",
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise EnvError(
            "no_node",
            f"the node at {where} went away ({error or type(error).__name__})",
            "see whether it still runs",
        ) from None
