from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.gateway.paths import Paths, bare_segments

ROUTES = (
    "/",
    "/healthz",
    "/health",
    "/v1/health",
    "/v1/models",
    "/v1/models/{id}",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/messages",
    "/api/tags",
    "/api/chat",
)
BARE = bare_segments(ROUTES)
PLAIN = Paths("", BARE)
MOUNTED = Paths("/at/home", BARE)


def test_what_may_stand_without_v1_follows_from_the_routes() -> None:
    # /health has a route of its own, /api is the other base.
    assert sorted(BARE) == ["chat", "completions", "embeddings", "messages", "models"]


@pytest.mark.parametrize(
    ("given_", "meant"),
    [
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/chat/completions/", "/v1/chat/completions"),
        ("//v1/chat/completions", "/v1/chat/completions"),
        ("/v1//chat///completions//", "/v1/chat/completions"),
        ("/v1/v1/chat/completions", "/v1/chat/completions"),
        ("/api/v1/chat/completions", "/v1/chat/completions"),
        ("/api/v1/v1/models", "/v1/models"),
        ("/chat/completions", "/v1/chat/completions"),
        ("/completions/", "/v1/completions"),
        ("/models", "/v1/models"),
        ("//models/", "/v1/models"),
        ("/embeddings", "/v1/embeddings"),
        ("/messages", "/v1/messages"),
        ("/api/api/tags", "/api/tags"),
        ("/v1/api/tags", "/api/tags"),
        ("/api/tags/", "/api/tags"),
        ("/", "/"),
        ("", "/"),
        ("//", "/"),
        ("/v1", "/v1"),
        ("/api/", "/api"),
        ("/health", "/health"),
        ("/v1/health/", "/v1/health"),
        # An id keeps its slashes, but for those that a join put around it.
        ("/v1/models/org/name:tag", "/v1/models/org/name:tag"),
        ("/v1/models/a//b", "/v1/models/a//b"),
        ("/v1/models//a//b//", "/v1/models/a//b"),
        ("/models/v1/api", "/v1/models/v1/api"),
        ("/v1/models/hf.co%2Fu%2FR", "/v1/models/hf.co%2Fu%2FR"),
        # What looks like a route and is none stays none.
        ("/v1%2Fmodels", "/v1%2Fmodels"),
        ("/V1/models", "/V1/models"),
        ("/v2/models", "/v2/models"),
        ("/tags", "/tags"),
        ("/healthz%2F", "/healthz%2F"),
        ("/../healthz", "/../healthz"),
        ("*", "/*"),
    ],
)
def test_what_a_path_means(given_: str, meant: str) -> None:
    assert PLAIN.canonical(given_) == meant


@pytest.mark.parametrize(
    ("given_", "meant"),
    [
        ("/at/home/v1/models", "/v1/models"),
        ("//at//home//models/", "/v1/models"),
        ("/at/home/at/home/api/tags", "/api/tags"),
        ("/at/home", "/"),
        ("/at/home/healthz", "/healthz"),
        ("/v1/models", "/v1/models"),
        ("/at/homely/v1/models", "/at/homely/v1/models"),
        ("/at/v1/models", "/at/v1/models"),
        ("/v1/at/home/models", "/v1/at/home/models"),
    ],
)
def test_a_mount_is_taken_off_and_never_needed(given_: str, meant: str) -> None:
    assert MOUNTED.canonical(given_) == meant


@pytest.mark.parametrize(
    ("path", "meant", "key"),
    [
        ("/k/rk-1/v1/models", "/v1/models", "rk-1"),
        ("/k/rk-1", "/", "rk-1"),
        ("//k//rk-1//api/tags/", "/api/tags", "rk-1"),
        ("/at/home/k/rk-1/models", "/v1/models", "rk-1"),
        ("/k/rk-1/at/home/api/chat", "/api/chat", "rk-1"),
        ("/k/rk-1/v1/v1/models/k/x", "/v1/models/k/x", "rk-1"),
        ("/k/one/k/two/v1/models", "/v1/models", "one"),
        ("/k", "/k", ""),
        ("/k/", "/k", ""),
        ("/K/rk-1/v1/models", "/K/rk-1/v1/models", ""),
        ("/v1/k/rk-1/models", "/v1/k/rk-1/models", ""),
        ("/v1/models/k/rk-1", "/v1/models/k/rk-1", ""),
    ],
)
def test_a_key_in_the_path(path: str, meant: str, key: str) -> None:
    assert MOUNTED.split(path) == (meant, key)


SEGMENTS = st.sampled_from(
    [
        "",
        "v1",
        "api",
        "k",
        "models",
        "chat",
        "completions",
        "healthz",
        "at",
        "home",
        "..",
        ".",
        "x",
        "%2F",
        "é",
    ]
)
TEXTS = st.one_of(
    st.lists(SEGMENTS, max_size=9).map(lambda parts: "/" + "/".join(parts)), st.text(max_size=40)
)


@given(path=TEXTS, paths=st.sampled_from([PLAIN, MOUNTED]))
def test_a_canonical_path_means_itself(path: str, paths: Paths) -> None:
    meant = paths.canonical(path)
    assert paths.canonical(meant) == meant
    assert meant.startswith("/")
    assert meant == "/" or not meant.endswith("/")


@given(path=TEXTS, paths=st.sampled_from([PLAIN, MOUNTED]))
def test_nothing_is_invented(path: str, paths: Paths) -> None:
    """What is left are the path's own last segments; what went was the mount and bases; v1 may be added."""
    own = [part for part in path.split("/") if part]
    meant = [part for part in paths.canonical(path).split("/") if part]
    if meant != own[len(own) - len(meant) :]:
        assert meant[0] == "v1"
        assert meant[1] in BARE
        meant = meant[1:]
    gone = len(own) - len(meant)
    assert meant == own[gone:]
    keys = {own[place + 1] for place in range(gone - 1) if own[place] == "k"}
    assert set(own[:gone]) - keys <= {"v1", "api", "at", "home", "k"}


@given(
    route=st.sampled_from([route for route in ROUTES if "{" not in route]),
    slashes=st.lists(st.integers(1, 3), min_size=9, max_size=9),
    run=st.lists(st.sampled_from(["v1", "api"]), max_size=3),
    mount=st.integers(0, 2),
    bare=st.booleans(),
)
def test_every_spelling_of_a_route_means_the_route(
    route: str, slashes: list[int], run: list[str], mount: int, bare: bool
) -> None:
    parts = [part for part in route.split("/") if part]
    if parts and parts[0] in ("v1", "api"):
        parts = [*run, *parts]
    if bare and parts[:1] == ["v1"] and parts[1:2] and parts[1] in BARE:
        parts = parts[1:]
    parts = ["at", "home"] * mount + parts
    path = "".join("/" * count + part for count, part in zip(slashes, parts, strict=False)) or "/"
    assert MOUNTED.canonical(path + "/" * (slashes[8] - 1)) == route
