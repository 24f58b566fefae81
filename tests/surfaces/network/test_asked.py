from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.surfaces.network.asked import place_of


@pytest.mark.parametrize(
    ("path", "prefix", "place"),
    [
        ("/v1/zs/relay", "", "/v1/zs/relay"),
        ("/v1/zs/relay/", "", "/v1/zs/relay"),
        ("//v1///zs/relay//", "", "/v1/zs/relay"),
        ("/a/v1/zs/relay", "/a", "/v1/zs/relay"),
        ("/v1/zs/relay", "/a", "/v1/zs/relay"),
        ("/ab/v1/zs/relay", "/a", "/ab/v1/zs/relay"),
        ("/a/b/v1/x", "/a/b", "/v1/x"),
        ("/a", "/a", "/"),
        ("/", "/a", "/"),
        ("", "", "/"),
        ("*", "", "*"),
        ("/v1/zs/%72elay", "", "/v1/zs/relay"),
        ("/v1/zs%2Frelay", "", "/v1/zs/relay"),
        ("/%61/v1%2fzs%2F%2Frelay/", "/a", "/v1/zs/relay"),
        ("/v1/zs/relay%2Fx", "", "/v1/zs/relay%2Fx"),
        ("/v1/models/a%2Fb", "", "/v1/models/a%2Fb"),
        ("/v1/%zs%", "", "/v1/%zs%"),
    ],
)
def test_the_path_that_routes_have(path: str, prefix: str, place: str) -> None:
    assert place_of(path, prefix) == place


@given(st.text(alphabet="/ab", max_size=12), st.sampled_from(["", "/a", "/a/b"]))
def test_a_slash_more_changes_nothing(path: str, prefix: str) -> None:
    place = place_of("/" + path, prefix)
    assert place == place_of("/" + path.replace("/", "//") + "/", prefix)
    assert "//" not in place
    assert place == "/" or not place.endswith("/")
