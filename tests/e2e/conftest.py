"""One warm hub for the tests that only ask, so that the model is loaded once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hub import Hub


@pytest.fixture(scope="module")
def hub(smollm2: Path) -> Iterator[Hub]:
    with Hub(metrics=True) as running:
        running.add(smollm2)
        running.load()
        yield running
