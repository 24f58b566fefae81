"""What files a Hub repository has, asked through huggingface_hub in a child (`hub_child`).

``HF_ENDPOINT``, ``HF_TOKEN``, its token file and ``HF_HUB_OFFLINE`` mean here what they mean there. The
token travels by pipe, never in a command line or a child's environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from yarl import URL

from relaydesk.core.errors import EnvError, FaultError, LocalError, PeerError
from relaydesk.core.pool.reference import HfRef, is_safe_path
from relaydesk.core.text import safe_text
from relaydesk.engine.pull.children import TookTooLong, ask_child, child_environment

CHILD: Final = Path(__file__).with_name("hub_child.py")
ASK_S: Final = 10  # one HTTP request of the child
LIST_S: Final = 30.0  # the child altogether: a cold import included
MAX_LISTING: Final = 8 << 20
_HF_SETTINGS: Final = re.compile(r"HF_(?!TOKEN$)[A-Z_]+")
_TOKEN: Final = re.compile(r"[!-~]{1,4096}")
_COMMIT: Final = re.compile(r"[0-9a-fA-F]{40}")


class ListedFile(msgspec.Struct, frozen=True):
    path: str
    size: int | None = None
    sha256: str | None = None
    blob: str | None = None


class _Answer(msgspec.Struct, frozen=True):
    endpoint: str
    token: str | None = None
    commit: str | None = None
    files: tuple[ListedFile, ...] = ()
    failed: str = ""
    status: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """A repository at one commit. The token is what the Hub was asked with; it is in no repr."""

    repository: str
    endpoint: URL
    commit: str
    files: Mapping[str, ListedFile]
    token: str | None = field(repr=False)


async def list_files(reference: HfRef, environ: Mapping[str, str]) -> Listing:
    """The repository's GGUF files at its newest commit."""
    answer = await _ask(reference, environ)
    if answer.failed:
        raise _refused(answer, reference)
    return Listing(
        repository=reference.repository,
        endpoint=URL(answer.endpoint),
        commit=answer.commit if answer.commit and _COMMIT.fullmatch(answer.commit) else "main",
        files={file.path: file for file in answer.files if is_safe_path(file.path)},
        token=answer.token,
    )


async def _ask(reference: HfRef, environ: Mapping[str, str]) -> _Answer:
    question = {"repo": reference.repository, "token": _token(environ), "timeout": ASK_S}
    env = child_environment(environ, _HF_SETTINGS) | {"HF_HUB_DISABLE_TELEMETRY": "1"}
    try:
        ended = await ask_child(
            CHILD, json.dumps(question).encode(), env=env, timeout_s=LIST_S, limit=MAX_LISTING
        )
        return msgspec.json.decode(ended.output, type=_Answer)
    except TookTooLong:
        raise PeerError(
            "pull_failed", f"the Hub did not answer within {LIST_S:.0f} seconds", "try again later"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        last = ended.errors.strip().rpartition("\n")[2]
        raise EnvError(
            "pull_failed",
            f"the program that asks the Hub failed: {safe_text(last, 160) or 'no reason given'}",
            "check that huggingface_hub is installed and current",
        ) from None


def _token(environ: Mapping[str, str]) -> str | None:
    token = (environ.get("HF_TOKEN") or environ.get("HUGGING_FACE_HUB_TOKEN") or "").strip()
    if not token or environ.get("HF_HUB_DISABLE_IMPLICIT_TOKEN", "").upper() in (
        "1",
        "ON",
        "YES",
        "TRUE",
    ):
        return None
    if not _TOKEN.fullmatch(token):
        raise EnvError("bad_setting", "HF_TOKEN has characters that no token has", "copy it again")
    return token


def _refused(answer: _Answer, reference: HfRef) -> FaultError:
    name = reference.repository
    host = URL(answer.endpoint).host or answer.endpoint
    if answer.failed == "gated" or answer.status == 403:
        return access_refused(name, answer.token is not None)
    if answer.failed == "not_found":
        hint = "check the name" if answer.token else "check the name; for a private one set HF_TOKEN"
        return PeerError("not_found", f"the Hub has no repository {name} that this account can see", hint)
    if answer.status == 401:
        return access_refused(name, answer.token is not None)
    if answer.failed == "offline":
        return EnvError(
            "pull_failed", "HF_HUB_OFFLINE forbids asking the Hub", "unset it, or add a file by its path"
        )
    if answer.failed == "status":
        return PeerError("pull_failed", f"the Hub at {host} answered {answer.status}", "try again later")
    return PeerError(
        "pull_failed",
        f"the Hub at {host} cannot be reached",
        "check the connection, the proxy settings and HF_ENDPOINT",
    )


def access_refused(label: str, has_token: bool) -> LocalError:
    """The Hub wants a token, or another one."""
    hint = (
        "accept its licence on its page with the account of this token"
        if has_token
        else "accept its licence on its page, then set HF_TOKEN to a token of that account"
    )
    return LocalError("refused", f"the Hub gives {label} only to accounts it has let in", hint)
