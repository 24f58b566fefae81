"""Named keys through the real program: made by its command line, used by a client, counted, revoked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.hub import Hub

pytestmark = pytest.mark.engine

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def hub(smollm2: Path) -> Iterator[Hub]:
    """A hub of this module's own: it is killed and started again."""
    with Hub() as running:
        running.add(smollm2)
        running.load()
        yield running


def relaydesk(hub: Hub, *args: str, code: int = 0) -> str:
    """Run the command line against the hub; what it says on stdout."""
    done = subprocess.run(
        [sys.executable, "-m", "relaydesk", *args, "--attach", str(hub.socket)],
        capture_output=True,
        text=True,
        env=hub._env,
        timeout=30,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def ask(hub: Hub, key: str, **fields: Any) -> httpx.Response:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "Count to five."}], **fields}
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(hub.url + CHAT, json=body, headers=headers, timeout=60, trust_env=False)


def used(hub: Hub, name: str) -> int:
    days = hub.command("show-usage", name=name)["days"]
    return sum(day["tokens"] for day in days)


def audited(hub: Hub, name: str) -> dict[str, Any]:
    """The one record of a key. An answer has ended for its client a moment before it is in the audit."""
    deadline = time.monotonic() + 10
    while not (records := hub.command("show-audit", wanted={"key": name})["records"]):
        assert time.monotonic() < deadline, "nothing in the audit"
        time.sleep(0.01)
    (record,) = records
    found: dict[str, Any] = record
    return found


def test_a_keys_life(hub: Hub) -> None:
    secret = relaydesk(hub, "key", "add", "ann", "--tokens-per-day", "100000", "--model", "tiny").strip()
    assert secret.startswith("rk-")
    reply = ask(hub, secret, max_tokens=5, temperature=0)
    assert reply.status_code == 200
    assert used(hub, "ann") == reply.json()["usage"]["total_tokens"]
    listed = json.loads(relaydesk(hub, "key", "list", "--json"))["keys"]
    assert [(key["name"], key["used"] > 0) for key in listed if key["name"] == "ann"] == [("ann", True)]
    assert secret not in relaydesk(hub, "key", "list")
    (record,) = json.loads(relaydesk(hub, "audit", "tail", "--key", "ann", "--json"))["records"]
    assert (record["outcome"], record["machines"]) == ("done", ["host"])
    relaydesk(hub, "key", "rm", "ann", "--yes")
    assert ask(hub, secret).status_code == 401
    assert secret.encode() not in b"".join(
        path.read_bytes() for path in hub.state.rglob("*") if path.is_file()
    )


def test_a_key_names_models_that_there_are(hub: Hub) -> None:
    hub.command("set-model", name="tiny", changes={"aliases": ["small"]})
    made = hub.command("add-key", name="alias", settings={"models": ["small", "tiny:latest"]})
    assert made["models"] == ["tiny"]
    assert ask(hub, made["key"], max_tokens=1).status_code == 200
    refused = hub.refused("add-key", name="typo", settings={"models": ["tyni"]})
    assert (refused["code"], refused["param"]) == ("invalid_request", "models")
    assert hub.refused("set-key", name="alias", settings={"models": ["tyni"]})["param"] == "models"


def test_near_the_end_of_the_day_the_prompt_is_counted_exactly(hub: Hub) -> None:
    secret = relaydesk(hub, "key", "add", "near").strip()
    prompt = ask(hub, secret, max_tokens=1, temperature=0).json()["usage"]["prompt_tokens"]
    spent = used(hub, "near")
    relaydesk(hub, "key", "set", "near", "--tokens-per-day", str(spent + prompt + 3))
    reply = ask(hub, secret, temperature=0)
    assert (reply.status_code, reply.json()["usage"]["completion_tokens"]) == (200, 3)
    assert reply.json()["choices"][0]["finish_reason"] == "length"
    assert used(hub, "near") == spent + prompt + 3
    # One token less than the prompt and one of an answer: refused, and nothing is charged.
    relaydesk(hub, "key", "set", "near", "--tokens-per-day", str(spent + 2 * prompt + 3))
    refused = ask(hub, secret, temperature=0)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "tokens_per_day_exceeded")
    assert refused.headers["x-should-retry"] == "false"
    assert used(hub, "near") == spent + prompt + 3


@pytest.mark.parametrize(
    ("route", "fields"),
    [
        (CHAT, {"messages": [{"role": "user", "content": "Hi"}], "n_predict": 40, "max_tokens": 4}),
        (CHAT, {"messages": [{"role": "user", "content": "Hi"}], "n": 3, "max_tokens": 4}),
        (CHAT, {"messages": [{"role": "user", "content": "Hi"}], "stream": True, "max_tokens": 4}),
        ("/v1/completions", {"prompt": ["One", "Two", "Three"], "max_tokens": 4}),
        ("/api/chat", {"messages": [{"role": "user", "content": "Hi"}], "options": {"num_predict": 4}}),
        ("/api/generate", {"prompt": "Hi", "options": {"num_predict": 4}, "stream": True}),
    ],
    ids=str,
)
def test_no_way_round_a_quota(hub: Hub, route: str, fields: dict[str, Any]) -> None:
    """What a way of asking costs is what the engine says it made."""
    name = f"way-{abs(hash((route, str(fields)))) % 10**9}"
    secret = hub.command("add-key", name=name, settings={"tokens_per_day": 100_000})["key"]
    body = {"model": "tiny", "temperature": 0, **fields}
    if route.startswith("/api"):
        del body["temperature"]
    headers = {"Authorization": f"Bearer {secret}"}
    reply = httpx.post(hub.url + route, json=body, headers=headers, timeout=60, trust_env=False)
    assert reply.status_code == 200, reply.text
    record = audited(hub, name)
    choices = record.get("choices", 1)
    assert record["completion_tokens"] <= 4 * choices
    assert used(hub, name) == record["prompt_tokens"] + record["completion_tokens"]
    assert record["prompt_tokens"] >= choices if route == "/v1/completions" else record["prompt_tokens"] > 4


@pytest.mark.skipif(not hasattr(os, "kill"), reason="needs signals")
def test_a_killed_node_has_lost_nothing_that_was_settled(hub: Hub, smollm2: Path) -> None:
    secret = relaydesk(hub, "key", "add", "kept").strip()
    total = sum(ask(hub, secret, max_tokens=3).json()["usage"]["total_tokens"] for _ in range(3))
    hub.stop(signal.SIGKILL)
    hub.start()
    assert used(hub, "kept") == total
    # The audit is written a moment after the answer: its last line may be lost.
    assert len(hub.command("show-audit", wanted={"key": "kept"})["records"]) >= 2
    hub.load()
    assert ask(hub, secret, max_tokens=1).status_code == 200


def test_two_keys_share_no_prompt_cache(hub: Hub) -> None:
    words = "a shared beginning of a good many words that both of them send, " * 3
    ann, bob = (relaydesk(hub, "key", "add", name).strip() for name in ("cache-a", "cache-b"))
    for _ in range(2):
        first = ask(hub, ann, max_tokens=1, messages=[{"role": "user", "content": words}]).json()
    second = ask(hub, bob, max_tokens=1, messages=[{"role": "user", "content": words}]).json()
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] > 40
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
