from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.directory.source import parse_source
from tests.support.directory_world import KEEPER

K = KEEPER.address


@pytest.mark.parametrize(
    ("place", "document", "records"),
    [
        ("https://d.org", "https://d.org/v1/zs/directory", "https://d.org/v1/zs/directory/records"),
        ("https://d.org/x/", "https://d.org/x/v1/zs/directory", "https://d.org/x/v1/zs/directory/records"),
        (
            "https://d.org/v1/zs/directory",
            "https://d.org/v1/zs/directory",
            "https://d.org/v1/zs/directory/records",
        ),
        ("http://127.0.0.1:9/d.json", "http://127.0.0.1:9/d.json", None),
        ("/etc/relaydesk/d@x.json", "/etc/relaydesk/d@x.json", None),
    ],
)
def test_places(place: str, document: str, records: str | None) -> None:
    found = parse_source(f"{K}@{place}")
    assert (found.key, found.place, str(found)) == (K, place, f"{K}@{place}")
    assert found.is_url == place.startswith("http")
    assert (found.document_url, found.records_url) == (document, records)


@pytest.mark.parametrize(
    "text",
    [
        "",
        K,
        f"{K}@",
        f"@{K}",
        f"{K[:-1]}A@/x",
        f"{K.lower()}@/x",
        f"{K}@relative.json",
        f"{K}@ftp://x/y",
        f"{K}@https://u:p@x.org",
        f"{K}@https://x.org?q",
        f"{K}@https://x.org#f",
        f"{K}@https://x.org:99999",
        f"{K}@https://",
        f"{K}@https://ä.org",
        f"{K}@/x\n",
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_source(text)


@given(st.text(max_size=30))
def test_any_place_is_read_or_a_value_error(place: str) -> None:
    try:
        found = parse_source(f"{K}@{place}")
    except ValueError:
        return
    assert parse_source(str(found)) == found
