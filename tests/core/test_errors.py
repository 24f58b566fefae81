from __future__ import annotations

import pytest

from relaydesk.core.errors import ERRORS, EnvError, Fault, FaultError, LocalError, PeerError, raise_fault


@pytest.mark.parametrize("code", ERRORS)
def test_every_code_means_something_everywhere(code: str) -> None:
    rule = ERRORS[code]
    assert 400 <= rule.status <= 599
    assert rule.exit in (1, 2, 3, 4)
    assert rule.type
    assert code == code.lower()
    assert code.replace("_", "").isalpha()
    assert Fault(code, "x").rule is rule


def test_client_errors_of_the_request_are_not_retried() -> None:
    assert not [code for code, rule in ERRORS.items() if rule.status in (400, 401, 403, 413) and rule.retry]


def test_no_node_is_exit_3_and_refusals_are_exit_4() -> None:
    assert [code for code, rule in ERRORS.items() if rule.exit == 3] == ["no_node"]
    assert {code for code, rule in ERRORS.items() if rule.exit == 4} == {"invalid_api_key", "refused"}


def test_unknown_code_is_our_bug() -> None:
    with pytest.raises(ValueError, match="made_up"):
        Fault("made_up", "x")
    with pytest.raises(ValueError, match="made_up"):
        LocalError("made_up", "x")


def test_sentence_joins_message_and_next_step() -> None:
    assert Fault("conflict", "it is taken.", "choose another").sentence == "it is taken: choose another"
    assert Fault("conflict", "it is taken.").sentence == "it is taken."


@pytest.mark.parametrize("family", [LocalError, PeerError, EnvError])
def test_families_carry_the_fault(family: type[FaultError]) -> None:
    error = family("queue_full", "too many", "wait", param="model", retry_after=7)
    assert error.fault == Fault("queue_full", "too many", "wait", "model", 7)
    assert str(error) == "too many: wait"


def test_raise_fault_keeps_everything() -> None:
    fault = Fault("queue_full", "too many", "wait", "model", 7)
    with pytest.raises(FaultError) as caught:
        raise_fault(fault)
    assert caught.value.fault == fault
