"""Blocking calls one after another, each in a thread of its own and within a time.

Not the loop's own executor: the interpreter waits for its threads at the end, and one of these may hang on
a server for as long as that likes. Such a thread is left behind; nobody waits for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from relaydesk.core.errors import EnvError
from relaydesk.store.db import call_soon

T = TypeVar("T")
# So many may hang at once; then no new one starts until one has ended.
MAX_LEFT: Final = 4


class Steps:
    """``who`` is what a sentence calls the one that does not answer."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._left: list[threading.Thread] = []

    async def do(self, work: Callable[[], T], limit_s: float) -> T:
        """Run ``work``. Raises what it raises, and `EnvError` ``tls_failed`` where it takes too long."""
        self._left = [thread for thread in self._left if thread.is_alive()]
        if len(self._left) >= MAX_LEFT:
            raise EnvError(
                "tls_failed",
                f"{self._who} still has not answered {MAX_LEFT} earlier calls",
                "look at its log; restarting relaydesk gives them up",
            )
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                result = work()
            except BaseException as error:
                call_soon(loop, _set(future, error=error))
            else:
                call_soon(loop, _set(future, result=result))

        thread = threading.Thread(target=run, daemon=True, name="acme")
        thread.start()
        try:
            async with asyncio.timeout(limit_s):
                return await future
        except TimeoutError:
            raise EnvError(
                "tls_failed", f"{self._who} did not answer within {limit_s:g} s", "wait; this is tried again"
            ) from None
        finally:
            if thread.is_alive():
                self._left.append(thread)


def _set(
    future: asyncio.Future[Any], *, result: Any = None, error: BaseException | None = None
) -> Callable[[], None]:
    def apply() -> None:
        if future.done():
            return  # nobody waits any more
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    return apply
