"""The Markdown of our own documents as lines: headings, paragraphs, lists, code, strong words, tables.

Textual's widget makes one widget a block, which stops the loop for longer than a node may stand still. Only
for text that ships with relaydesk; what is no known mark is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from relaydesk.surfaces.console.pieces import Piece
from relaydesk.surfaces.console.widgets.cells import width as cells

Line = tuple[Piece, ...]

_INLINE: Final = re.compile(
    r"`([^`]+)`|\*\*(.+?)\*\*|(?<!\w)\*([^\s*](?:[^*]*[^\s*])?)\*(?!\w)|\[([^\]]+)\]\([^)]*\)"
)
# Emphasis is strong too: terminals that draw italics are few.
_TONES: Final = ("accent", "strong", "strong", "")
_ITEM: Final = re.compile(r"( *)(?:[*+-]|(\d+)\.) +(.*)")
_HEADING: Final = re.compile(r"(#{1,6}) +(.*)")


def lines(text: str, width: int) -> list[Line]:
    """A document in lines of at most ``width`` columns, paragraphs apart by a blank one."""
    made: list[Line] = []
    for block in _blocks(text):
        if made:
            made.append(())
        made += _block(block, width)
    return made


def _blocks(text: str) -> Iterator[list[str]]:
    """Groups of lines that belong together: paragraphs, whole lists, tables, fenced code with its fences."""
    block: list[str] = []
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
            block.append(line)
        elif fenced or line.strip():
            if not fenced and block and _HEADING.match(line):
                yield block
                block = []
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


def _block(block: list[str], width: int) -> list[Line]:
    first = block[0]
    if first.lstrip().startswith("```"):
        return [(Piece("  " + line, "accent"),) for line in block if not line.lstrip().startswith("```")]
    if heading := _HEADING.match(first):
        rest = _block(block[1:], width) if block[1:] else []
        return [
            (Piece(heading[2], "accent" if len(heading[1]) == 1 else "strong"),),
            *([()] if rest else []),
            *rest,
        ]
    if first.lstrip().startswith("|"):
        return _table(block)
    if _ITEM.match(first):
        return [line for item in _items(block) for line in _item(item, width)]
    return _wrap(_words(" ".join(line.strip() for line in block)), width)


def _items(block: list[str]) -> list[str]:
    """A list's items, each on one line with its indent and mark."""
    items: list[str] = []
    for line in block:
        if _ITEM.match(line) or not items:
            items.append(line.rstrip())
        else:
            items[-1] += " " + line.strip()
    return items


def _item(item: str, width: int) -> list[Line]:
    found = _ITEM.match(item)
    if found is None:
        return _wrap(_words(item), width)
    mark = f"{found[1]}{found[2] + '.' if found[2] else '•'} "
    blank = Piece(" " * cells(mark))
    wrapped = _wrap(_words(found[3]), width - cells(mark))
    return [(Piece(mark, "dim") if at == 0 else blank, *line) for at, line in enumerate(wrapped)]


def _table(block: list[str]) -> list[Line]:
    rows = [
        [_plain(cell) for cell in line.strip().strip("|").split("|")]
        for line in block
        if not re.fullmatch(r"[\s|:-]+", line)
    ]
    count = max((len(row) for row in rows), default=0)
    wide = [max(cells(row[at]) for row in rows if at < len(row)) for at in range(count)]
    return [
        tuple(
            Piece(cell + " " * (wide[at] - cells(cell) + 2), "dim" if row is rows[0] else "")
            for at, cell in enumerate(row)
        )
        for row in rows
    ]


def _plain(text: str) -> str:
    return "".join(part for part, _ in _parts(text)).strip()


def _words(text: str) -> list[list[Piece]]:
    """Words, each of one piece or of several that stand together without a space."""
    words: list[list[Piece]] = []
    glued = False
    for part, tone in _parts(text):
        for at, word in enumerate(part.split(" ")):
            glued = glued and not at
            if not word:
                continue
            if glued:
                words[-1].append(Piece(word, tone))
            else:
                words.append([Piece(word, tone)])
            glued = True
    return words


def _parts(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    for found in _INLINE.finditer(text):
        yield text[at : found.start()], ""
        yield next((text, tone) for text, tone in zip(found.groups(), _TONES, strict=True) if text)
        at = found.end()
    yield text[at:], ""


def _wrap(words: list[list[Piece]], width: int) -> list[Line]:
    made: list[Line] = []
    line: list[Piece] = []
    left = width
    for word in words:
        need = sum(piece.width for piece in word)
        if line and need + 1 > left:
            made.append(tuple(line))
            line, left = [], width
        if line:
            line.append(Piece(" "))
            left -= 1
        line += word
        left -= need
    if line:
        made.append(tuple(line))
    return made
