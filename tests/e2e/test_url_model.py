"""A model on another server: here another hub, over its own TLS-less loopback port, with its key."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.support.hub import Hub, chat_body

pytestmark = pytest.mark.engine


def test_a_hub_in_front_of_a_hub(hub: Hub) -> None:
    with Hub() as front:
        spec = {"name": "far", "kind": "url", "url": hub.url, "url_model": "tiny"}
        front.command("add-model", spec=spec, url_key=hub.key)
        secrets = [path for path in (front.state / "secrets").iterdir() if path.name.startswith("url_")]
        assert [path.read_text() for path in secrets] == [hub.key]
        with httpx.Client(base_url=front.url, headers=front.headers(), timeout=60, trust_env=False) as http:
            entry = http.get("/v1/models/far").json()
            assert (entry["placement"], entry["fits"]) == ("server", True)
            near = httpx.post(
                f"{hub.url}/v1/chat/completions",
                json=chat_body(model="tiny"),
                headers=hub.headers(),
                timeout=60,
                trust_env=False,
            ).json()
            far = http.post("/v1/chat/completions", json=chat_body(model="far")).json()
            assert far["model"] == "far"
            assert far["choices"] == near["choices"]
            assert far["usage"]["completion_tokens"] == near["usage"]["completion_tokens"]
            # Its prompt cache is its own business.
            assert "prompt_tokens_details" not in far["usage"]
            with http.stream("POST", "/v1/chat/completions", json=chat_body(stream=True)) as reply:
                lines = [line for line in reply.iter_lines() if line.startswith("data: ")]
            assert lines[-1] == "data: [DONE]"
            text = "".join(
                choice["delta"].get("content") or ""
                for line in lines[:-1]
                for choice in json.loads(line[6:])["choices"]
            )
            assert text == near["choices"][0]["message"]["content"]
        front.command("remove-model", name="far")
        assert not any(path.exists() for path in secrets)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    del tmp_path
    with Hub() as front:
        front.command("add-model", spec={"name": "far", "kind": "url", "url": "http://127.0.0.1:9"})
        reply = httpx.post(
            f"{front.url}/v1/chat/completions",
            json=chat_body(),
            headers=front.headers(),
            timeout=60,
            trust_env=False,
        )
        assert reply.status_code == 503
        error = reply.json()["error"]
        assert error["code"] == "model_load_failed"
        assert "does not answer" in error["message"]
