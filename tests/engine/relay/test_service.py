"""The relay network as a part of a node: off, refused, up."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from relaydesk.config.listen import parse_listen
from relaydesk.core.codec import encode
from relaydesk.core.commands import BlockOperator, Outcome, ProbeRelays, ShowOperators
from relaydesk.core.relay.records.details import decode_details
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.relay.service import NetworkService
from relaydesk.engine.tls.context import load_context
from tests.support.lab_ground import network_service, network_settings
from tests.support.lab_tls import make_lab_tls


async def _call(service: NetworkService, command: ProbeRelays | ShowOperators | BlockOperator) -> Outcome:
    dispatcher = Dispatcher()
    service.register(dispatcher)
    return await dispatcher.call(command)


def _alerts(service: NetworkService) -> dict[str, str]:
    return {each.code: f"{each.message} {each.hint}" for each in service.ground.alerts.view().alerts}


async def test_off_is_a_section_that_says_so(tmp_path: Path) -> None:
    async with network_service(tmp_path, network_settings(network="off")) as service:
        assert service.parts is None
        assert not service.view().on
        assert service.relays_view().relays == ()
        assert service.hops_view().hops == ()
        assert service.services() == ()
        outcome = await _call(service, ProbeRelays())
        assert outcome.fault is not None
        assert "RELAY_NETWORK=on" in outcome.fault.hint
        assert not _alerts(service)


async def test_the_default_certificate_opens_nothing_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = network_settings(
        allow_private="off", network_listen=parse_listen(":0"), public_url="https://node.example.org"
    )
    async with network_service(tmp_path, settings) as service:
        assert service.parts is None
        assert "no certificate that the world trusts" in service.view().problem
        assert "RELAY_TLS_DOMAIN" in _alerts(service)["network_refused"]
        outcome = await _call(service, ShowOperators())
        assert outcome.fault is not None
        assert "no certificate" in outcome.fault.message
    (line,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert "stays closed: the network listener has no certificate" in line.getMessage()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"public_url": "https://8.8.8.8"}, "RELAY_ALLOW_PRIVATE"),
        ({"public_url": "https://10.0.0.9", "allow_private": "off"}, "private address"),
        ({"public_url": "http://node.example.org", "allow_private": "off"}, "not https"),
        ({"public_url": "http://localhost:1", "allow_private": "off"}, "private address"),
    ],
)
async def test_urls_that_cannot_be_keep_it_closed(
    tmp_path: Path, changes: dict[str, str], words: str
) -> None:
    async with network_service(tmp_path, network_settings(**changes)) as service:
        assert service.parts is None
        assert words in service.view().problem


async def test_up_it_shows_who_it_is_and_why_it_is_not_published(tmp_path: Path) -> None:
    async with network_service(tmp_path, network_settings()) as service:
        parts, view = service.parts, service.view()
        assert parts is not None
        assert "network_lab" in _alerts(service)
        assert view.on and view.lab and not view.problem
        assert view.operator == str(parts.identity.operator_id) == service.operator
        assert "RELAY_PUBLIC_URL" in view.unpublished
        assert decode_details(parts.own.body()).operator_id == parts.identity.operator_id
        assert {each.name for each in service.services()} >= {"network keys", "directories", "publisher"}
        shown = await _call(service, ShowOperators())
        assert shown.value["own"]["operator"] == view.operator
        assert parts.identity.seed.hex().encode() not in encode(view)
    async with network_service(tmp_path, network_settings()) as again:
        assert again.operator == view.operator


async def test_nothing_is_published_without_a_directory(tmp_path: Path) -> None:
    settings = network_settings(public_url="http://127.0.0.1:9")
    async with network_service(tmp_path, settings) as service:
        assert "RELAY_DIRECTORIES" in service.view().unpublished


async def test_a_certificate_that_others_refuse_is_not_published(tmp_path: Path) -> None:
    lab = make_lab_tls(tmp_path)
    untrusted = network_settings(tls_cert=lab.pem, tls_key=lab.pem, public_url="https://127.0.0.1:8384")
    async with network_service(tmp_path, untrusted) as service:
        service._server_tls = load_context(lab.pem)
        await service._look_at_certificate()
        assert "would not trust the certificate" in service.view().unpublished
        assert "network_distrusted" in _alerts(service)
        assert service._wanted() == ""
    trusted = network_settings(
        tls_cert=lab.pem, tls_key=lab.pem, public_url="https://127.0.0.1:8384", network_ca=lab.ca
    )
    async with network_service(tmp_path, trusted) as service:
        service._server_tls = load_context(lab.pem)
        await service._look_at_certificate()
        assert "network_distrusted" not in _alerts(service)
        assert service._wanted() == "https://127.0.0.1:8384"


async def test_a_ca_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    settings = network_settings(network_ca=tmp_path / "none.pem")
    with pytest.raises(Exception, match="RELAY_NETWORK_CA"):
        async with network_service(tmp_path, settings):
            pass


def test_a_ca_outside_of_labs_is_not_trusted(tmp_path: Path) -> None:
    from relaydesk.engine.relay.entrance import trusting

    lab = make_lab_tls(tmp_path)
    inside = trusting(network_settings(network_ca=lab.ca))
    outside = trusting(network_settings(network_ca=lab.ca, allow_private="off"))
    assert inside.cert_store_stats()["x509"] == outside.cert_store_stats()["x509"] + 1
    assert inside.verify_mode is ssl.CERT_REQUIRED
