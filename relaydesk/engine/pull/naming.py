"""A model's default name, out of text that somebody else wrote."""

from __future__ import annotations

import re
from typing import Final

from relaydesk.core.errors import LocalError
from relaydesk.core.ids import parse_model_name
from relaydesk.core.text import safe_text

_LIMIT: Final = 100  # leaves room for a suffix that makes it unique
_OTHER: Final = re.compile(r"[^a-z0-9._:@+-]+")
_RUNS: Final = re.compile(r"-{2,}|\.{2,}")
# Names that say nothing about the model in the file.
_EMPTY: Final = re.compile(
    r"(ggml-)?model([-.].{0,12})?|sha256[-:][0-9a-f]{8,}|[0-9a-f]{40,}|ggml|weights|unnamed"
)


def suggest_name(*texts: str) -> str:
    """The first of ``texts`` that makes a telling name, lower case; ``model`` where none does."""
    for text in texts:
        name = _RUNS.sub("-", _OTHER.sub("-", safe_text(text, _LIMIT).lower())).strip("-._:@")
        if not name or _EMPTY.fullmatch(name):
            continue
        try:
            return parse_model_name(name)
        except LocalError:
            continue
    return "model"


def repository_name(repo: str) -> str:
    """A repository's name without the suffix that only says the format."""
    return re.sub(r"[-_.]?gguf$", "", repo, flags=re.IGNORECASE) or repo
