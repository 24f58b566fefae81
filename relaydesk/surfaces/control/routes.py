"""What both ends of the control socket must agree on. No imports beyond the standard library.

The routes the seed names (``/status``, ``/models``, ``/nodes``, ``/keys``) are for any local tool and carry
no version. ``/watch``, ``/views`` and ``/commands`` are between our own two ends, which compare
`SCHEMA_HEADER`.
"""

from __future__ import annotations

from typing import Final

STATUS: Final = "/status"
MODELS: Final = "/models"
NODES: Final = "/nodes"
KEYS: Final = "/keys"
ROTATE_DEFAULT_KEY: Final = "/keys/default/rotate"
WATCH: Final = "/watch"
VIEWS: Final = "/views"
COMMANDS: Final = "/commands"

# `codec.schema_fingerprint()` of the sender. A sender without it (curl) is let in.
SCHEMA_HEADER: Final = "X-Relaydesk-Schema"
# ``read``: refuse every command that changes the node. The node's side decides, not the front's.
ACCESS_HEADER: Final = "X-Relaydesk-Access"
READ_ONLY: Final = "read"

BODY_LIMIT: Final = 1 << 20
# A silent watch sends an empty line this often, so that each side notices when the other is gone.
KEEPALIVE_S: Final = 10.0
# Bound of one line of a watch: a full view with all its log lines is well under 4 MiB.
LINE_LIMIT: Final = 16 << 20
# The last line of a watch that the node ended is ``{"closed": reason}``.
CLOSED_PREFIX: Final = b'{"closed"'
