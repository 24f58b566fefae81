"""Engine chunks as lines of Ollama's dialect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.ollama.output import OllamaOutput, chat_said, generate_said
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.piece import ChoiceStream, Piece
from relaydesk.core.gateway.sse import SseParser
from relaydesk.core.gateway.usage import total_usage

RECORDED = Path(__file__).parent.parent / "recorded"
ME = Identity("abc", "public/name:q4", 1_796_000_000_999)
SPENT = Spent(total=9_000_000_001, load=2_000_000_000, prompt=3_000_000_000, answer=4)


def events(name: str) -> list[bytes]:
    return [event.data for event in SseParser().feed((RECORDED / name).read_bytes())]


def both(chunks: list[bytes], said: Any = chat_said) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The same engine's answer, streamed and whole."""
    reader, output = ChoiceStream(), OllamaOutput(ME, said)
    answer, out = Answer(), b""
    for data in chunks:
        piece = reader.read(data)
        if piece is not None:
            out += output.piece(0, piece)
            answer.add(piece)
    reader.end()
    usage = total_usage([reader.tally])
    out += output.close(usage, SPENT)
    assert out.endswith(b"\n") and b"\n\n" not in out
    whole = OllamaOutput(ME, said).whole([answer], usage, SPENT)
    return [json.loads(line) for line in out.splitlines()], json.loads(whole)


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish, **more}
    return json.dumps({"id": "x", "model": "/m/x.gguf", "choices": [choice]}).encode()


@pytest.mark.parametrize("name", ["plain.sse", "logprobs.sse"])
@pytest.mark.parametrize("said", [chat_said, generate_said])
def test_a_recorded_stream(name: str, said: Any) -> None:
    lines, whole = both(events(name), said)
    for line in lines:
        assert line["model"] == "public/name:q4"
        assert line["created_at"] == "2026-11-30T00:53:20.999+00:00"
        assert "error" not in line and "type" not in line
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    if said is chat_said:
        assert all(line["message"]["role"] == "assistant" for line in lines)
        texts = [line["message"]["content"] for line in lines]
        assert whole["message"]["content"] == "".join(texts)
    else:
        assert not any("message" in line for line in lines)
        texts = [line["response"] for line in lines]
        assert whole["response"] == "".join(texts)
    assert texts[:3] == ["Hello", " with", " an"] and texts[-1] == ""
    last = lines[-1]
    assert {key: last[key] for key in last if key not in ("message", "response")} == {
        "model": "public/name:q4",
        "created_at": "2026-11-30T00:53:20.999+00:00",
        "done": True,
        "done_reason": "stop" if name == "plain.sse" else "length",
        "total_duration": 9_000_000_001,
        "load_duration": 2_000_000_000,
        "prompt_eval_count": 23,
        "prompt_eval_cached_count": 0,
        "prompt_eval_duration": 3_000_000_000,
        "eval_count": 7 if name == "plain.sse" else 3,
        "eval_duration": 4,
    }
    assert {key: whole[key] for key in last if key not in ("message", "response")} == {
        key: last[key] for key in last if key not in ("message", "response")
    }


def test_logprobs_are_a_list_of_tokens() -> None:
    lines, whole = both(events("logprobs.sse"))
    tokens = [token for line in lines for token in line.get("logprobs", ())]
    assert [token["token"] for token in tokens] == ["Hello", " with", " an"]
    assert tokens[0]["logprob"] == -1.5679905414581299
    assert tokens[0]["top_logprobs"][0]["token"] == "Hello"
    assert whole["logprobs"] == tokens


def test_thinking_stands_beside_the_text() -> None:
    chunks = [chunk({"reasoning_content": "hm"}), chunk({"content": "a"}), chunk({}, "stop")]
    lines, whole = both(chunks)
    assert [line["message"] for line in lines] == [
        {"role": "assistant", "content": "", "thinking": "hm"},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": ""},
    ]
    assert whole["message"] == {"role": "assistant", "content": "a", "thinking": "hm"}
    lines, whole = both(chunks, generate_said)
    assert (lines[0]["response"], lines[0]["thinking"]) == ("", "hm")
    assert (whole["response"], whole["thinking"]) == ("a", "hm")


def test_a_tool_call_is_whole_and_the_answer_ends_with_stop() -> None:
    function = {"name": "f", "arguments": '{"x":'}
    lines, whole = both(
        [
            chunk({"content": "so"}),
            chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}),
            chunk({}, "tool_calls"),
        ]
    )
    call = {"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}}
    assert [line["message"].get("tool_calls") for line in lines] == [None, [call], None]
    assert lines[1]["message"]["content"] == ""
    assert lines[1]["done"] is False
    assert lines[2]["done_reason"] == whole["done_reason"] == "stop"
    assert whole["message"] == {"role": "assistant", "content": "so", "tool_calls": [call]}


def test_a_half_written_call_at_the_limit_is_left_out() -> None:
    delta = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"x":'}}]}
    lines, whole = both([chunk(delta), chunk({}, "length")])
    assert len(lines) == 1
    assert lines[0]["done_reason"] == whole["done_reason"] == "length"
    assert "tool_calls" not in whole["message"]


def test_a_refusal_is_text() -> None:
    lines, whole = both([chunk({"refusal": "no"}), chunk({"content": "a", "refusal": "b"}, "content_filter")])
    assert [line["message"]["content"] for line in lines] == ["no", "ab", ""]
    assert whole["done_reason"] == "stop"


def test_text_is_never_rewritten() -> None:
    output = OllamaOutput(ME, chat_said)
    assert rb'"content":"\u00e9\/\ud83d\ude0a"}' in output.piece(0, Piece(content=rb'"\u00e9\/\ud83d\ude0a"'))


def test_a_heartbeat_is_a_line_like_any_other() -> None:
    for said, text in ((chat_said, "message"), (generate_said, "response")):
        beat = OllamaOutput(ME, said).heartbeat
        assert beat.endswith(b"\n")
        line = json.loads(beat)
        assert line["done"] is False
        assert line[text] in ("", {"role": "assistant", "content": ""})


def test_an_error_is_one_line_and_nothing_else() -> None:
    line = OllamaOutput(ME, chat_said).error(Fault("engine_failed", "it broke", "ask again"))
    assert line == b'{"error":"it broke: ask again"}\n'


@pytest.mark.parametrize("reason", ["load", "unload"])
def test_where_no_model_spoke(reason: str) -> None:
    output = OllamaOutput(ME, generate_said, reason)
    streamed = output.close(total_usage([]), SPENT)
    assert streamed == output.whole([], total_usage([]), SPENT)
    assert json.loads(streamed) == {
        "model": "public/name:q4",
        "created_at": "2026-11-30T00:53:20.999+00:00",
        "response": "",
        "done": True,
        "done_reason": reason,
        "total_duration": 9_000_000_001,
        "load_duration": 2_000_000_000,
    }


def test_without_the_engines_cache_nothing_is_said_of_it_and_no_duration_is_zero() -> None:
    last = json.loads(OllamaOutput(ME, chat_said).close(total_usage([], cached=False), Spent()))
    assert "prompt_eval_cached_count" not in last
    assert last["prompt_eval_duration"] == last["eval_duration"] == 1


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner)),
    max_leaves=6,
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": st.one_of(st.none(), st.text(max_size=9)),
        "reasoning_content": st.text(max_size=9),
        "refusal": st.text(max_size=9),
        "tool_calls": st.lists(
            st.fixed_dictionaries(
                {"index": st.integers(0, 2)},
                optional={
                    "id": st.sampled_from(["a", "b", "c"]),
                    "function": st.fixed_dictionaries(
                        {},
                        optional={
                            "name": st.sampled_from(["f", "g"]),
                            "arguments": st.one_of(st.sampled_from(['{"x":', "1}", "{}", ""]), JSON),
                        },
                    ),
                },
            ),
            max_size=2,
        ),
    },
)


@settings(max_examples=120)
@given(
    st.lists(
        st.builds(
            chunk,
            DELTAS,
            st.sampled_from([None, None, "stop", "length", "tool_calls"]),
            logprobs=st.one_of(st.none(), JSON, st.builds(lambda tokens: {"content": tokens}, JSON)),
        ),
        max_size=6,
    ),
    st.sampled_from([chat_said, generate_said]),
)
def test_whatever_an_engine_says_is_lines_or_an_error(chunks: list[bytes], said: Any) -> None:
    try:
        lines, whole = both(chunks, said)
    except PeerError as error:
        code = error.fault.code
        assert code == "engine_failed"
        return
    for line in (*lines, whole):
        text = line["message"]["content"] if said is chat_said else line["response"]
        assert isinstance(text, str)
        assert "error" not in line
        for call in line.get("message", {}).get("tool_calls", ()):
            assert isinstance(call["function"]["arguments"], dict)
        assert isinstance(line.get("logprobs", []), list)
    streamed = [call for line in lines for call in line.get("message", {}).get("tool_calls", ())]
    assert streamed == whole.get("message", {}).get("tool_calls", [])
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
