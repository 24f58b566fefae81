"""The only place that makes asyncio tasks, so that each has a name and an owner.

Services run inside the supervisor's TaskGroup. `spawn` is for the few tasks that live and die inside one
object (a reader, a pump): the object keeps the task and awaits or cancels it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def spawn(coro: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """Start ``coro`` as a named task; the caller keeps it and answers for its end."""
    return asyncio.create_task(coro, name=name)


async def cancel_and_wait(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task and wait until it is gone; its outcome is dropped.

    A cancellation of the caller still goes through.
    """
    if task is None:
        return
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not report it as forgotten


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Do ``work`` to its end, even where the caller is cancelled meanwhile; then it is cancelled."""
    task = spawn(work, name="to its end")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # seen: the caller has no use for it
        raise
