"""A network as a node in it sees it: twenty others, some demoted with evidence, some of them not used."""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

from relaydesk.core.relay.address import encode_address, operator_id
from relaydesk.core.relay.blame import RULES
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.reputation import At, Observation, Reputation, explain, fault, unreachable
from relaydesk.core.text import safe_text
from relaydesk.core.view.network import (
    DirectoryView,
    EvidenceView,
    HopsView,
    HopView,
    NetworkView,
    RelayingView,
    RelaysView,
    RelayView,
)
from tests.contract.rigs import HOSTILE
from tests.surfaces.console.panes.ledger_scenes import hostile_ledger, hostile_offers, ledger, offers

_MINUTE: Final = 60_000
_DAY: Final = 86_400_000
# Name, host, round trip in ms; None is a node that was never reached.
_NODES: Final = (
    ("ada", "relay.ada.example", 31),
    ("bjorn", "zs.bjorn.example:8384", 48),
    ("carol", "carol.example", 77),
    ("dmitri", "node.dmitri.example", 112),
    ("elena", "elena.example/zs", 64),
    ("farid", "relay.farid.example", 203),
    ("grace", "grace.example:9443", 39),
    ("hana", "ねこ.example", 268),
    ("ivan", "ivan.example", None),
    ("jun", "jun.example", 145),
    ("kofi", "kofi.example", 97),
    ("lena", "lena.example", 58),
    ("mira", "mira.example", 88),
    ("nils", "nils.example", 71),
    ("olga", "olga.example", None),
    ("pavel", "pavel.example", 122),
)
_STRANGERS: Final[tuple[tuple[str, str, Literal["unknown", "blocked", "disabled"], str], ...]] = (
    ("quinn", "quinn.example", "unknown", "its certificate expired 3 days ago"),
    ("rosa", "rosa.example", "blocked", "blocked by this node's operator"),
    ("sam", "sam.example", "disabled", "its owner has switched it off"),
    ("tess", "tess.example", "unknown", "no pinned directory lists it"),
)


def owner(name: str) -> str:
    """The owner's address."""
    return encode_address(hashlib.sha256(name.encode()).digest())


def ref(name: str, node: int = 1) -> str:
    """The node's reference."""
    return f"{operator_id(hashlib.sha256(name.encode()).digest())}:{node}"


def network(now_ms: int) -> NetworkView:
    """This node: published, and relaying for others."""
    return NetworkView(
        on=True,
        operator=ref("attic").partition(":")[0],
        owner=owner("attic"),
        node=1,
        signing=owner("attic node 1"),
        public_url=safe_text("https://attic.example"),
        listening=("https://[::]:8384",),
        proto_version="9.10",
        newest_version=safe_text("9.11"),
        ephemeral_expires_at_ms=now_ms + 31 * _MINUTE,
        directories=(
            DirectoryView(
                owner("commons"), safe_text("https://commons.example/v1/directory"), 41, now_ms - _DAY // 6,
                now_ms + 5 * _DAY // 6, now_ms - 2 * _MINUTE, 19,
            ),
            DirectoryView(
                owner("friends"), safe_text("/etc/relaydesk/friends.json"), 7, now_ms - 5 * _DAY // 6,
                now_ms + _DAY // 6, now_ms - 2 * _MINUTE, 4,
                safe_text("no newer one for 20 hours: ask who keeps it"),
            ),
        ),
        relaying=RelayingView(3, 256, 12_481, 17, 5, 44_023_414_784, 500_000_000_000),
        offers=offers(),
    )  # fmt: skip


def _history(rtt: int, at: int) -> tuple[int, ...]:
    """Sixty round trips around a mean, with a spike now and then."""
    return tuple(
        rtt + (step * 7 + at * 13) % max(5, rtt // 4) + (rtt if (step + at * 5) % 23 == 0 else 0)
        for step in range(60)
    )


def _seen(name: str, at_ms: int, status: int, code: str, *, marker: bool, rule: str) -> Observation:
    operator, _, node = ref(name).partition(":")
    return Observation(at_ms, NodeRef(int(operator), int(node)), status, code, marker, rule)


def _reputations(now_ms: int) -> dict[str, Reputation]:
    """Who was caught at what, by the rules that the node has for it."""
    known: dict[str, Reputation] = {}

    def note(name: str, ago_s: int, status: int, code: str, rule: str, target: str, *, marker: bool) -> None:
        at = At(-ago_s, now_ms - 1000 * ago_s)
        seen = _seen(target, at.wall_ms, status, code, marker=marker, rule=rule)
        step = fault if status else unreachable
        known[name] = step(known.get(name, Reputation()), at, seen)

    for ago, status, target in ((311, 502, "grace"), (204, 520, "lena"), (133, 502, "ada")):
        note("dmitri", ago, status, "", "unmarked_front_door", target, marker=False)
    note("farid", 62, 0, "", "no_answer", "mira", marker=False)
    note("kofi", 540, 502, "relay_upstream_unreachable", "claim_refuted", "elena", marker=True)
    note("kofi", 71, 502, "relay_upstream_unreachable", "claim_refuted", "nils", marker=True)
    note("pavel", 415, 503, "relay_busy", "relay_refused", "carol", marker=True)
    return known


def relays(now_ms: int) -> RelaysView:
    """Sixteen nodes that may be chosen, four that may not, and this one."""
    known = _reputations(now_ms)
    found = [
        _relay(name, host, rtt, at, known.get(name), now_ms) for at, (name, host, rtt) in enumerate(_NODES)
    ]
    found += [
        RelayView(ref(name), owner(name), safe_text(f"https://{host}"), standing, safe_text(why))
        for name, host, standing, why in _STRANGERS
    ]
    found.append(
        RelayView(
            ref("attic"), owner("attic"), safe_text("https://attic.example"), "self", safe_text("this node")
        )
    )
    order = sorted(found, key=lambda each: tuple(int(part) for part in each.ref.split(":")))
    return RelaysView(tuple(order), now_ms - 42_000, now_ms + 78_000)


def _relay(
    name: str, host: str, rtt: int | None, at: int, known: Reputation | None, now_ms: int
) -> RelayView:
    state = known or Reputation()
    demotion = state.demotion
    demoted = demotion is not None and demotion.until > 0
    history = _history(rtt, at) if rtt is not None else ()
    return RelayView(
        ref=ref(name, 2 if name == "grace" else 1),
        owner=owner(name),
        base_url=safe_text(f"https://{host}"),
        standing="eligible",
        tier="demoted" if demoted else "cold" if rtt is None else "reachable",
        why=safe_text("its certificate is not one the world trusts") if name == "ivan" else safe_text(""),
        proto_version=safe_text("" if rtt is None else "9.11" if at == 4 else "9.0" if at == 9 else "9.10"),
        version=safe_text("" if rtt is None else "0.1.0"),
        rtt_ms=None if rtt is None or name == "farid" else rtt * 1.1,
        samples=len(history),
        history=history,
        share=0.0 if rtt is None or demoted else round(0.03 + 3.2 / (rtt + 40), 4),
        faults=min(3, state.faults),
        unreachable=1 if name == "farid" else 0,
        demoted_at_ms=demotion.since.wall_ms if demotion is not None and demoted else 0,
        demoted_until_ms=now_ms + round(demotion.until * 1000) if demotion is not None and demoted else 0,
        explanation=safe_text(explain(state, At(0, now_ms)), 512),
        evidence=tuple(
            EvidenceView(
                each.at_ms, str(each.target), each.status, safe_text(each.code), each.marker,
                safe_text(RULES[each.rule]),
            )
            for each in state.evidence
        ),
        last_ok_at_ms=0 if rtt is None else now_ms - (42_000 if not demoted else 7 * _MINUTE),
        probed_at_ms=now_ms - 42_000,
        models=tuple(safe_text(each) for each in ("smollm2", "qwen3-4b", "gemma-3-270m")[: at % 4]),
        eligible_relays={"ivan": 0, "hana": 1}.get(name, 12 + at % 3),
    )  # fmt: skip


# Seconds ago, purpose, relay, target, status, code, marker, attribution, charged, rule, took, try.
_HOPS: Final = (
    (4, "inference", "lena", "grace", 200, "", True, "none", "nobody", "final", 1840, 1),
    (9, "reserve", "ada", "grace", 200, "", True, "none", "nobody", "final", 61, 2),
    (10, "reserve", "pavel", "grace", 503, "relay_busy", True, "relay", "relay", "relay_refused", 44, 1),
    (38, "probe", "bjorn", "carol", 503, "provider_unavailable", True, "none", "nobody", "own_code", 52, 1),
    (42, "probe", "mira", "jun", 200, "", True, "none", "nobody", "final", 171, 1),
    (47, "probe", "jun", "olga", 0, "", False, "none", "nobody", "caller_aborted", 5000, 1),
    (62, "probe", "farid", "mira", 0, "", False, "relay", "relay", "no_answer", 5003, 1),
    (70, "probe", "nils", "ivan", 502, "relay_upstream_unreachable", True, "target", "target",
     "target_unreachable", 88, 2),
    (71, "probe", "kofi", "ivan", 502, "relay_upstream_unreachable", True, "target", "target",
     "target_unreachable", 104, 1),
    (90, "ledger", "grace", "bjorn", 504, "", False, "unknown", "nobody", "unattributed", 30004, 1),
    (131, "reserve", "lena", "ada", 200, "", True, "none", "nobody", "final", 70, 2),
    (133, "reserve", "dmitri", "ada", 502, "", False, "relay", "relay", "unmarked_front_door", 118, 1),
    (150, "inference", "carol", "elena", 502, "", True, "target", "nobody", "marked", 212, 1),
)  # fmt: skip


def hops(now_ms: int) -> HopsView:
    """Every kind of hop, the newest first."""
    return HopsView(
        tuple(
            HopView(
                f"hop_{0x9C41_77F0_2E5B_0000 + number:016x}", now_ms - 1000 * ago, purpose, ref(relay),  # type: ignore[arg-type]
                ref(target, 2 if target == "grace" else 1), f"/v1/zs/{purpose}", status, safe_text(code),
                marker, attribution != "none" or status == 0, attribution, charged, rule,  # type: ignore[arg-type]
                safe_text(RULES[rule]), took, attempt,
            )
            for number, (ago, purpose, relay, target, status, code, marker, attribution, charged, rule, took,
                         attempt) in enumerate(_HOPS)
        )
    )  # fmt: skip


def sections(now_ms: int) -> dict[str, Any]:
    """The sections of a node that is in the network."""
    return {
        "network": network(now_ms),
        "relays": relays(now_ms),
        "hops": hops(now_ms),
        "ledger": ledger(now_ms),
    }


def hostile_sections(now_ms: int) -> dict[str, Any]:
    """The same with every text somebody else's, as the node makes it safe."""
    bad = [safe_text(text, 512) for text in HOSTILE]
    directories = tuple(
        DirectoryView(text, text, at, now_ms, now_ms + at, now_ms, 3, text if at % 2 else safe_text(""))
        for at, text in enumerate(bad)
    )
    seen = tuple(EvidenceView(now_ms, text, 502, text, at % 2 == 0, text) for at, text in enumerate(bad))
    return {
        "network": NetworkView(
            True, "7", bad[0], 1, bad[4], bad[4], tuple(bad), "9.10", bad[9], bad[4], bad[9], True, now_ms,
            directories, RelayingView(1, 2, 3, 4, 5, 6, 7), hostile_offers(), 3,
        ),
        "ledger": hostile_ledger(now_ms),
        "relays": RelaysView(
            tuple(
                RelayView(
                    f"{at}{text}:1", text, text, ("eligible", "unknown", "blocked")[at % 3], text, "demoted",  # type: ignore[arg-type]
                    text, text, 1e6, 3, (0, 600_000, 3), 1.0, 3, 3, 3, 3, now_ms, now_ms + at, text,
                    seen[at : at + 2],
                    now_ms, now_ms, tuple(bad), 0,
                )
                for at, text in enumerate(bad)
            )
        ),
        "hops": HopsView(
            tuple(
                HopView(
                    f"{at}{text}", now_ms, "probe", text, text, text, 502, text, False, True, "relay",
                    "relay", text, text, 600_000, at,
                )
                for at, text in enumerate(bad)
            )
        ),
    }  # fmt: skip
