"""Engine chunks as a client sees them, and the account that is kept beside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.chat_output import ChatOutput
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.piece import ChoiceStream
from relaydesk.core.gateway.sse import SseParser
from relaydesk.core.gateway.usage import Usage, total_usage

RECORDED = Path(__file__).parent / "recorded"
ME = Identity("abc", "public/name:q4", 1796000000999)
ID = "chatcmpl-abc"


def events(name: str) -> list[bytes]:
    return [event.data for event in SseParser().feed((RECORDED / name).read_bytes())]


class ChunkRewriter:
    """One choice's events through its reader and the output, as a run does it."""

    def __init__(self, identity: Identity, choice: int = 0) -> None:
        self._reader = ChoiceStream()
        self._output = ChatOutput(identity, choices=choice + 1)
        self._choice = choice
        self.tally = self._reader.tally
        self.end = self._reader.end

    @property
    def done(self) -> bool:
        return self._reader.done

    def feed(self, data: bytes, kind: str = "message") -> bytes:
        piece = self._reader.read(data, kind)
        return b"" if piece is None else self._output.piece(self._choice, piece)


def payloads(frames: bytes) -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in SseParser().feed(frames)]


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish, **more.pop("choice", {})}
    return json.dumps({"id": "x", "model": "/m/x.gguf", "choices": [choice], **more}).encode()


@pytest.mark.parametrize("name", ["plain.sse", "logprobs.sse"])
def test_a_recorded_stream(name: str) -> None:
    rewriter = ChunkRewriter(ME, 2)
    seen = payloads(b"".join(rewriter.feed(data) for data in events(name)))
    rewriter.end()
    assert rewriter.done
    assert seen[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    for got in seen:
        assert {k: got[k] for k in got if k != "choices"} == {
            "id": ID,
            "object": "chat.completion.chunk",
            "created": ME.created,
            "model": ME.model,
        }
        assert [c["index"] for c in got["choices"]] == [2]
        assert "role" not in got["choices"][0]["delta"] or got is seen[0]
    said = [json.loads(data)["choices"] for data in events(name) if data != b"[DONE]"]
    engine = [c[0] for c in said if c and ("role" not in c[0]["delta"])]
    ours = [c["choices"][0] for c in seen[1:]]
    for field in ("delta", "finish_reason", "logprobs"):
        assert [c.get(field) for c in ours] == [c.get(field) for c in engine]
    assert seen[-1]["choices"][0]["finish_reason"] in ("stop", "length")


def test_the_account_of_a_recorded_stream() -> None:
    rewriter = ChunkRewriter(ME)
    progress = []
    for data in events("plain.sse"):
        rewriter.feed(data)
        progress.append((rewriter.tally.progress, rewriter.tally.first_token))
    tally = rewriter.tally
    assert (tally.prompt_tokens, tally.cached_tokens, tally.completion_tokens) == (23, 0, 7)
    assert tally.exact and tally.finish_reason == "stop"
    assert progress[0] == ((0, 23), False)
    assert progress[1] == ((23, 23), False)
    assert progress[-1] == ((23, 23), True)


def test_a_stream_that_dies_is_counted_and_is_an_error() -> None:
    rewriter = ChunkRewriter(ME)
    for data in events("plain.sse")[:6]:
        rewriter.feed(data)
    assert rewriter.tally.prompt_tokens == 23
    assert rewriter.tally.completion_tokens == 3
    assert not rewriter.tally.exact
    with pytest.raises(PeerError) as caught:
        rewriter.end()
    assert caught.value.fault.code == "engine_failed"


def test_logprobs_count_tokens_where_a_piece_has_several() -> None:
    rewriter = ChunkRewriter(ME)
    entry = {"token": '"top_logprobs"', "logprob": -1.0, "top_logprobs": []}
    rewriter.feed(chunk({"content": "ab"}, choice={"logprobs": {"content": [entry, entry]}}))
    assert rewriter.tally.completion_tokens == 2


def test_timings_stand_in_for_usage() -> None:
    rewriter = ChunkRewriter(ME)
    rewriter.feed(chunk({"content": "a"}, "stop", timings={"cache_n": 3, "prompt_n": 4, "predicted_n": 9}))
    assert (rewriter.tally.prompt_tokens, rewriter.tally.cached_tokens) == (7, 3)
    assert rewriter.tally.completion_tokens == 9


@pytest.mark.parametrize(
    ("delta", "sent"),
    [
        ({"role": "assistant", "content": "a"}, {"content": "a"}),
        ({"reasoning": "r"}, {"reasoning_content": "r"}),
        ({"reasoning_content": "r", "reasoning": "r"}, {"reasoning_content": "r"}),
        ({"content": "a", "token_ids": [1], "x": "/path"}, {"content": "a"}),
        ({"refusal": "no"}, {"refusal": "no"}),
    ],
)
def test_deltas_of_other_engines(delta: dict[str, Any], sent: dict[str, Any]) -> None:
    rewriter = ChunkRewriter(ME)
    opening, got = payloads(rewriter.feed(chunk(delta)))
    assert opening["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert got["choices"][0]["delta"] == sent


def test_text_is_never_rewritten() -> None:
    rewriter = ChunkRewriter(ME)
    raw = rb'{"choices":[{"delta":{"content":"\u00e9\/\ud83d\ude0a"}}]}'
    assert rb'"delta":{"content":"\u00e9\/\ud83d\ude0a"}' in rewriter.feed(raw)


def test_nothing_to_say_is_nothing_sent_and_no_second_end() -> None:
    rewriter = ChunkRewriter(ME)
    for silent in (
        chunk({"role": "assistant", "content": None}),
        chunk({"content": ""}),
        b'{"choices":[]}',
        b"[DONE]",
    ):
        assert rewriter.feed(silent) == b""
    opening, text, last = payloads(rewriter.feed(chunk({"content": "a"}, "stop")))
    assert [each["choices"][0]["delta"] for each in (text, last)] == [{"content": "a"}, {}]
    assert [each["choices"][0]["finish_reason"] for each in (opening, text, last)] == [None, None, "stop"]
    assert rewriter.feed(chunk({}, "stop")) == b""
    assert not rewriter.tally.cached_tokens


def test_a_chunk_with_null_error_is_a_normal_one() -> None:
    frames = ChunkRewriter(ME).feed(chunk({"content": "a"}, error=None))
    assert b"error" not in frames and b'"content":"a"' in frames


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"error":{"code":500,"message":"boom","type":"server_error"}}', "engine_failed"),
        (b'{"error":"boom"}', "engine_failed"),
        (
            b'{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":4}}',
            "context_length_exceeded",
        ),
        (b'{"choices":[],"error":{"message":"boom"}}', "engine_failed"),
        (b"nonsense", "engine_failed"),
        (b"[]", "engine_failed"),
        (b'{"choices":[{"delta":{"content":3}}]}', "engine_failed"),
        (b'{"choices":[{"delta":{},"logprobs":[]}]}', "engine_failed"),
        (b"[" * 100_000, "engine_failed"),
        (b'{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}', "engine_failed"),
    ],
)
def test_an_engines_error_is_an_error(data: bytes, code: str) -> None:
    with pytest.raises(PeerError) as caught:
        ChunkRewriter(ME).feed(data)
    assert caught.value.fault.code == code


def test_an_error_that_is_an_event_of_its_own() -> None:
    (event,) = SseParser().feed(b'error: {"code":400,"message":"bad grammar"}\n\n')
    with pytest.raises(PeerError, match=r"^bad grammar$") as caught:
        ChunkRewriter(ME).feed(event.data, event.type)
    assert caught.value.fault.code == "engine_rejected"


def test_usage_is_the_last_word() -> None:
    rewriter = ChunkRewriter(ME)
    usage = {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}
    rewriter.feed(
        chunk({"content": "a"}, "stop", usage=usage, timings={"cache_n": 1, "prompt_n": 9, "predicted_n": 7})
    )
    assert (rewriter.tally.prompt_tokens, rewriter.tally.completion_tokens) == (5, 4)


def test_the_usage_chunk() -> None:
    frames = ChatOutput(ME, include_usage=True).close(Usage(3, 4, 7), Spent())
    assert frames.endswith(b"\n\ndata: [DONE]\n\n")
    (got,) = payloads(frames.removesuffix(b"data: [DONE]\n\n"))
    assert got["choices"] == []
    assert got["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert got["model"] == ME.model


def test_usage_over_choices_counts_the_prompt_once() -> None:
    tallies = []
    for cached in (5, 22):
        rewriter = ChunkRewriter(ME)
        details = {"cached_tokens": cached}
        usage = {
            "prompt_tokens": 23,
            "completion_tokens": 8,
            "total_tokens": 31,
            "prompt_tokens_details": details,
        }
        rewriter.feed(json.dumps({"choices": [], "usage": usage}).encode())
        tallies.append(rewriter.tally)
    total = total_usage(tallies)
    assert (total.prompt_tokens, total.completion_tokens, total.total_tokens) == (23, 16, 39)
    assert total.prompt_tokens_details is not None and total.prompt_tokens_details.cached_tokens == 5
    assert total_usage(tallies, cached=False).prompt_tokens_details is None
    assert total_usage([]).total_tokens == 0


def test_usage_that_was_not_asked_for() -> None:
    assert ChatOutput(ME).close(Usage(3, 4, 7), Spent()) == b"data: [DONE]\n\n"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(events("plain.sse") + events("logprobs.sse")), st.data())
def test_mutated_chunks_give_frames_or_an_engine_failure(data: bytes, draw: st.DataObject) -> None:
    if data == b"[DONE]" or draw.draw(st.booleans()):
        damaged = bytearray(data)
        damaged[draw.draw(st.integers(0, len(damaged) - 1))] = draw.draw(st.integers(0, 255))
        data = bytes(damaged)
    else:
        value = json.loads(data)
        target = draw.draw(
            st.sampled_from([value, *value["choices"], *[c["delta"] for c in value["choices"]]])
        )
        keys = [*target, "usage", "timings", "error", "prompt_progress", "tool_calls", "logprobs", "content"]
        target[draw.draw(st.sampled_from(keys))] = draw.draw(VALUES)
        data = json.dumps(value).encode()
    rewriter = ChunkRewriter(ME)
    try:
        frames = rewriter.feed(data)
    except PeerError:
        return
    # A mutation inside a string of the engine's may leave bytes that are no UTF-8: the parser mends those.
    for got in payloads(frames):
        assert got["id"] == ID and got["model"] == ME.model
        assert set(got) == {"id", "object", "created", "model", "choices"}
