"""A remedy as lines and on the clipboard."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relaydesk.surfaces.console.panes.hopcheck.remedy import code_line, copied, parts, remedy_lines
from relaydesk.surfaces.console.widgets.spans import line_text, line_width
from tests.support.hopcheck_scenes import REMEDY


def _texts(text: str, width: int = 76) -> list[str]:
    return [line_text(line) for line in remedy_lines(text, width)]


def test_what_goes_out_and_what_comes_in_are_told_apart_by_more_than_colour() -> None:
    assert [part.does for part in parts(REMEDY)] == ["say", "remove", "say", "add"]
    assert _texts(REMEDY) == [
        "Take out what removes the marker, wherever it is in front of the node:",
        "",
        "  - proxy_hide_header X-Zs-Relay-Hop;",
        "",
        "Add in the location (or server) that has proxy_pass to the node (tested):",
        "",
        "  + add_header X-Zs-Relay-Hop $upstream_http_x_zs_relay_hop always;",
    ]


def test_the_clipboard_has_all_of_it_and_no_fence() -> None:
    text = copied(REMEDY)
    assert "```" not in text
    assert "\nproxy_hide_header X-Zs-Relay-Hop;\n" in text
    assert text.endswith("\nadd_header X-Zs-Relay-Hop $upstream_http_x_zs_relay_hop always;\n")
    assert text.startswith("Take out")


def test_configuration_keeps_its_blanks() -> None:
    block = "```caddy add\nreverse_proxy {\n    header_down -X-Zs-*\n\n}\n```"
    assert _texts(block) == ["  + reverse_proxy {", "  +     header_down -X-Zs-*", "  + ", "  + }"]
    assert "    header_down" in copied(block)


def test_a_long_line_goes_on_further_in() -> None:
    text = "  add_header X-Zs-Relay-Hop $upstream_http_x_zs_relay_hop always;"
    lines = [line_text(line) for line in code_line(text, 40, "+ ", "ok")]
    assert lines[0].startswith("  +   add_header X-Zs-Relay-Hop")
    assert all(line.startswith("    ") for line in lines[1:])
    assert " ".join(line.strip(" +") for line in lines) == text.strip()


def test_an_open_fence_ends_with_the_text() -> None:
    assert [part.does for part in parts("Do this:\n```\na\nb")] == ["say", "text"]


@given(st.text(alphabet=st.sampled_from("`ab \t\nü漢+-{}"), max_size=200), st.integers(12, 90))
def test_no_text_is_too_wide_or_lost(text: str, width: int) -> None:
    lines = remedy_lines(text, width)
    assert all(line_width(line) <= width for line in lines)
    shown = "".join(line_text(line) for line in lines)
    said = "".join(line for line in text.splitlines() if not line.startswith("```"))
    assert set("abü漢{}") & set(said) <= set(shown)
