"""A model's file that is broken and mended while the node runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.support.hub import Hub, chat_body

pytestmark = pytest.mark.engine


@pytest.mark.long
def test_a_mended_file_is_noticed_at_once(smollm2: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    shutil.copyfile(smollm2, file)
    with Hub() as hub:
        hub.add(file)
        for broken in (b"", b"GGUF rubbish", smollm2.read_bytes()[:5_000_000]):
            file.write_bytes(broken)
            reply = ask(hub)
            assert reply.status_code == 503
            error = reply.json()["error"]
            assert error["code"] in ("model_unavailable", "model_load_failed")
            assert str(tmp_path) not in error["message"]
            hub.wait_for(lambda view: view.models.value.models[0].state == "unavailable", 10)
        shutil.copyfile(smollm2, file)
        hub.wait_for(lambda _view: ask(hub).status_code == 200, 10)


def ask(hub: Hub) -> httpx.Response:
    return httpx.post(
        f"{hub.url}/v1/chat/completions",
        json=chat_body(max_tokens=2),
        headers=hub.headers(),
        timeout=60,
        trust_env=False,
    )
