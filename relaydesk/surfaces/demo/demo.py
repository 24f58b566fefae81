"""The demo, put together: four nodes, what is asked of them, and nothing left of it afterwards."""

from __future__ import annotations

import secrets
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from relaydesk.surfaces.demo.crowd import crowd
from relaydesk.surfaces.demo.exchange import Exchange
from relaydesk.surfaces.demo.guests import Guests
from relaydesk.surfaces.demo.hub import ask_hub, client_of, model_name, pull
from relaydesk.surfaces.demo.network import Network
from relaydesk.surfaces.demo.places import Planted, named_in_log
from relaydesk.surfaces.recording import Recording

# Signals that end the demo in peace.
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Demo:
    """A temporary network. A context manager: its processes and its directory are gone afterwards.

    ``say`` gets whole lines, ``write`` pieces of the answers as they come. ``memory_mb`` is what the client's
    node takes the machine to have for models; 0 is all there is. ``log_level`` is that node's.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        write: Callable[[str], None],
        *,
        memory_mb: int = 0,
        log_level: str = "warning",
    ) -> None:
        self._memory_mb = memory_mb
        self._log_level = log_level
        self._say = say
        self._write = write
        self._planted = Planted(f"planted{secrets.token_hex(8)}")
        self._exchange: Exchange | None = None
        self._recording: Recording | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            folder = Path(tempfile.mkdtemp(prefix="relaydesk-demo-"))
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
            self._network = Network(folder, self._settings)
            self._stack.enter_context(self._network)
            self._client = self._network.open("client")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _undisturbed():
            self._stack.close()
            if self._recording is not None:
                self._recording.__exit__(None, None, None)

    @property
    def socket(self) -> Path:
        """The client's control socket."""
        return self._client.socket

    def hub(self, question: str, tokens: int) -> dict[str, Any]:
        """Fetch the model, chat once over TLS with the hub's CA and key, and say what was seen."""
        return ask_hub(self._client, question, tokens, self._say, self._write)

    def relay(self, tokens: int) -> dict[str, Any]:
        """Offer the model elsewhere, ask for it through a relay, and say what was seen; after `hub`."""
        return self._ready().ask(tokens, self._write)

    def guests(self) -> Guests:
        """Clients that keep asking the model that was fetched, and now and then the network's."""
        own = (client_of(self._client), model_name(self._client))
        exchange = self._ready()
        return Guests(own, own, (exchange.asker, exchange.model))

    def record(self, file: BinaryIO, mono: Callable[[], float], tokens: int) -> None:
        """Write the node's watch to a file from now until it ends, and give it something to do."""
        self._recording = Recording(file, self.socket, mono).__enter__()
        pull(self._client, self._say)
        exchange = self._ready()
        crowd(self._client, (exchange.asker, exchange.model), self._recording, tokens, self._say)

    def _ready(self) -> Exchange:
        """A network in which the model is offered and paid for."""
        if self._exchange is None:
            names = [each.name for each in self._network]
            for name in names:
                if name != "client":
                    self._network.open(name)
            self._say(f"\nfour operators find each other: {', '.join(names)}")
            exchange = Exchange(self._network, self._planted, self._say)
            exchange.offer()
            self._network.settle()
            exchange.buy()
            self._exchange = exchange
        return self._exchange

    def _settings(self, name: str) -> dict[str, str]:
        """What an operator's node has beside what all have."""
        if name == "client":
            memory = {"HOST_MEMORY_MB": str(self._memory_mb)} if self._memory_mb else {}
            return {"LOG_LEVEL": self._log_level, **memory}
        planted = self._planted.address if name == "target" else self._planted.word
        # All that it would ever say is searched.
        return {"LOG_LEVEL": "debug", **named_in_log(planted)}


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Whoever is impatient while processes end does not leave any of them behind."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
