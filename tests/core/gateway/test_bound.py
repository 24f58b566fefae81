"""The bound is never below what a tokenizer makes of a prompt."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.gateway.bound import (
    IMAGE_TOKENS,
    LONGEST_TOKEN,
    chat_bound,
    chat_floor,
    completion_bound,
    template_bound,
    text_floor,
)
from relaydesk.core.gateway.completions.request import parse_completion
from relaydesk.core.gateway.request import parse_chat

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PIXEL = "data:image/png;base64,AAAA"


def chat(*messages: Any, **fields: Any) -> int:
    return chat_bound(parse_chat(json.dumps({"messages": list(messages), **fields}).encode()))


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4), st.booleans())
def test_a_chat_has_at_most_as_many_tokens_as_bytes(texts: list[str], ascii_only: bool) -> None:
    messages = [{"role": "user", "content": text} for text in texts]
    body = json.dumps({"messages": messages}, ensure_ascii=ascii_only).encode()
    # Roles and marks of each message come to some tokens too.
    least = sum(len(text.encode()) for text in texts) + 8 * len(texts)
    assert chat_bound(parse_chat(body)) >= least


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4))
def test_prompts_add_up(texts: list[str]) -> None:
    request = parse_completion(json.dumps({"prompt": texts}).encode())
    assert completion_bound(request) >= sum(len(text.encode()) + 1 for text in texts)
    ids = parse_completion(json.dumps({"prompt": [list(range(50))]}).encode())
    assert completion_bound(ids) >= 50


def test_tools_and_images_count() -> None:
    said = {"role": "user", "content": "Hi"}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    plain = chat(said)
    indented = json.dumps([tool], indent=4)
    assert chat(said, tools=[tool]) - plain >= len(indented) - len(json.dumps(said))
    picture = {"type": "image_url", "image_url": {"url": PIXEL}}
    assert chat({"role": "user", "content": [picture, picture]}) >= 2 * IMAGE_TOKENS
    assert plain < IMAGE_TOKENS


def test_a_template() -> None:
    assert template_bound(0) == template_bound(5) > 0
    assert template_bound(50_000) == 50_000


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), st.booleans())
def test_a_floor_is_below_every_count(piece: str, ascii_only: bool) -> None:
    text = piece * 20_000
    body = json.dumps({"messages": [{"role": "user", "content": text}]}, ensure_ascii=ascii_only).encode()
    assert chat_floor(parse_chat(body)) * LONGEST_TOKEN <= len(text.encode())


def test_a_very_long_prompt_has_a_floor_and_an_image_none() -> None:
    long = "word " * 200_000
    said = {"role": "user", "content": long}
    assert chat_floor(parse_chat(json.dumps({"messages": [said]}).encode())) > 900
    picture = {"type": "image_url", "image_url": {"url": PIXEL + "A" * 1_000_000}}
    shown = {"role": "user", "content": [picture]}
    assert chat_floor(parse_chat(json.dumps({"messages": [shown]}).encode())) == 0
    assert text_floor(b'"short"') == 0
