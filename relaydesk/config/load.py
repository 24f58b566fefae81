"""Settings in layers: flag, environment, relaydesk.toml, default. Each value keeps its origin."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from relaydesk.config import kinds
from relaydesk.config.model import BY_KEY, PREFIX, SETTINGS, Setting, Settings
from relaydesk.config.paths import config_file
from relaydesk.config.secret_file import read_secret_file
from relaydesk.config.toml_file import TomlFile, read_toml
from relaydesk.core.errors import LocalError
from relaydesk.core.text import safe_text

FILE_SUFFIX: Final = "_file"
DEFAULT_ORIGIN: Final = "default"
_CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
# Read by this module and its callers, but no setting of the node.
_OTHER_VARIABLES: Final = frozenset({"RELAY_CONFIG", "RELAY_DEBUG"})


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings with where each came from. ``warnings`` are sentences for the log, none of them fatal."""

    settings: Settings
    origins: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    config_file: Path | None = None


@dataclass(frozen=True, slots=True)
class _Given:
    """A value as text, before it is read. ``name`` is what the user wrote, ``base`` where a path starts."""

    text: str
    origin: str
    name: str
    base: str
    is_file: bool = False


def load(
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, str | None] | None = None,
    config: Path | None = None,
) -> Loaded:
    """Read every layer. ``flags`` go by key, None meaning not given; ``config`` is the file of ``--config``.

    A variable that is set but empty counts as not set: service managers and compose files pass those.
    Raises `LocalError` ``bad_setting`` for a malformed value, an unknown key in the file, a secret given
    twice or readable by everybody. The text never holds a secret's value.
    """
    env = os.environ if env is None else env
    chosen = config or (Path(env["RELAY_CONFIG"]).expanduser() if env.get("RELAY_CONFIG") else None)
    toml = read_toml(chosen or config_file(env), required=chosen is not None)
    if toml is not None:
        _check_keys(toml)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for setting in SETTINGS:
        given = (
            _from_flag(setting, flags or {})
            or _from_env(setting, env)
            or _from_credential(setting, env)
            or _from_toml(setting, toml)
        )
        origins[setting.key] = given.origin if given else DEFAULT_ORIGIN
        if given is not None:
            values[setting.key] = _read(setting, given)
    settings = dataclasses.replace(Settings(), **values)
    _check_together(settings)
    return Loaded(settings, origins, tuple(_unknown_variables(env)), toml.path if toml else None)


def _from_flag(setting: Setting, flags: Mapping[str, str | None]) -> _Given | None:
    text = flags.get(setting.key)
    if text is None:
        return None
    if setting.secret:
        raise LocalError(
            "bad_setting",
            f"{setting.flag} would show a secret to every local user",
            f"set {setting.name} or {setting.name}_FILE",
            param=setting.name,
        )
    return _Given(text, f"flag {setting.flag}", setting.flag, os.getcwd())


def _from_env(setting: Setting, env: Mapping[str, str]) -> _Given | None:
    plain, twin = env.get(setting.name), env.get(f"{setting.name}_FILE") if setting.secret else None
    if plain and twin:
        raise _twice(setting, setting.name, f"{setting.name}_FILE", "in the environment")
    if twin:
        name = f"{setting.name}_FILE"
        return _Given(twin, f"environment {name}", name, os.getcwd(), is_file=True)
    return _Given(plain, f"environment {setting.name}", setting.name, os.getcwd()) if plain else None


def _from_credential(setting: Setting, env: Mapping[str, str]) -> _Given | None:
    """A credential of systemd (``LoadCredential=api-key:…``): a file that only this service can read."""
    directory = env.get(_CREDENTIALS)
    if not (setting.secret and directory):
        return None
    path = os.path.join(directory, setting.key.replace("_", "-"))
    if not os.path.lexists(path):
        return None
    name = f"credential {os.path.basename(path)}"
    return _Given(path, f"systemd {name}", name, os.getcwd(), is_file=True)


def _from_toml(setting: Setting, toml: TomlFile | None) -> _Given | None:
    if toml is None:
        return None
    twin_key = setting.key + FILE_SUFFIX
    has_plain, has_twin = setting.key in toml.entries, setting.secret and twin_key in toml.entries
    if has_plain and has_twin:
        raise _twice(setting, setting.key, twin_key, f"in {toml.path}")
    if not (has_plain or has_twin):
        return None
    if has_plain and setting.secret and toml.others_read:
        raise LocalError(
            "bad_setting",
            f"{toml.path} holds {setting.key} and every local user can read it",
            f"`chmod 600 {toml.path}`",
            param=setting.name,
        )
    key = twin_key if has_twin else setting.key
    text = _toml_text(setting, key, toml, is_file=has_twin)
    return _Given(text, toml.origin(key), key, str(toml.path.parent), is_file=has_twin)


def _toml_text(setting: Setting, key: str, toml: TomlFile, *, is_file: bool) -> str:
    value = toml.entries[key].value
    if isinstance(value, str):
        return value
    allowed = () if is_file else setting.kind.toml
    if isinstance(value, int) and not isinstance(value, bool) and int in allowed:
        return str(value)
    if isinstance(value, list) and list in allowed and all(isinstance(item, str) for item in value):
        return ",".join(value)
    shown = type(value).__name__ if setting.secret else repr(value)
    raise _malformed(setting, _Given(shown, f"{toml.path.parent}/{toml.origin(key)}", key, "", is_file))


def _read(setting: Setting, given: _Given) -> Any:
    text = given.text
    if given.is_file:
        path = Path(os.path.join(given.base, Path(text).expanduser()))
        text = read_secret_file(
            path, given.name if given.name.startswith("credential") else setting.name + "_FILE"
        )
    try:
        return kinds.resolve(setting.kind.parse(text.strip() if not setting.secret else text), given.base)
    except ValueError as exc:
        raise _malformed(setting, given) from exc


def _malformed(setting: Setting, given: _Given) -> LocalError:
    shown = f"is {safe_text(given.text, 80)!s}"
    if given.is_file:
        shown = f"names {safe_text(given.text, 80)!s}, which does not hold a usable value"
    elif setting.secret:
        shown = "has a value that cannot be used"
    return LocalError(
        "bad_setting",
        f"{setting.name} {shown} (from {given.origin})",
        f"give {setting.kind.allowed}",
        param=setting.name,
    )


def _twice(setting: Setting, one: str, other: str, where: str) -> LocalError:
    return LocalError(
        "bad_setting", f"{one} and {other} are both given {where}", "remove one of them", param=setting.name
    )


def _check_together(settings: Settings) -> None:
    """Rules over more than one setting."""
    if (settings.tls_cert is None) != (settings.tls_key is None):
        given, missing = ("CERT", "KEY") if settings.tls_cert else ("KEY", "CERT")
        raise LocalError(
            "bad_setting",
            f"RELAY_TLS_{given} is set without RELAY_TLS_{missing}",
            "set both, or neither for relaydesk's own certificate",
            param=f"RELAY_TLS_{missing}",
        )
    if settings.tls_domain:
        _check_domain(settings)


def _check_domain(settings: Settings) -> None:
    if settings.tls_cert is not None:
        problem, hint = "so is RELAY_TLS_CERT", "set one of them"
    elif not settings.tls_on:
        problem = f"RELAY_V1_TLS={settings.v1_tls} with RELAY_LISTEN={settings.listen} means plain HTTP"
        hint = "set RELAY_V1_TLS=on, or unset RELAY_TLS_DOMAIN"
    elif settings.acme_dns_hook is None and any(name.startswith("*") for name in settings.tls_domain):
        problem = "a domain with * cannot be proved by HTTP"
        hint = "set RELAY_ACME_DNS_HOOK, or name each domain"
    else:
        return
    raise LocalError("bad_setting", f"RELAY_TLS_DOMAIN is set, but {problem}", hint, param="RELAY_TLS_DOMAIN")


def _check_keys(toml: TomlFile) -> None:
    known = [*BY_KEY, *(setting.key + FILE_SUFFIX for setting in SETTINGS if setting.secret)]
    for key in toml.entries:
        if key not in known:
            near = _nearest(key.lower().removeprefix(PREFIX.lower()), known)
            raise LocalError(
                "bad_setting",
                f"{toml.path.parent}/{toml.origin(key)} has the unknown key {safe_text(key, 60)}",
                f"did you mean {near}?" if near else f"the keys are {', '.join(known)}",
                param=safe_text(key, 60),
            )


def _unknown_variables(env: Mapping[str, str]) -> Iterable[str]:
    known = {setting.name for setting in SETTINGS} | _OTHER_VARIABLES
    known |= {f"{setting.name}_FILE" for setting in SETTINGS if setting.secret}
    for name in sorted(env):
        if name.startswith(PREFIX) and name not in known:
            near = _nearest(name, sorted(known))
            yield f"unknown setting {safe_text(name, 60)} is ignored" + (
                f": did you mean {near}?" if near else ""
            )


def _nearest(word: str, known: list[str]) -> str | None:
    import difflib  # only where something is wrong: a plain start has no use for it

    return next(iter(difflib.get_close_matches(word, known, 1)), None)
