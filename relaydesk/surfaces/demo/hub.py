"""The demo's hub: a model is fetched, and asked over TLS with the hub's CA and key."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, Final

from relaydesk.core.text import safe_text
from relaydesk.surfaces.demo.client import Client
from relaydesk.surfaces.demo.node import Node

REFERENCE: Final = "smollm2"


def pull(node: Node, say: Callable[[str], None]) -> None:
    """Fetch the model, or take what was fetched before."""
    job = node.command("pull-model", reference=REFERENCE)
    node.follow(job, lambda note, percent: say(f"{REFERENCE}: {note} {percent} %"))


def client_of(node: Node) -> Client:
    """A client with the address, the default key and the CA of a node."""
    context = ssl.create_default_context(cafile=str(node.state / "tls" / "ca.pem"))
    return Client(node.url, context, node.command("show-default-key")["key"])


def model_name(node: Node) -> str:
    """The model that was fetched."""
    return str(node.status()["models"][0]["name"])


def model_file(node: Node, name: str) -> str:
    """Where the model's file is, as an edit that changes nothing says."""
    return str(node.command("set-model", name=name, changes={})["spec"]["path"])


def ask_hub(
    node: Node, question: str, tokens: int, say: Callable[[str], None], write: Callable[[str], None]
) -> dict[str, Any]:
    """Fetch the model, chat once, and say what was seen; ``write`` gets pieces of the answer."""
    status = node.status()
    url = str(status["listening"][0])
    say(f"node {status['node']} listens on {url}, CA {status['fingerprint'][:11]}…")
    pull(node, say)
    model, client = model_name(node), client_of(node)
    say(f"asking {model}: {question}\n")
    chat = client.chat(model, question, tokens, write)
    usage = chat.usage
    record = node.command("show-request", id=chat.request_id)
    say(
        f"\n\n{usage['completion_tokens']} tokens at {record['tokens_per_s']} tokens/s; load "
        f"{record['load_ms']} ms, first token {record['first_token_ms']} ms\nrequest {chat.request_id}"
    )
    refused = client.wrong_key()
    say(f"a wrong key is refused with {refused}")
    return {
        "ok": bool(chat.text.strip()) and usage["completion_tokens"] > 0 and refused == 401,
        "model": model,
        "tokens": usage["completion_tokens"],
        "prompt_tokens": usage["prompt_tokens"],
        "tokens_per_s": record["tokens_per_s"],
        "first_token_ms": record["first_token_ms"],
        "tls": url.startswith("https"),
        "wrong_key_status": refused,
        "answer": safe_text(chat.text, 2000),
    }
