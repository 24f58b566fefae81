"""From a verb to the running node: the start rule's search, then plain requests over its socket."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec

from relaydesk.config.paths import Candidate, candidates, resolve
from relaydesk.core.codec import convert, decode, encode, fault_of
from relaydesk.core.commands import Access, Command, DiscoverModels, Outcome, name_of
from relaydesk.core.errors import EnvError, Fault, LocalError, PeerError, raise_fault
from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import FaultView
from relaydesk.surfaces.cli.settings import load_settings
from relaydesk.surfaces.control import light

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

CONNECT_S: Final = 5.0
# What only looks is answered at once by a node that is well; what changes something may take its time.
READ_S: Final = 5.0
ANSWER_S: Final = 60.0
# Nothing there, a node that died (its socket refuses), or no socket at all: look further.
_ABSENT: Final = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR, errno.ECONNRESET})

attach_option = click.option(
    "--attach",
    type=click.Path(path_type=Path),
    metavar="SOCKET",
    help="Control socket of the node to talk to, instead of searching for one.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object, on the last line.")


@dataclass(frozen=True, slots=True)
class Node:
    """A running node, reached over its control socket. Every call blocks."""

    socket: Path

    def get(self, path: str) -> bytes:
        """The body of a GET. Raises what the node answered."""
        status, body = self._request("GET", path, None, READ_S)
        if status != 200:
            raise_fault(_fault_of(body, status))
        return body

    def call(self, command: Command, timeout: float | None = None) -> Outcome:
        """Carry out a command; raises the fault of one that failed."""
        looks = command.access is Access.READ and not isinstance(command, DiscoverModels)
        if timeout is None:
            timeout = READ_S if looks else ANSWER_S
        status, body = self._request("POST", f"/commands/{name_of(command)}", encode(command), timeout)
        try:
            outcome = decode(body, Outcome)
        except (msgspec.MsgspecError, RecursionError):
            raise_fault(_fault_of(body, status))
            raise
        if not outcome.ok:
            unsaid = FaultView("internal_error", safe_text("the node did not say what went wrong"))
            raise_fault(fault_of(outcome.fault or unsaid))
        return outcome

    def watch(self, *topics: str) -> Iterator[bytes]:
        """Lines of ``GET /watch``: the whole of the topics first, then what changes."""
        return light.lines(self.socket, f"/watch?topics={','.join(topics)}")

    def _request(self, method: str, path: str, body: bytes | None, timeout: float) -> tuple[int, bytes]:
        try:
            return light.request(self.socket, method, path, body, timeout=timeout)
        except EnvError as error:
            if "did not answer within" not in error.fault.message:
                raise
            raise _silent(self.socket, timeout) from None


def find_node(attach: Path | None = None) -> Node:
    """The first node of the start rule's order that answers.

    Raises `EnvError` ``no_node`` where none does, `LocalError` ``refused`` where one is another user's.
    """
    places = candidates(load_settings().settings, attach=attach)
    for place in places:
        if _answers(place):
            return Node(place.socket)
    looked = ", ".join(str(place.socket) for place in places)
    raise EnvError("no_node", f"no node is running (looked at {looked})", "start one with `relaydesk serve`")


def answer(value: Any, kind: type[T]) -> T:
    """A command's answer as ``kind``. Raises `PeerError` where the node is of another version."""
    try:
        return convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _other_version(str(error)) from error


def read(body: bytes, kind: type[T]) -> T:
    """A body as ``kind``, its texts made safe to show. Raises like `answer`."""
    try:
        return decode(body, kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _other_version(str(error)) from error


def _answers(place: Candidate) -> bool:
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(os.fspath(place.socket))
        except OSError as error:
            if error.errno in _ABSENT:
                return False
            if error.errno in (errno.EACCES, errno.EPERM):
                raise _not_ours(place) from error
            what = "does not accept" if isinstance(error, TimeoutError) else "cannot be reached"
            raise EnvError(
                "no_node",
                f"the node behind {place.socket} {what} ({error.strerror or error})",
                "look at its log, or stop it and start it again",
            ) from error
    return True


def _silent(socket_path: Path, waited: float) -> EnvError:
    """A node that is there and says nothing, named by its process where that is known."""
    from relaydesk.store.lock import holder

    pid = holder(resolve(load_settings().settings).state)
    who = f"the node (process {pid})" if pid else f"the node behind {socket_path}"
    end = f"`kill {pid}`" if pid else "its service manager"
    return EnvError(
        "no_node",
        f"{who} does not answer within {waited:g} s",
        f"it may be stopped or very busy: look at its log, or end it with {end} and start it again",
    )


def _not_ours(place: Candidate) -> LocalError:
    ctx = click.get_current_context(silent=True)
    verb = ctx.command_path.partition(" ")[2] if ctx is not None else ""
    hint = f"sudo relaydesk {verb or 'status'}"
    if place.explicit:
        hint += f" --attach {place.socket}"
    hint = f"`{hint}`"
    return LocalError("refused", f"the node behind {place.socket} belongs to another user", hint)


class _Failed(msgspec.Struct, frozen=True):
    """The body of an answer that is no outcome."""

    error: FaultView


def _fault_of(body: bytes, status: int) -> Fault:
    try:
        return fault_of(decode(body, _Failed).error)
    except (msgspec.MsgspecError, RecursionError):
        return Fault("internal_error", f"the node answered {status} without a reason", "see its log")


def _other_version(detail: str) -> PeerError:
    return PeerError(
        "internal_error",
        f"the node's answer is not what this version of relaydesk expects ({safe_text(detail, 160)})",
        "restart the node so that both are of one version",
    )
