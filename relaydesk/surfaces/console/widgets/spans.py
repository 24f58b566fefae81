"""Lines as values: pieces of text, each with the name of a style.

Presenters, bars and charts return these; a widget turns them into what Textual draws. No markup is ever
read, so a name with brackets in it is a name with brackets in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from relaydesk.surfaces.console.widgets.cells import clean, fit, width


class Span(NamedTuple):
    """Text and its tone (`tones.TONES`)."""

    text: str
    tone: str = ""


Line: TypeAlias = tuple[Span, ...]


def line_width(line: Line) -> int:
    """Cells a line takes."""
    return sum(width(span.text) for span in line)


def line_text(line: Line) -> str:
    """What a line says, without its styles."""
    return "".join(span.text for span in line)


def fit_line(line: Line, cells: int) -> Line:
    """Exactly ``cells`` cells: the rest blank, or cut with an ellipsis in the tone of what was cut."""
    left = cells
    spans: list[Span] = []
    for place, span in enumerate(line):
        text = clean(span.text)
        taken = width(text)
        more = any(later.text for later in line[place + 1 :])
        if taken > left or (taken == left and more):
            # An extra character makes `fit` show the cut even where this span alone would just fit.
            spans.append(Span(fit(text + ("x" if taken <= left else ""), left), span.tone))
            left = 0
            break
        if text:
            spans.append(Span(text, span.tone))
        left -= taken
    if left > 0:
        spans.append(Span(" " * left))
    return merge(spans)


def merge(spans: Iterable[Span]) -> Line:
    """Neighbours of one tone as one span; empty ones gone."""
    merged: list[Span] = []
    for span in spans:
        if not span.text:
            continue
        if merged and merged[-1].tone == span.tone:
            merged[-1] = Span(merged[-1].text + span.text, span.tone)
        else:
            merged.append(span)
    return tuple(merged)
