"""From the seed's ``/models`` routes to commands: what a body may say."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from relaydesk.core.codec import convert
from relaydesk.core.commands import AddModel, Command, PullModel, RemoveModel, SetModel
from relaydesk.core.errors import LocalError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.surfaces.control.answers import refuse_unknown, text_field

# What relaydesk itself writes into a registration. `owned` decides whether a file may be deleted.
_OURS: Final = frozenset({"owned", "source", "size_bytes", "sha256", "added_ms"})
_FIELDS: Final = frozenset(ModelSpec.__struct_fields__) - _OURS


def to_add(body: dict[str, Any]) -> Command:
    """``POST /models``: register a ``path`` or ``url`` in place, or pull a ``reference``.

    Raises `LocalError` ``invalid_request``.
    """
    given = [name for name in ("path", "url", "reference") if body.get(name)]
    if len(given) != 1:
        raise LocalError(
            "invalid_request",
            f"a model comes from one place and the body names {' and '.join(given) or 'none'}",
            "give a path, a url or a reference",
        )
    if given == ["reference"]:
        refuse_unknown(body, _FIELDS - {"path", "url"} | {"reference"}, "a model to pull")
        changes = {name: value for name, value in body.items() if name not in ("reference", "name")}
        return PullModel(text_field(body, "reference"), text_field(body, "name"), changes)
    refuse_unknown(body, _FIELDS, "a model")
    try:
        # Without a name the node takes one from the file.
        return AddModel(convert({"name": "", **body}, ModelSpec))
    except msgspec.ValidationError as error:
        raise LocalError("invalid_request", f"the model cannot be read: {error}") from None


def to_set(path_name: str, body: dict[str, Any]) -> Command:
    """``PATCH /models[/NAME]``: fields to change. Raises `LocalError` ``invalid_request``."""
    name = _named(path_name, body)
    refuse_unknown(body, _FIELDS, "a model")
    changes = {field: value for field, value in body.items() if field != "name"}
    if not changes:
        raise LocalError("invalid_request", "the body changes nothing", "give at least one field to change")
    return SetModel(name, changes)


def to_remove(path_name: str, body: dict[str, Any]) -> Command:
    """``DELETE /models[/NAME]``. Raises `LocalError` ``invalid_request``."""
    refuse_unknown(body, frozenset({"name"}), "a model to remove")
    return RemoveModel(_named(path_name, body))


def _named(path_name: str, body: dict[str, Any]) -> str:
    in_body = text_field(body, "name")
    if path_name and in_body and path_name != in_body:
        raise LocalError(
            "invalid_request", "the path names one model and the body another", "a model is not renamed"
        )
    name = path_name or in_body
    if not name:
        raise LocalError("invalid_request", "no model is named", "give its name in the path or the body")
    return name
