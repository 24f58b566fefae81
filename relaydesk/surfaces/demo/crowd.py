"""Clients of a recording: more at once than there are slots, with keys of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from relaydesk.surfaces.demo.client import Client
from relaydesk.surfaces.demo.exchange import KEY
from relaydesk.surfaces.demo.hub import REFERENCE, client_of, model_file, model_name
from relaydesk.surfaces.demo.node import Node
from relaydesk.surfaces.recording import Recording

# More than the model has slots, so that some wait.
CROWD: Final = 7
# And who asks the network at the same moment.
AWAY: Final = 2
# Keys of a recording, beside the default one; their limits are beyond what its clients ask.
KEYS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("ann", {"tokens_per_day": 8_000, "max_concurrency": 4, "requests_per_minute": 20}),
    ("nightly", {"tokens_per_day": 4_000, "max_concurrency": 4, "models": [REFERENCE]}),
)


def crowd(
    node: Node,
    away: tuple[Client, str],
    recording: Recording,
    tokens: int,
    say: Callable[[str], None],
) -> None:
    """Have a crowd ask, and keep what the node then says of models, keys and requests.

    ``away`` is one more client, and the network's model that it asks meanwhile. The hub's own is registered
    once more with settings that take 3 GB: so the recording holds waiting, quotas and, with less memory, a
    model that does not fit.
    """
    model, client = model_name(node), client_of(node)
    path = model_file(node, model)
    large = {"name": f"{model}-long", "path": path, "slots": 16, "ctx": 8192, "source": REFERENCE}
    node.command("add-model", spec=large)
    say(f"recording {CROWD} clients that ask {model} at once")
    keys = {name: node.command("add-key", name=name, settings=given)["key"] for name, given in KEYS}
    clients = (client, *(replace(client, key=key) for key in keys.values()))
    asked = [(clients[at % len(clients)], model) for at in range(CROWD)] + [away] * AWAY
    with ThreadPoolExecutor(len(asked)) as pool:
        waits = [
            pool.submit(asker.chat, name, f"Tell me about relays. {at}", tokens, _nothing)
            for at, (asker, name) in enumerate(asked)
        ]
        for wait in waits:
            wait.result()
    for name in (model, large["name"]):
        recording.keep(f"fit-model {name}", node.command("fit-model", name=name))
    for name in ("default", KEY, *keys):
        recording.keep(f"show-usage {name}", node.command("show-usage", name=name))
    recording.keep("show-audit", node.command("show-audit"))


def _nothing(_text: str) -> None:
    """For answers that nobody reads."""
