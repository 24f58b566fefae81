"""Finding a request's route by its canonical path, for every spelling of a base URL.

aiohttp looks a path up as it came. Here one resource takes every path, says what it means
(`core.gateway.paths`) and looks that up; whoever decides by path asks `path_of`, so that a key, an error's
shape and a route always follow the same one.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from aiohttp import web
from aiohttp.web_urldispatcher import UrlMappingMatchInfo
from yarl import URL

from relaydesk.core.gateway.paths import Paths, bare_segments

ExpectHandler = Callable[[web.Request], Awaitable[web.StreamResponse | None]]

PATH: Final = web.RequestKey("path", str)
# The key that stood in the path; empty for none.
PATH_KEY: Final = web.RequestKey("path_key", str)
# A percent sign that begins none of the two escapes a path still has here.
_STRAY: Final = re.compile("%(?!2F|25)")


def path_of(request: web.Request) -> str:
    """The canonical path of a request."""
    return request.get(PATH) or request.path


def templates(table: web.UrlDispatcher) -> Iterator[str]:
    """The paths of a table's routes, variable parts in braces."""
    for resource in table.resources():
        yield resource.canonical


class AnyPath(web.AbstractResource):
    """Every path, looked up in ``table`` by what it means.

    ``expect`` answers ``Expect`` for whatever is found there.
    """

    def __init__(
        self,
        table: web.UrlDispatcher,
        prefix: str,
        expect: ExpectHandler,
    ) -> None:
        super().__init__()
        self._table = table
        self._paths = Paths(prefix, bare_segments(templates(table)))
        self._expect = expect

    async def resolve(self, request: web.Request) -> tuple[UrlMappingMatchInfo | None, set[str]]:
        """The route; always found, because what is missing is a route that says so."""
        given = request.rel_url.path_safe
        path, key = self._paths.split(given)
        request[PATH], request[PATH_KEY] = path, key
        asked = request
        if path != given:
            asked = request.clone(rel_url=URL.build(path=_STRAY.sub("%25", path), encoded=True))
        found = await self._table.resolve(asked)
        # A body that nobody reads is not asked for.
        expect = self._expect if found.http_exception is None else _say_nothing
        return _Match(dict(found), found.route, expect), set()

    @property
    def canonical(self) -> str:
        return "/"

    def __len__(self) -> int:
        return len(self._table.routes())

    def __iter__(self) -> Iterator[web.AbstractRoute]:
        return iter(self._table.routes())

    def freeze(self) -> None:
        self._table.freeze()

    def get_info(self) -> Any:
        return {"path": self.canonical}

    def raw_match(self, path: str) -> bool:
        return False

    def add_prefix(self, prefix: str) -> None:
        raise RuntimeError("the hub is no part of another application")

    def url_for(self, **_: str) -> URL:
        raise RuntimeError("every path has no one URL")


async def _say_nothing(_request: web.Request) -> None:
    pass


class _Match(UrlMappingMatchInfo):
    """A route that was found, with the one answer to ``Expect``."""

    def __init__(
        self,
        variables: dict[str, str],
        route: web.AbstractRoute,
        expect: ExpectHandler,
    ) -> None:
        super().__init__(variables, route)
        self._answer_expect = expect

    @property
    def expect_handler(self) -> ExpectHandler:
        return self._answer_expect
