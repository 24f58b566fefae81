"""Which requests go to the relay network, and which never do."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.access.caller import DEFAULT_CALLER, NOBODY, Caller
from relaydesk.core.access.key import KeySpec
from relaydesk.core.errors import FaultError, LocalError, PeerError
from relaydesk.core.gateway.away import (
    RelayUse,
    check_may,
    check_tee,
    network_id,
    offered,
    parse_allowed_model,
    relay_use,
    routing_hints,
)
from relaydesk.core.gateway.models import ModelName
from relaydesk.core.relay.target.hints import parse_hints
from tests.support.scripted_network import TINY

KNOWN = [ModelName("smollm2", ("small",)), ModelName("org/model")]
# No name that begins so can be registered; were one there all the same, it would not go out.
ODD = [*KNOWN, ModelName("net/mine", ("net/other",))]


@pytest.mark.parametrize(
    ("requested", "use", "found"),
    [
        ("net/lab/tiny", "auto", "lab/tiny"),
        ("net/lab/tiny", "required", "lab/tiny"),
        ("net/smollm2", "auto", "smollm2"),
        ("smollm2", "auto", None),
        ("smollm2", "off", None),
        ("small:latest", "auto", None),
        ("nobody-has-this", "auto", None),
        (None, "auto", None),
        ("", "off", None),
        ("Net/x", "auto", None),
    ],
)
def test_the_name_decides(requested: str | None, use: RelayUse, found: str | None) -> None:
    assert network_id(requested, use, KNOWN) == found


@pytest.mark.parametrize(
    ("requested", "use", "code", "param"),
    [
        ("smollm2", "required", "invalid_request", "X-Zs-Relay"),
        (None, "required", "invalid_request", "X-Zs-Relay"),
        ("nobody-has-this", "required", "invalid_request", "X-Zs-Relay"),
        ("net/lab/tiny", "off", "invalid_request", "X-Zs-Relay"),
        ("net/", "auto", "invalid_request", "model"),
        ("net/a b", "auto", "model_not_found", "model"),
        ("net/net/smollm2", "auto", "model_not_found", "model"),
        ("net/" + "x" * 129, "auto", "model_not_found", "model"),
    ],
)
def test_what_contradicts_itself(requested: str | None, use: RelayUse, code: str, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        network_id(requested, use, KNOWN)
    assert (caught.value.fault.code, caught.value.fault.param) == (code, param)


@given(
    st.sampled_from([name for each in ODD for name in (each.name, *each.aliases)]),
    st.sampled_from(["", ":latest"]),
    st.sampled_from(["auto", "off", "required"]),
)
def test_a_registered_name_never_goes_out(name: str, tag: str, use: RelayUse) -> None:
    if use == "required":
        with pytest.raises(PeerError) as caught:
            network_id(name + tag, use, ODD)
        assert caught.value.fault.code == "invalid_request"
    else:
        assert network_id(name + tag, use, ODD) is None


def _ann(*models: str, network: bool = True) -> Caller:
    return Caller("ann", "id", KeySpec(name="ann", id="id", created_ms=0, models=models, network=network))


def test_who_may() -> None:
    check_may(_ann(), "a")
    check_may(_ann("smollm2", "net/a"), "a")
    check_may(msgspec.structs.replace(DEFAULT_CALLER, network=True), "a")
    for caller, word in (
        (_ann(network=False), "`relaydesk key set ann --network"),
        (DEFAULT_CALLER, "RELAY_DEFAULT_KEY_NETWORK=on"),
        (NOBODY, ""),
    ):
        with pytest.raises(PeerError) as caught:
            check_may(caller, "a")
        assert caught.value.fault.code == "refused" and caught.value.fault.rule.status == 403
        assert word in caught.value.fault.hint
    with pytest.raises(PeerError) as caught:
        check_may(_ann("net/b", "smollm2"), "a")
    assert caught.value.fault.code == "model_not_found"


def test_the_headers_words() -> None:
    assert [relay_use(values) for values in ((), ("",), (" OFF ",), ("required",), ("Auto", "auto"))] == [
        "auto",
        "auto",
        "off",
        "required",
        "auto",
    ]
    for values in (("on",), ("off", "required"), ("auto, off",), ("true",)):
        with pytest.raises(PeerError) as caught:
            relay_use(values)
        assert caught.value.fault.param == "X-Zs-Relay"
        assert caught.value.fault.rule.status == 400


def test_nothing_is_a_trusted_environment() -> None:
    check_tee(())
    check_tee(("", "  "))
    for values in (("1",), ("", "tdx"), ("false",)):
        with pytest.raises(PeerError) as caught:
            check_tee(values)
        assert caught.value.fault.code == "no_tee_capacity"


def test_hints_are_taken_as_they_are() -> None:
    provider = b'{"only": ["7:2"], "ignore": ["8"], "max_price": {"input": 0.5}, "unknown": 1}'
    assert routing_hints(b'{"model": "net/a", "provider": ' + provider + b"}") == provider
    assert routing_hints(b'{"model": "net/a"}') == b"" == routing_hints(b'{"provider": null}')


@pytest.mark.parametrize(
    ("provider", "param", "word"),
    [
        ('{"only": ["7", "seven"]}', "provider.only[1]", '"7:2"'),
        ('{"order": "7"}', "provider.order", "network-models.md"),
        ('{"ignore": [7]}', "provider.ignore[0]", '"7:2"'),
        ('{"max_price": {"output": "cheap"}}', "provider.max_price.output", ""),
        ('{"sort": "colour"}', "provider.sort", ""),
        ('{"relay": "off"}', "provider.relay", ""),
        ('"openai"', "provider", ""),
        ("[]", "provider", ""),
    ],
)
def test_hints_that_mean_nothing_are_refused_by_name(provider: str, param: str, word: str) -> None:
    with pytest.raises(PeerError) as caught:
        routing_hints(f'{{"provider": {provider}}}'.encode())
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", param)
    assert word in caught.value.fault.hint


HINTS = ["only", "ignore", "order", "allow_fallbacks", "max_price", "input", "output", "sort", "relay"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.sampled_from(["7", "7:2", "off", "price", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(HINTS), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_hint_is_understood_or_refused(value: object) -> None:
    body = msgspec.json.encode({"provider": value})
    hints = parse_hints(b"" if value is None else msgspec.json.encode(value))
    if hints.unread or hints.relay == "off":
        with pytest.raises(FaultError) as caught:
            routing_hints(body)
        assert caught.value.fault.param == (hints.unread[0] if hints.unread else "provider.relay")
    else:
        assert parse_hints(routing_hints(body)) == hints


def test_a_keys_list_may_name_what_comes_and_goes() -> None:
    assert parse_allowed_model("net/Qwen/Qwen3-8B") == "net/Qwen/Qwen3-8B"
    assert parse_allowed_model("smollm2") == "smollm2"
    for name in ("net/", "net/a b", "net/net/a", "a b", ""):
        with pytest.raises(LocalError):
            parse_allowed_model(name)


def test_an_offer_by_its_name_and_tag() -> None:
    assert offered("lab/tiny", [TINY]) is TINY
    assert offered("lab/tiny:latest", [TINY]) is TINY
    assert offered("lab/other", [TINY]) is None
