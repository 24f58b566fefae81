from __future__ import annotations

import pytest

from relaydesk.core.text import SafeText
from relaydesk.core.view.network import DirectoryView, NetworkView
from relaydesk.core.view.presence import nobody, presence

URL = SafeText("https://d.example")
UNREAD = DirectoryView("k", URL, problem=SafeText("nobody answers"))
HELD = DirectoryView("k", URL, version=3, problem=SafeText("nobody answers"))


@pytest.mark.parametrize(
    ("view", "state", "words"),
    [
        (NetworkView(), "off", "off"),
        (NetworkView(on=True, problem=SafeText("no certificate")), "closed", "no certificate"),
        (NetworkView(on=True, directories=(UNREAD,)), "unread", "https://d.example is not used: nobody"),
        (NetworkView(on=True, directories=(HELD,), unpublished=SafeText("why")), "unlisted", "why"),
        (NetworkView(on=True, public_url=SafeText("https://n.example")), "listed", "https://n.example"),
    ],
)
def test_where_it_stands(view: NetworkView, state: str, words: str) -> None:
    found = presence(view)
    assert (found.state, words in found.message) == (state, True)


def test_each_reason_why_nobody_is_known_is_another_sentence() -> None:
    fresh = DirectoryView("k", URL)
    views = (
        NetworkView(),
        NetworkView(on=True, problem=SafeText("x")),
        NetworkView(on=True),
        NetworkView(on=True, directories=(UNREAD,)),
        NetworkView(on=True, directories=(fresh,)),
        NetworkView(on=True, directories=(HELD,)),
    )
    assert len({nobody(each).message for each in views}) == len(views)
