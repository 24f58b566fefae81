"""What the operator said about how the public port is reached."""

from __future__ import annotations

from dataclasses import dataclass, field

from relaydesk.core.access.origins import Origins
from relaydesk.core.tls.names import Network


@dataclass(frozen=True, slots=True)
class Exposure:
    """``prefix`` is the path a proxy mounts the hub at, empty for none; ``hosts`` the names it may be called
    by beside this machine's own, None where it may be called anything; ``proxies`` whose word on the client
    counts; ``open_discovery``: the models may be listed without a key."""

    prefix: str = ""
    origins: Origins = field(default_factory=Origins)
    hosts: frozenset[str] | None = None
    proxies: tuple[Network, ...] = ()
    open_discovery: bool = False
