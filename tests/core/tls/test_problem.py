from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.tls.problem import problem_code, problem_fault

PREFIX = "urn:ietf:params:acme:error:"


@pytest.mark.parametrize(
    ("code", "why", "step"),
    [
        ("connection", "could not connect", "RELAY_ACME_HTTP_LISTEN"),
        ("dns", "no usable DNS record", "DNS name lead"),
        ("unauthorized", "did not find there", "port 80"),
        ("caa", "CAA record", "CAA"),
        ("rejectedIdentifier", "makes none for such a name", "RELAY_TLS_DOMAIN"),
        ("rateLimited", "too often", "wait"),
        ("externalAccountRequired", "account", "RELAY_ACME_DIRECTORY"),
        ("invalidContact", "mail address", "RELAY_ACME_EMAIL"),
        ("malformed", "malformed", "what it says"),
        ("neverHeardOf", "neverHeardOf", "what it says"),
        ("", "no reason given", "what it says"),
    ],
)
def test_each_refusal_has_its_reason_and_its_step(code: str, why: str, step: str) -> None:
    fault = problem_fault("acme.test", code, "the detail.", "hub.test", "http-01")
    assert fault.message.startswith("acme.test gave no certificate for hub.test: ")
    assert why in fault.message
    assert fault.message.endswith("(the detail)")
    assert step in fault.hint


def test_a_failed_proof_by_dns_points_at_the_hook() -> None:
    assert "RELAY_ACME_DNS_HOOK" in problem_fault("a", "unauthorized", "", "n", "dns-01").hint


def test_the_same_word_means_something_else_where_nothing_is_proved() -> None:
    assert "account may not" in problem_fault("a", "unauthorized", "", "n", None).message
    assert "(connection)" in problem_fault("a", "connection", "", "n", None).message


def test_only_acmes_own_types_count() -> None:
    assert problem_code(PREFIX + "rateLimited") == "rateLimited"
    assert problem_code("about:blank") == problem_code("rateLimited") == ""


@given(st.text(), st.text(), st.text(), st.text())
def test_a_servers_words_break_nothing(server: str, code: str, detail: str, names: str) -> None:
    fault = problem_fault(server, code, detail, names, "http-01")
    assert fault.message.isprintable()
    assert fault.hint
    assert len(fault.message) < 600
