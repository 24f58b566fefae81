"""Regular expressions of schemas, in the small language that an engine's grammar can be made of.

llama.cpp takes a pattern's characters over into the grammar of the JSON text itself: a quote or a backslash
would end or spoil the string there, and what it does not know it drops with the whole pattern. So a pattern
is read here and written anew as classes of harmless characters, groups and counts. What comes out matches
only texts that the original matches; ``.`` and negated classes shrink to printable ASCII.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

MAX_COUNT: Final = 1000
MAX_PATTERN: Final = 1000

# Printable ASCII without the two characters that JSON text escapes.
SAFE: Final = frozenset(map(chr, range(0x20, 0x7F))) - {'"', "\\"}
_DIGITS: Final = frozenset("0123456789")
_WORD: Final = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": frozenset(" ")}
_SPECIAL: Final = frozenset("^$.*+?()[]{}|")
_COUNTED: Final = re.compile(r"\{(\d{1,4})?(,)?(\d{1,4})?\}")
_GROUP: Final = re.compile(r"\((?:\?(?::|P?<[A-Za-z_]\w*>))?(?!\?)")
_HEX: Final = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")


class PatternError(Exception):
    """What of a pattern cannot be had; a few words for the end of a sentence."""


def engine_pattern(pattern: str) -> str:
    """``pattern`` rewritten, with ``^`` and ``$`` around it.

    Without them the original is looked for anywhere in the text. Raises `PatternError`.
    """
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"it has more than {MAX_PATTERN} characters")
    reader = _Reader(pattern)
    text = reader.top()
    if reader.size > MAX_COUNT:
        raise PatternError(f"it counts further than {MAX_COUNT}")
    return f"^{text}$"


class _Reader:
    """Recursive descent over one pattern. ``size`` is the most copies of one thing that counts ask for."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0
        self.size = 1

    def top(self) -> str:
        """The whole pattern: alternatives, each with anchors of its own."""
        found = [self._anchored()]
        while self._take("|"):
            found.append(self._anchored())
        if self._at < len(self._text):
            raise PatternError("its brackets do not match")
        return found[0] if len(found) == 1 else f"({'|'.join(found)})"

    def _anchored(self) -> str:
        anywhere = _class(SAFE) + "*"
        start = "" if self._take("^") else anywhere
        text, _ = self._sequence()
        end = "" if self._take("$") else anywhere
        return start + text + end

    def _alternatives(self) -> tuple[str, bool]:
        text, empty = self._sequence()
        found = [text]
        while self._take("|"):
            text, also = self._sequence()
            found.append(text)
            empty = empty or also
        return "|".join(found), empty

    def _sequence(self) -> tuple[str, bool]:
        """Atoms with their counts, and whether all of it may be empty."""
        found: list[str] = []
        empty = True
        while self._at < len(self._text) and self._text[self._at] not in "|)$":
            atom, atom_empty = self._atom()
            count, least = self._count(atom_empty)
            found.append(atom + count)
            empty = empty and (atom_empty or least == 0)
        return "".join(found), empty

    def _atom(self) -> tuple[str, bool]:
        char = self._text[self._at]
        if char == "(":
            return self._group()
        if char == "[":
            return _class(self._brackets()), False
        self._at += 1
        if char == ".":
            return _class(SAFE), False
        if char == "\\":
            return _class(self._escape()), False
        if char in _SPECIAL:
            raise PatternError(f"it has {char!r} where it cannot stand")
        return _class({char}), False

    def _group(self) -> tuple[str, bool]:
        opening = _GROUP.match(self._text, self._at)
        if opening is None:
            raise PatternError("it looks ahead or behind")
        self._at = opening.end()
        self._depth += 1
        if self._depth > 32:
            raise PatternError("its groups nest too deep")
        text, empty = self._alternatives()
        if not self._take(")"):
            raise PatternError("its brackets do not match, or it has an anchor inside")
        self._depth -= 1
        if not text:
            raise PatternError("it has an empty group")
        return f"({text})", empty

    def _count(self, empty: bool) -> tuple[str, int]:
        """What stands behind an atom, and how often the atom is there at least."""
        char = self._text[self._at : self._at + 1]
        if char and char in "*+?":
            self._at += 1
            count, least = char, 1 if char == "+" else 0
        elif char == "{":
            count, least = self._braces()
        else:
            return "", 1
        self._take("?")  # lazy or not, the same texts match
        if self._text[self._at : self._at + 1] in ("*", "+", "{", "?"):
            raise PatternError("it has a count behind a count")
        if empty and count != "?":
            # A grammar has no end of ways to repeat nothing.
            raise PatternError("it repeats something that may be empty")
        return count, least

    def _braces(self) -> tuple[str, int]:
        found = _COUNTED.match(self._text, self._at)
        if found is None or (found[1] is None and found[3] is None):
            raise PatternError("it has a brace that is no count")
        self._at = found.end()
        low = int(found[1] or 0)
        high = int(found[3]) if found[3] else None if found[2] else low
        if high is not None and low > high:
            raise PatternError("it counts to less than it starts from")
        self.size = max(self.size, low, high or 0)
        if high == 0:
            raise PatternError("it counts to nothing")
        return f"{{{low},{'' if high is None else high}}}", low

    def _brackets(self) -> frozenset[str]:
        self._at += 1
        negated = self._take("^")
        chars: set[str] = set()
        while not self._take("]"):
            members = self._member()
            if len(members) == 1 and self._text[self._at : self._at + 1] == "-":
                if self._text[self._at + 1 : self._at + 2] in ("]", ""):
                    chars |= members
                    continue
                self._at += 1
                last = self._member()
                low, high = ord(min(members)), ord(max(last))
                if len(last) != 1 or low > high:
                    raise PatternError("it has a range that is none")
                members = frozenset(map(chr, range(low, min(high, 0x7F) + 1)))
                if not negated and high > 0x7E:
                    raise PatternError("it has characters beyond ASCII")
            chars |= members
        found = SAFE - chars if negated else frozenset(chars)
        if not found:
            raise PatternError("it has a class without characters")
        return found

    def _member(self) -> frozenset[str]:
        if self._at >= len(self._text):
            raise PatternError("its brackets do not match")
        char = self._text[self._at]
        self._at += 1
        return self._escape() if char == "\\" else frozenset(char)

    def _escape(self) -> frozenset[str]:
        """What stands behind a backslash."""
        char = self._text[self._at : self._at + 1]
        self._at += 1
        if char.lower() in _CLASSES and char:
            members = _CLASSES[char.lower()]
            return SAFE - (members | {"\t"}) if char.isupper() else members
        if char in ("x", "u"):
            found = _HEX.match(self._text, self._at - 1)
            if found is None:
                raise PatternError("it has an escape that is none")
            self._at = found.end()
            return frozenset(chr(int(found[1] or found[2], 16)))
        if not char or char.isalnum():
            raise PatternError(f"it has the escape \\{char}" if char else "it ends in a backslash")
        return frozenset(char)

    def _take(self, char: str) -> bool:
        if self._text.startswith(char, self._at) and self._at < len(self._text):
            self._at += 1
            return True
        return False


def _class(chars: frozenset[str] | set[str]) -> str:
    """A class of exactly ``chars``."""
    if not chars <= SAFE:
        raise PatternError("it has characters that JSON text must escape, or beyond ASCII")
    codes = sorted(map(ord, chars))
    starts = [codes[0], *(b for a, b in pairwise(codes) if b != a + 1)]
    ends = [*(a for a, b in pairwise(codes) if b != a + 1), codes[-1]]
    return "[" + "".join(_range(a, b) for a, b in zip(starts, ends, strict=True)) + "]"


def _range(low: int, high: int) -> str:
    if high - low < 2:
        return "".join(map(_char, range(low, high + 1)))
    return f"{_char(low)}-{_char(high)}"


def _char(code: int) -> str:
    char = chr(code)
    return char if char.isalnum() or char in " _.,:;/@#" else f"\\x{code:02X}"
