"""Errors of a translated request, said in the words of the dialect that it came in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from relaydesk.core.errors import PeerError


@contextmanager
def in_the_words_of(original: Callable[[str], str]) -> Iterator[None]:
    """Within it, a `PeerError` about a field is raised again about the client's own field.

    ``original`` gives the client's name for one of ours (``max_tokens`` → ``options.num_predict``).
    """
    try:
        yield
    except PeerError as error:
        fault = error.fault
        if fault.param is None or (name := original(fault.param)) == fault.param:
            raise
        raise PeerError(
            fault.code,
            fault.message.replace(fault.param, name),
            fault.hint,
            param=name,
            retry_after=fault.retry_after,
        ) from None
