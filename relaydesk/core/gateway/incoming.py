"""What is known of a request beside its body."""

from __future__ import annotations

import msgspec

from relaydesk.core.access.caller import Caller


class Incoming(msgspec.Struct, frozen=True):
    """Who asks (``caller``), from which address (``client``, empty where not known), where (``route``).

    ``relay`` and ``tee`` are the values of the two headers about the relay network (`away`), as they came.
    """

    caller: Caller
    route: str
    request_id: str
    client: str = ""
    relay: tuple[str, ...] = ()
    tee: tuple[str, ...] = ()
