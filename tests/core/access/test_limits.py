from __future__ import annotations

from typing import Any

import pytest

from relaydesk.core.access.limits import MOST, check_limit
from relaydesk.core.errors import LocalError


@pytest.mark.parametrize("value", [0, 1, MOST])
def test_what_a_limit_can_be(value: int) -> None:
    assert check_limit("max_concurrency", value) == value


@pytest.mark.parametrize("value", [-1, MOST + 1, 10**400, 1.5, "3", True, None])
def test_what_it_cannot_be_is_refused_by_name(value: Any) -> None:
    with pytest.raises(LocalError) as caught:
        check_limit("max_concurrency", value)
    assert caught.value.fault.param == "max_concurrency"
    assert len(caught.value.fault.sentence) < 120
