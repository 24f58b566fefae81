"""Which stop sequence ended an answer: its clients ask, and engines do not say.

So an engine of ours is not told of them; the reader finds them, and whatever comes behind is not waited for.
A far server is told, because leaving it early would leave the account open: it ends without saying why.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.stop import StopReader
from relaydesk.core.gateway.work import Reader


class Ending:
    """What the work of one request knows and its output says.

    ``told`` says that the engine knows the stop sequences itself; ``matched`` is the one that ended the
    answer, empty where none is known to have.
    """

    __slots__ = ("matched", "told")

    def __init__(self) -> None:
        self.told = False
        self.matched = ""


class EndingReader(StopReader):
    """`Reader` of an answer that notes what ended it."""

    __slots__ = ("_ending",)

    def __init__(self, inner: Reader, stops: Sequence[str], ending: Ending) -> None:
        super().__init__(inner, stops)
        self._ending = ending

    def read(self, data: bytes) -> Piece | None:
        piece = super().read(data)
        if self.matched and not self._ending.matched:
            self._ending.matched = self.matched
            if not self._ending.told:
                # Its account is as good as it gets: the prompt was told at once, the tokens one by one.
                self.tally.exact = True
        return piece
