"""What client libraries are tried against: one hub on TLS with a real model and a scripted server."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from relaydesk.core.view.sections import RequestView
from tests.clients.scripted_server import ScriptedServer
from tests.support.hub import Hub

# Named keys, each at one of its limits or soon there.
KEYS = {"spent": {"tokens_per_day": 1}, "single": {"max_concurrency": 1}}
SLASHED = "hf.co/someone/Tiny-GGUF:Q4_1"


def key_of(hub: Hub, name: str, **settings: int) -> str:
    """The secret of a new named key."""
    secret: str = hub.command("add-key", name=name, settings=settings)["key"]
    return secret


class ClientRig:
    """A running hub with the models ``tiny`` (real, loaded), ``small``, ``scripted``, ``big`` and ``absent``.

    ``small`` is ``tiny`` with a context of 256 tokens, ``big`` needs more memory than there is, ``absent`` is
    a server that does not answer. `SLASHED` is an alias of ``tiny``.
    """

    def __init__(self, model: Path) -> None:
        self._model = model
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.server = stack.enter_context(ScriptedServer())
            hub = self.hub = stack.enter_context(Hub(tls=True, heartbeat="1s", host_memory_mb="2000"))
            hub.add(self._model, aliases=[SLASHED])
            hub.add(self._model, name="small", ctx=256, slots=1)
            hub.add(self._model, name="big", ctx=8192, slots=32)
            for name, url in (("scripted", self.server.url), ("absent", "http://127.0.0.1:9")):
                hub.command("add-model", spec={"name": name, "kind": "url", "url": url})
            hub.load()
            self.keys = {name: key_of(hub, name, **settings) for name, settings in KEYS.items()}
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def environment(self) -> dict[str, str]:
        """What a script needs to reach the hub; the CA as every Node program takes it (report B34)."""
        return {
            "HUB_URL": self.hub.url,
            "HUB_KEY": self.hub.key,
            "SLASHED": SLASHED,
            **{f"HUB_KEY_{name.upper()}": secret for name, secret in self.keys.items()},
            "NODE_EXTRA_CA_CERTS": str(self.hub.ca),
        }

    def request(self, request_id: str) -> RequestView:
        """The record of a request that has ended, by the id its client gave it."""

        def found(view: Any) -> Any:
            return next((r for r in view.requests.value.recent if r.id == request_id and r.status), None)

        record: RequestView = found(self.hub.wait_for(found, 5))
        return record
