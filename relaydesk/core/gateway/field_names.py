"""What a client calls the fields of the chat request that its own request was translated to."""

from __future__ import annotations

from collections.abc import Mapping


class FieldNames:
    """Names by their beginnings: where ``messages[2]`` is ``input[0]``, what is below it follows.

    To be used with `origin.in_the_words_of`.
    """

    __slots__ = ("_names",)

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)

    def add(self, ours: str, theirs: str) -> None:
        """``theirs`` stands for ``ours`` and for whatever is below it and has no name of its own."""
        self._names[ours] = theirs

    def __call__(self, param: str) -> str:
        """The client's name: the longest known beginning counts; ``param`` itself where none is known."""
        end = len(param)
        while end > 0:
            name = self._names.get(param[:end])
            if name is not None:
                return name + param[end:]
            end = max(param.rfind(".", 0, end), param.rfind("[", 0, end))
        return param
