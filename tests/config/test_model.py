from __future__ import annotations

import dataclasses

import pytest

from relaydesk.config.listen import Listen
from relaydesk.config.model import SETTINGS, Setting, Settings
from relaydesk.config.table import PAGE, settings_page


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda item: item.key)
def test_every_row_reads_what_it_shows(setting: Setting) -> None:
    value = getattr(Settings(), setting.key)
    assert setting.kind.parse(setting.default) == value
    assert setting.kind.parse(setting.kind.show(value)) == value
    assert setting.name == "RELAY_" + setting.key.upper()
    assert setting.help.endswith(".")
    hash(value)


def test_decided_defaults() -> None:
    settings = Settings()
    assert settings.listen == Listen("", 8383)
    assert (settings.load_timeout, settings.drain_timeout, settings.heartbeat) == (600, 30, 15)
    assert (settings.keep_alive, settings.max_body_mb, settings.queue, settings.threads) == (900, 8, 512, 0)


@pytest.mark.parametrize(
    ("tls", "listen", "on"),
    [
        ("auto", Listen("", 8383), True),
        ("auto", Listen("127.0.0.1", 8383), False),
        ("auto", Listen("0.0.0.0", 8383), True),
        ("on", Listen("127.0.0.1", 8383), True),
        ("off", Listen("", 8383), False),
    ],
)
def test_auto_tls_is_off_on_loopback_only(tls: str, listen: Listen, on: bool) -> None:
    assert Settings(v1_tls=tls, listen=listen).tls_on is on


def test_no_secret_in_a_repr() -> None:
    assert "hunter2" not in repr(Settings(api_key="hunter2"))
    assert dataclasses.replace(Settings(), api_key="hunter2").api_key == "hunter2"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings_page(), "run python -m relaydesk.config.table"


def test_the_page_has_every_name() -> None:
    assert all(f"`{setting.name}`" in settings_page() for setting in SETTINGS)


def test_the_settings_of_a_lab_agree_about_http_and_private_addresses() -> None:
    """A directory and a base URL by plain HTTP are for labs, and each row that takes one says so."""
    rows = {each.name: each for each in SETTINGS}
    assert "in labs http:// too" in rows["RELAY_DIRECTORIES"].kind.allowed
    assert "in labs http:// too" in rows["RELAY_PUBLIC_URL"].help
    assert "`RELAY_PUBLIC_URL` must be private" in rows["RELAY_ALLOW_PRIVATE"].help
