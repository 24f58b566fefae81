from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relaydesk.core.commands import Command
from relaydesk.core.errors import LocalError
from relaydesk.surfaces.control import keys


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: keys.to_add({"name": "a", "colour": 1}), "colour"),
        (lambda: keys.to_add({"name": 5}), "name must be a string"),
        (lambda: keys.to_set("a", {}), "changes nothing"),
        (lambda: keys.to_set("a", {"name": "b", "in_path": True}), "different keys"),
        (lambda: keys.to_remove("a", {"tokens_per_day": 1}), "tokens_per_day"),
    ],
)
def test_bodies_that_cannot_be(made: Callable[[], Command], sentence: str) -> None:
    with pytest.raises(LocalError) as caught:
        made()
    assert sentence in caught.value.fault.sentence


def test_the_path_and_the_body_may_both_name_the_key() -> None:
    body: dict[str, Any] = {"name": "a", "max_concurrency": 1}
    assert keys.to_set("a", body) == keys.to_set("", body)
