"""Who asks: the key that a request presented."""

from __future__ import annotations

import msgspec

from relaydesk.core.access.key import DEFAULT_KEY, KeySpec
from relaydesk.core.errors import PeerError
from relaydesk.core.text import safe_text


class Caller(msgspec.Struct, frozen=True):
    """The key of a request: ``name`` for people, ``id`` for the books; the default key has no ``spec``.

    ``network`` says whether the default key may use the relay network: a setting, not a specification.
    """

    name: str
    id: str
    spec: KeySpec | None = None
    network: bool = False

    @property
    def may_network(self) -> bool:
        """Whether this key may ask models of the relay network, and see that there are any."""
        return self.network if self.spec is None else self.spec.network

    def allows(self, model: str) -> bool:
        """Whether this key may use, and see, a registered model or ``net/<id>``, if it may the network."""
        return self.spec is None or self.spec.allows(model)


def unknown_model(requested: str) -> PeerError:
    """The refusal of a model's name that means nothing to who asks.

    The same words for one that the key may not use: what exists is not a key's to find out.
    """
    return PeerError(
        "model_not_found",
        f"model {safe_text(requested, 128)!r} not found",
        "GET /v1/models and GET /api/tags list the models there are",
        param="model",
    )


DEFAULT_CALLER = Caller(DEFAULT_KEY, DEFAULT_KEY)
# Who lists models without a key, where the operator lets them.
NOBODY = Caller("", "")
