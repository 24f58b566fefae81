"""Messages made fit for a stranger's eyes: no file path, no address, no port, no piece of a prompt.

A rule of the product (no path or port in any answer). Our own sentences are kept apart from what an engine
wrote: only the latter may hold relative paths of model files and echoes of the request.
"""

from __future__ import annotations

import re
from typing import Final

from relaydesk.core.text import safe_text

MAX_MESSAGE: Final = 600
MAX_OWN: Final = 4000

_ADDRESS: Final = re.compile(
    r"""\bunix:\S+
      | \b(?:https?|wss?)://[^\s'"<>)]+
      | \b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b
      | \[[0-9A-Fa-f:.%]*:[0-9A-Fa-f:.%]*\](?::\d{1,5})?
      | \blocalhost:\d{1,5}\b
      | \bport\ \d{1,5}\b""",
    re.VERBOSE | re.IGNORECASE,
)
# An absolute path: at the start of a word, at least one name; routes of the public interface are no secret.
_PATH: Final = re.compile(
    r"""(?<![\w.:/-])(?:~|file://)?/(?!v1\b|api\b|healthz\b|readyz\b|openapi\.json\b)[\w.@+%-]+(?:/[^\s'"`,;:)]*)?
      | (?<!\w)[A-Za-z]:\\[^\s'"`,;]+""",
    re.VERBOSE,
)
_WORD: Final = re.compile(r"""[^\s'"`,;:()]+""")
_WEIGHTS: Final = (".gguf", ".safetensors", ".bin")
# The engine's JSON parser quotes what it read last: the client's own words.
_ECHO: Final = re.compile(r";?\s*last read:.*", re.IGNORECASE | re.DOTALL)


def scrub(text: str) -> str:
    """Our own sentence without absolute paths and addresses."""
    return _PATH.sub("(file)", _ADDRESS.sub("(address)", text[:MAX_OWN]))


def scrub_engine(text: str) -> str:
    """An engine's sentence: besides `scrub`, on one line, bounded, and without echoes of the request."""
    line = safe_text(_ECHO.sub("", text[: MAX_MESSAGE * 4]), MAX_MESSAGE)
    return _WORD.sub(_hide_weights, scrub(line))


def _hide_weights(word: re.Match[str]) -> str:
    """A relative path of a model's file, word by word: one pattern for it would take quadratic time."""
    text = word[0]
    hidden = ("/" in text or "\\" in text) and text.rstrip(".").lower().endswith(_WEIGHTS)
    return "(file)" if hidden else text
