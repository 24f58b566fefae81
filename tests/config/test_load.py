from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.config.listen import Listen
from relaydesk.config.load import Loaded, load
from relaydesk.config.model import SETTINGS, Settings
from relaydesk.config.show import settings_of, shown, value_text
from relaydesk.core.errors import Fault, LocalError

SECRET = "sk-do-not-show-me"


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    return tmp_path / "relaydesk" / "relaydesk.toml"


def with_file(toml: Path, text: str, env: dict[str, str] | None = None, mode: int = 0o600) -> Loaded:
    toml.parent.mkdir(exist_ok=True)
    toml.write_text(text, encoding="utf-8")
    toml.chmod(mode)
    return load({"XDG_CONFIG_HOME": str(toml.parent.parent), **(env or {})})


def refusal(call: object, *args: object, **kwargs: object) -> Fault:
    with pytest.raises(LocalError) as caught:
        call(*args, **kwargs)  # type: ignore[operator]
    assert caught.value.fault.code == "bad_setting"
    assert caught.value.fault.hint
    assert "\n" not in caught.value.fault.sentence
    return caught.value.fault


def test_nothing_given(tmp_path: Path) -> None:
    loaded = load({"HOME": str(tmp_path)})
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}
    assert (loaded.warnings, loaded.config_file) == ((), None)


def test_layers_and_origins(toml: Path) -> None:
    text = '# mine\nlisten = "127.0.0.1:1"\n\nqueue = 7\nheartbeat = "20s"\n'
    toml.parent.mkdir()
    toml.write_text(text)
    env = {"XDG_CONFIG_HOME": str(toml.parent.parent), "RELAY_LISTEN": "127.0.0.1:2", "RELAY_QUEUE": "8"}
    loaded = load(env, {"listen": "127.0.0.1:3", "queue": None})
    assert loaded.settings.listen == Listen("127.0.0.1", 3)
    assert (loaded.settings.queue, loaded.settings.heartbeat) == (8, 20)
    assert loaded.origins["listen"] == "flag --listen"
    assert loaded.origins["queue"] == "environment RELAY_QUEUE"
    assert loaded.origins["heartbeat"] == "relaydesk.toml:5"
    assert loaded.origins["load_timeout"] == "default"
    assert loaded.config_file == toml


def test_an_empty_variable_is_not_set(toml: Path) -> None:
    loaded = with_file(toml, "queue = 7\n", {"RELAY_QUEUE": "", "RELAY_API_KEY": "", "RELAY_CONFIG": ""})
    assert loaded.settings.queue == 7
    assert loaded.settings.api_key == ""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('x = """\nqueue = 1\n"""\nqueue = 7\n', 4),
        ("'queue' = 7", 1),
        ('# queue = 1\n\n  "queue"  = 7', 3),
        ('listen = """\\\nqueue = 3"""\r\nqueue = 7', 3),
        ('"\\u0071ueue" = 7', 0),
    ],
)
def test_line_numbers_see_through_strings(toml: Path, text: str, line: int) -> None:
    from relaydesk.config.toml_file import read_toml

    toml.parent.mkdir()
    toml.write_bytes(text.encode())
    found = read_toml(toml, required=True)
    assert found is not None
    assert found.entries["queue"].line == line


def test_toml_types(toml: Path) -> None:
    loaded = with_file(toml, 'tls_names = ["a.lan", "10.0.0.1"]\nqueue = 9\n')
    assert loaded.settings.tls_names == ("a.lan", "10.0.0.1")
    assert value_text(loaded, "queue") == "9"
    for text in (
        "queue = true",
        "queue = 1.5",
        "load_timeout = 90",
        "tls_names = [1]",
        "listen = {}",
        "queue = []",
    ):
        fault = refusal(with_file, toml, text)
        assert fault.param == "RELAY_" + text.split(" ")[0].upper()
        assert "relaydesk.toml:1" in fault.message


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("RELAY_LISTEN", "8383", ":port"),
        ("RELAY_V1_TLS", "maybe", "auto, on or off"),
        ("RELAY_LOAD_TIMEOUT", "10", "1h30m"),
        ("RELAY_MAX_BODY_MB", "0", "from 1 to 1024"),
        ("RELAY_TLS_DOMAIN", "192.168.1.5", "hub.example.org"),
        ("RELAY_ACME_DIRECTORY", "http://acme.test/dir", "https://"),
        ("RELAY_SECRETS", "vault", "file or keyring"),
    ],
)
def test_a_malformed_value_names_variable_value_and_what_is_allowed(
    name: str, value: str, allowed: str
) -> None:
    fault = refusal(load, {"HOME": "/nowhere", name: value})
    assert fault.param == name
    assert name in fault.message
    assert value in fault.message
    assert allowed in fault.hint


def test_a_value_cannot_break_the_line_it_is_shown_on() -> None:
    fault = refusal(load, {"HOME": "/nowhere", "RELAY_LISTEN": "x\n\x1b[31m" + "y" * 500})
    assert "\x1b" not in fault.message
    assert len(fault.message) < 250


def test_unknown_key_with_the_nearest_known(toml: Path) -> None:
    fault = refusal(with_file, toml, '\nlisten_ = ":1"\n')
    assert "listen_" in fault.message
    assert "relaydesk.toml:2" in fault.message
    assert "did you mean listen?" in fault.hint
    assert "did you mean heartbeat?" in refusal(with_file, toml, 'RELAY_HEARTBEAT = "1s"').hint
    assert "the keys are" in refusal(with_file, toml, "[zzzz]\nx = 1").hint
    assert "queue_file" in refusal(with_file, toml, 'queue_file = "/x"').message


def test_unknown_variables_only_warn(tmp_path: Path) -> None:
    loaded = load({"HOME": str(tmp_path), "RELAY_LISTNE": "x", "RELAY_QUEUE_FILE": "x", "RELAYS": "x"})
    assert loaded.settings == Settings()
    assert len(loaded.warnings) == 2
    assert "RELAY_LISTNE" in loaded.warnings[0]
    assert "did you mean RELAY_LISTEN?" in loaded.warnings[0]


@pytest.mark.parametrize("raw", [b"listen = ", b"\xff\xfe", b"a" * 300_000, b"x = " + b"[" * 5000])
def test_no_toml(toml: Path, raw: bytes) -> None:
    toml.parent.mkdir()
    toml.write_bytes(raw)
    fault = refusal(load, {"XDG_CONFIG_HOME": str(toml.parent.parent)})
    assert str(toml) in fault.message


def test_relay_config_must_exist(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    assert str(missing) in refusal(load, {"RELAY_CONFIG": str(missing)}).message
    assert str(tmp_path) in refusal(load, {"RELAY_CONFIG": str(tmp_path)}).message
    missing.write_text("queue = 3")
    assert load({"RELAY_CONFIG": str(missing)}).settings.queue == 3
    other = tmp_path / "other.toml"
    other.write_text("queue = 4")
    assert load({"RELAY_CONFIG": str(missing)}, config=other).settings.queue == 4


def test_paths_start_where_they_were_written(
    toml: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = with_file(
        toml, 'state_dir = "state"\n', {"RELAY_MODEL_DIR": "models", "RELAY_SOCKET": "/x/../y"}
    )
    assert loaded.settings.state_dir == toml.parent / "state"
    assert loaded.settings.model_dir == tmp_path / "models"
    assert loaded.settings.socket == Path("/y")


def test_a_key_from_a_file(tmp_path: Path, toml: Path) -> None:
    key = tmp_path / "key"
    key.write_text(SECRET + "\n")
    key.chmod(0o640)
    loaded = load({"HOME": str(tmp_path), "RELAY_API_KEY_FILE": str(key)})
    assert loaded.settings.api_key == SECRET
    assert loaded.origins["api_key"] == "environment RELAY_API_KEY_FILE"
    loaded = with_file(toml, 'api_key_file = "../key"', mode=0o644)
    assert loaded.settings.api_key == SECRET
    assert loaded.origins["api_key"] == "relaydesk.toml:1"
    assert load({"HOME": str(tmp_path), "RELAY_API_KEY": "a", "RELAYDESK": "x"}).settings.api_key == "a"


def test_a_key_file_that_cannot_be_used(tmp_path: Path) -> None:
    key = tmp_path / "key"
    env = {"HOME": str(tmp_path), "RELAY_API_KEY_FILE": str(key)}
    assert str(key) in refusal(load, env).message
    for raw in (b"", b"\n", b"\xff", b"x" * 70_000, f"{SECRET} {SECRET}".encode()):
        key.write_bytes(raw)
        key.chmod(0o600)
        assert SECRET not in refusal(load, env).sentence
    key.write_text(SECRET)
    key.chmod(0o644)
    assert refusal(load, env).hint == f"`chmod 600 {key}`"
    key.unlink()
    os.mkfifo(key, 0o600)
    assert "regular" in refusal(load, env).message


def test_a_secret_is_given_once_and_not_as_a_flag(tmp_path: Path, toml: Path) -> None:
    env = {"HOME": str(tmp_path), "RELAY_API_KEY": SECRET, "RELAY_API_KEY_FILE": "/x"}
    assert "RELAY_API_KEY_FILE" in refusal(load, env).message
    assert "api_key_file" in refusal(with_file, toml, f'api_key = "{SECRET}"\napi_key_file = "x"').message
    assert "--api-key" in refusal(load, {"HOME": str(tmp_path)}, {"api_key": SECRET}).message


def test_a_key_in_a_file_that_others_read(toml: Path) -> None:
    assert refusal(with_file, toml, f'api_key = "{SECRET}"', mode=0o604).hint == f"`chmod 600 {toml}`"
    assert with_file(toml, f'api_key = "{SECRET}"', mode=0o640).settings.api_key == SECRET
    assert with_file(toml, "queue = 7", mode=0o644).settings.queue == 7


@pytest.mark.parametrize(
    "text", [f'api_key = "{SECRET} "', f'api_key = ["{SECRET}"]', f'api_key = {{a = "{SECRET}"}}']
)
def test_no_refusal_and_no_view_shows_a_secret(toml: Path, text: str) -> None:
    assert SECRET not in refusal(with_file, toml, text).sentence
    assert SECRET not in refusal(load, {"HOME": "/nowhere", "RELAY_API_KEY": SECRET + " "}).sentence
    loaded = load({"HOME": "/nowhere", "RELAY_API_KEY": SECRET})
    assert SECRET not in repr(loaded)
    assert SECRET not in repr(shown(loaded))
    assert {item.name: item.value for item in shown(loaded)}["RELAY_API_KEY"] == "(set)"


def test_certificate_and_key_go_together() -> None:
    fault = refusal(load, {"HOME": "/nowhere", "RELAY_TLS_CERT": "/c.pem"})
    assert fault.param == "RELAY_TLS_KEY"


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([item.name for item in SETTINGS if not item.secret]),
        st.one_of(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30),
                  st.sampled_from(["1", "10s", "on", "a.lan", "127.0.0.1", ":80", "-1", "info", "~x/y"])),
        max_size=3,
    )
)  # fmt: skip
def test_any_environment_loads_or_is_refused_by_name(env: dict[str, str]) -> None:
    try:
        loaded = load({"HOME": "/nowhere", **env})
    except LocalError as exc:
        fault = exc.fault
    else:
        fault = None
    if fault is not None:
        assert fault.code == "bad_setting"
        assert fault.param in {item.name for item in SETTINGS}
        return
    for item in SETTINGS:
        value = getattr(loaded.settings, item.key)
        if not isinstance(value, Path):
            assert item.kind.parse(item.kind.show(value)) == value


def test_a_pipe_in_the_place_of_the_file_does_not_hang(toml: Path) -> None:
    toml.parent.mkdir()
    os.mkfifo(toml)
    fault = refusal(load, {"XDG_CONFIG_HOME": str(toml.parent.parent)})
    assert "not a regular file" in fault.message


def test_a_number_python_does_not_read(toml: Path) -> None:
    fault = refusal(with_file, toml, "threads = " + "9" * 5000)
    assert "too many digits" in fault.message


def test_settings_come_back_from_how_they_are_shown() -> None:
    env = {"RELAY_LISTEN": "127.0.0.1:9", "RELAY_TLS_NAMES": "a.lan,b.lan", "RELAY_KEEP_ALIVE": "forever"}
    env |= {"RELAY_MODEL_DIR": "/m", "RELAY_API_KEY": "k" * 20, "RELAY_HOST_MEMORY_MB": "512"}
    loaded = load(env=env)
    back = settings_of({row.name: row.value for row in shown(loaded)})
    assert back == dataclasses.replace(loaded.settings, api_key="")
    assert settings_of({"RELAY_QUEUE": "many", "RELAY_OTHER": "x"}) == Settings()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"RELAY_TLS_CERT": "/c.pem", "RELAY_TLS_KEY": "/k.pem"}, "so is RELAY_TLS_CERT"),
        ({"RELAY_V1_TLS": "off"}, "RELAY_V1_TLS=off"),
        ({"RELAY_LISTEN": "127.0.0.1:8383"}, "plain HTTP"),
        ({"RELAY_TLS_DOMAIN": "hub.example.org,*.example.org"}, "cannot be proved by HTTP"),
    ],
)
def test_a_domain_that_would_get_no_certificate_is_refused(more: dict[str, str], said: str) -> None:
    fault = refusal(load, {"HOME": "/nowhere", "RELAY_TLS_DOMAIN": "hub.example.org", **more})
    assert said in fault.message
    assert fault.param == "RELAY_TLS_DOMAIN"
    assert fault.hint


def test_domains_are_read() -> None:
    env = {
        "HOME": "/nowhere",
        "RELAY_TLS_DOMAIN": "Hub.Example.org, *.bücher.example",
        "RELAY_ACME_DNS_HOOK": "/usr/local/bin/hook",
    }
    settings = load(env).settings
    assert settings.tls_domain == ("hub.example.org", "*.xn--bcher-kva.example")
    assert settings.acme_directory.startswith("https://acme-v02.api.letsencrypt.org/")


@pytest.fixture
def credentials(tmp_path: Path) -> dict[str, str]:
    """What systemd gives a service with ``LoadCredential=api-key:…``."""
    directory = tmp_path / "credentials"
    directory.mkdir()
    (directory / "api-key").write_text("from-systemd\n")
    (directory / "api-key").chmod(0o400)
    return {"HOME": "/nowhere", "CREDENTIALS_DIRECTORY": str(directory)}


def test_a_credential_of_systemd_is_the_key(credentials: dict[str, str]) -> None:
    loaded = load(credentials)
    assert loaded.settings.api_key == "from-systemd"
    assert loaded.origins["api_key"] == "systemd credential api-key"
    assert loaded.warnings == ()


def test_the_environment_comes_before_a_credential_and_the_file_after_it(
    credentials: dict[str, str], tmp_path: Path
) -> None:
    assert load(credentials | {"RELAY_API_KEY": "nearer"}).settings.api_key == "nearer"
    toml = tmp_path / "relaydesk.toml"
    toml.write_text('api_key = "farther"\n')
    toml.chmod(0o600)
    assert load(credentials, config=toml).settings.api_key == "from-systemd"


def test_a_directory_without_the_credential_gives_none(credentials: dict[str, str]) -> None:
    (Path(credentials["CREDENTIALS_DIRECTORY"]) / "api-key").unlink()
    assert load(credentials).settings.api_key == ""
    assert load(credentials | {"CREDENTIALS_DIRECTORY": ""}).settings.api_key == ""


@pytest.mark.parametrize("spoil", ["empty", "spaces", "directory", "link", "mode"])
def test_a_credential_that_cannot_be_used_is_no_absent_one(credentials: dict[str, str], spoil: str) -> None:
    path = Path(credentials["CREDENTIALS_DIRECTORY"]) / "api-key"
    path.chmod(0o600)
    if spoil in ("directory", "link"):
        path.unlink()
    if spoil == "directory":
        path.mkdir()
    elif spoil == "link":
        path.symlink_to("/nowhere/else")
    elif spoil == "mode":
        path.chmod(0o644)
    else:
        path.write_text("two words" if spoil == "spaces" else "")
    fault = refusal(load, credentials)
    assert "api-key" in fault.message
    assert "two words" not in fault.sentence
