"""Remedies as a program finds them in what a check printed, and as a careful operator applies them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_FENCE: Final = re.compile(r"^```(?P<language>\w+) (?P<what>remove|add)\n(?P<text>.*?)\n```$", re.M | re.S)
_WHERE: Final = re.compile(
    r"^\w+: add in (?P<where>.+) \((?P<mark>tested|outside the tested matrix)\):$", re.M
)
_MARK: Final = re.compile(r"\((?:\w+: )?(tested|outside the tested matrix)\)")


class Parsed(NamedTuple):
    """``remove`` are beginnings of lines, ``add`` lines and ``where`` they go."""

    remove: tuple[str, ...]
    add: str
    where: str
    tested: bool


def parsed(remedy: str) -> Parsed:
    """What a remedy asks for."""
    blocks = {found["what"]: found["text"] for found in _FENCE.finditer(remedy)}
    where = _WHERE.search(remedy)
    mark = _MARK.search(remedy)
    assert mark is not None, remedy
    assert (where is not None) == ("add" in blocks), remedy
    return Parsed(
        tuple(blocks.get("remove", "").splitlines()),
        blocks.get("add", ""),
        where["where"] if where is not None else "",
        mark[1] == "tested",
    )


def mended(config: str, remedy: str, places: Mapping[str, str]) -> str:
    """The configuration after it. ``places``: where text goes, and the line behind which that is."""
    wanted = parsed(remedy)
    assert wanted.remove or wanted.add, f"this remedy changes nothing:\n{remedy}"
    lines = _without(config.splitlines(), wanted.remove)
    fresh = wanted.add.splitlines()
    # Two findings may ask for the same.
    if fresh and "\n".join(each.strip() for each in fresh) not in "\n".join(each.strip() for each in lines):
        assert wanted.where in places, (wanted.where, tuple(places))
        mark = places[wanted.where]
        at = next((n + 1 for n, line in enumerate(lines) if line.strip().startswith(mark)), None)
        assert at is not None, f"no line begins with {mark!r}:\n{config}"
        lines[at if mark else 1 : at if mark else 1] = fresh
    return "\n".join(lines) + "\n"


def _without(lines: list[str], beginnings: tuple[str, ...]) -> list[str]:
    """Without the lines that begin so; one that opens a block goes with all of it."""
    kept: list[str] = []
    depth = 0
    beginnings = tuple(each.lower() for each in beginnings)
    for line in lines:
        opened = line.count("{") - line.count("}")
        if depth:
            depth += opened
        elif beginnings and line.strip().lower().startswith(beginnings):
            depth = max(0, opened)
        else:
            kept.append(line)
    return kept
