"""``relaydesk model``: the verbs that look after models."""

from __future__ import annotations

from typing import Final

import click

from relaydesk.surfaces.cli.lazy import LazyGroup, Verb

_HERE: Final = "relaydesk.surfaces.cli.model"
VERBS: Final = (
    Verb("pull", f"{_HERE}.pull:pull", "fetch a model and register it"),
    Verb("add", f"{_HERE}.add:add", "register a model file in place, or another server"),
    Verb("discover", f"{_HERE}.discover:discover", "files of other programs that can be added in place"),
    Verb("list", f"{_HERE}.listing:listing", "all models and the memory they compete for"),
    Verb("fit", f"{_HERE}.fit:fit", "what a model needs, what there is, and what would make it fit"),
    Verb("load", f"{_HERE}.load:load", "load a model now"),
    Verb("unload", f"{_HERE}.load:unload", "unload a model once its requests have ended"),
    Verb("set", f"{_HERE}.edit:edit", "change how a model is run"),
    Verb("rm", f"{_HERE}.edit:remove", "forget a model"),
)


@click.group(cls=LazyGroup, verbs=VERBS)
def model() -> None:
    """Models: fetching, adding, looking at, loading, changing and forgetting them."""
