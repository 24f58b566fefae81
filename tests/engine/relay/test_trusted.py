"""Certificates as others see them."""

from __future__ import annotations

import ssl

import pytest

from relaydesk.engine.relay.trusted import distrust
from relaydesk.engine.tls.context import LiveContext, load_context
from tests.support.lab_tls import LabTls, make_lab_tls


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LabTls:
    return make_lab_tls(tmp_path_factory.mktemp("tls"), "node.example.org")


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "node.example.org"])
def test_a_certificate_of_a_trusted_authority_is_trusted(lab: LabTls, name: str) -> None:
    assert distrust(lab.server(), lab.client(), name) == ""


def test_who_does_not_know_the_authority_says_so(lab: LabTls) -> None:
    assert "issuer" in distrust(lab.server(), ssl.create_default_context(), "localhost")


def test_a_name_that_it_is_not_for_is_said(lab: LabTls) -> None:
    assert "other.example.org" in distrust(lab.server(), lab.client(), "other.example.org")


def test_what_a_listener_serves_through_its_changing_context_is_what_is_judged(lab: LabTls) -> None:
    live = LiveContext(lambda name: None)
    assert distrust(live.context, lab.client(), "localhost")
    live.swap(load_context(lab.pem), frozenset())
    assert distrust(live.context, lab.client(), "localhost") == ""
    assert distrust(live.context, ssl.create_default_context(), "localhost")


def test_ends_that_agree_on_nothing_do_not_go_round_for_ever(lab: LabTls) -> None:
    old = lab.server()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    new = lab.client()
    new.minimum_version = ssl.TLSVersion.TLSv1_3
    assert distrust(old, new, "localhost")
