from __future__ import annotations

from relaydesk.core.hopcheck.asked import MOST_SILENCE_S
from relaydesk.core.hopcheck.probes import BODIES, BY_ID, PROBES, REACH_S, SILENCES, probes_of, silence_probe


def ids(kind: str, *, outside: bool = False) -> list[str]:
    return [probe.id for probe in probes_of(kind, SILENCES, outside=outside)]


def test_each_probe_says_what_it_sends_and_what_is_expected() -> None:
    for probe in PROBES:
        assert probe.title
        assert probe.sends
        assert probe.expects
    assert len(BY_ID) == len(PROBES) + 1


def test_layers_have_the_probes_that_make_sense_there() -> None:
    assert "name" in ids("public")
    assert "tls" not in ids("loopback")
    assert "name" not in ids("via")
    assert "tls" in ids("via")
    assert ids("public", outside=True)[-1] == "outside"
    assert "outside" not in ids("via", outside=True)
    for kind in ("public", "via", "loopback", "lan"):
        assert {"reach", "refusal", "error", "success", "stream", "silence-125", "websocket"} <= set(
            ids(kind)
        )


def test_bounds() -> None:
    assert max(SILENCES) <= MOST_SILENCE_S
    assert silence_probe(20).seconds > 20
    # Name, certificate and first answer, one after the other, leave a black hole no half a minute.
    assert BY_ID["name"].seconds + 6.0 + REACH_S < 25
    assert BODIES == (1_114_112, 12_582_912)
