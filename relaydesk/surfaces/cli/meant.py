"""What somebody may have meant who typed a verb that does not exist."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

import click

from relaydesk.core.errors import LocalError
from relaydesk.core.text import safe_text
from relaydesk.surfaces.cli.verbs import paths

_MOST: Final = 3
# What other programs call it.
_ELSEWHERE: Final = {
    "delete": "model rm",
    "keys": "key list",
    "logs": "status",
    "ls": "model list",
    "models": "model list",
    "ps": "status",
    "remove": "model rm",
    "requests": "request list",
    "run": "serve",
    "settings": "config show",
    "start": "serve",
}


def no_such_command(ctx: click.Context, word: str) -> Exception:
    """The error for a verb that ``ctx``'s group does not have, with what may be meant."""
    program, _, group = ctx.command_path.partition(" ")
    guesses = [f"`{program} {path}`" for path in meant(group, word)]
    message = f"there is no command `{ctx.command_path} {safe_text(word, 40)}`"
    if not guesses:
        return click.UsageError(message, ctx)
    return LocalError("invalid_request", message, f"did you mean {' or '.join(guesses)}?")


def meant(group: str, word: str) -> list[str]:
    """Commands like ``model list``, at most three: the same verb elsewhere, else those spelt alike."""
    known = list(paths())
    prefix = f"{group} " if group else ""
    named = [path for path in known if path.rpartition(" ")[2] == word]
    elsewhere = [path for path in (_ELSEWHERE.get(word),) if path in known]
    if not (found := [*named, *elsewhere]):
        # Where a name stands for two commands, the one of this group is meant, else the first.
        own = [path for path in known if path.startswith(prefix) and " " not in path[len(prefix) :]]
        last = {path.rpartition(" ")[2]: path for path in (*reversed(known), *own)}
        found = [last[name] for name in get_close_matches(word, last, _MOST)]
    return list(dict.fromkeys(found))[:_MOST]
