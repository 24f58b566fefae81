"""What people can set of a model: options of ``add`` and ``pull``, and ``KEY=VALUE`` of ``set``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar, get_args

import click

from relaydesk.config.kinds import duration
from relaydesk.core.errors import FaultError, LocalError
from relaydesk.core.ids import parse_model_name
from relaydesk.core.pool.model import MOST_RATE, KvType
from relaydesk.core.relay.price.rate import MICRO, micro_rate, parse_usd

F = TypeVar("F", bound=Callable[..., Any])

_KEEP_ALIVE: Final = duration("0s", "720h", forever=True)
_YES: Final = {"yes": True, "true": True, "on": True, "1": True}
_NO: Final = {"no": False, "false": False, "off": False, "0": False}


@dataclass(frozen=True, slots=True)
class Field:
    """One editable part of a `ModelSpec`.

    ``key`` is its name there, ``option`` the one people type (``--option`` and ``option=…``). ``parse``
    raises `ValueError` with what is allowed. ``switch`` makes ``--option/--no-option``, ``many`` an option
    that may be repeated.
    """

    key: str
    option: str
    parse: Callable[[str], Any]
    metavar: str
    help: str
    switch: bool = False
    many: bool = False
    default: str = ""

    def text(self, *, defaults: bool) -> str:
        """The line of help, with the default where one is asked for."""
        return f"{self.help} [default: {self.default}]" if defaults and self.default else self.help


class _Parsed(click.ParamType[Any]):
    """A click type over a field's ``parse``."""

    name = "value"

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _whole(least: int, most: int, also: str = "") -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"{text!r} is not a whole number from {least} to {most}{also}")
        return int(text)

    return parse


def _word(text: str) -> bool:
    value = {**_YES, **_NO}.get(text.lower())
    if value is None:
        raise ValueError(f"{text!r} is neither yes nor no")
    return value


def _kv_type(text: str) -> str:
    if text.lower() not in get_args(KvType):
        raise ValueError(f"{text!r} is none of {', '.join(get_args(KvType))}")
    return text.lower()


def _keep_alive(text: str) -> int:
    """Seconds; whole ones, since the idle timer ticks in seconds. -1 for ever."""
    try:
        return round(_KEEP_ALIVE.parse(text))
    except ValueError:
        raise ValueError(f"{text!r} is not {_KEEP_ALIVE.allowed} (0 unloads at once)") from None


def _price(text: str) -> int:
    """MicroUSDC per 1,000,000 tokens, of USD as people type them: rounded up as the wire has it."""
    try:
        rate = micro_rate(parse_usd(text))
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None
    if rate > MOST_RATE:
        raise ValueError(f"{text!r} is more than {MOST_RATE // MICRO} USD for 1M tokens")
    return rate


def _path(text: str) -> str:
    """An absolute path: the node runs in another directory. Empty means none."""
    return os.path.abspath(os.path.expanduser(text)) if text else ""


def _name(text: str) -> str:
    try:
        return parse_model_name(text)
    except FaultError as error:
        raise ValueError(error.fault.message) from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(_name(part) for part in text.replace(",", " ").split())


_KV_TYPES: Final = ", ".join(get_args(KvType))

FIELDS: Final[tuple[Field, ...]] = (
    Field("aliases", "alias", _names, "NAME", "Another name for it; repeat for more.", many=True),
    Field(
        "ctx",
        "ctx",
        _whole(0, 1 << 22),
        "TOKENS",
        "What one request can use; 0 is what the model was trained for, at most 4096.",
        default="0",
    ),
    Field("slots", "slots", _whole(1, 64), "N", "Requests that run at once.", default="4"),
    Field(
        "kv_k",
        "kv-k",
        _kv_type,
        "TYPE",
        f"Type of the cache's keys: {_KV_TYPES}. q8_0 halves it.",
        default="f16",
    ),
    Field("kv_v", "kv-v", _kv_type, "TYPE", "Type of the cache's values, one of the same.", default="f16"),
    Field("template", "template", _path, "FILE", "Chat template (Jinja) in place of the model's own."),
    Field("projector", "projector", _path, "FILE", "Projector (mmproj) for a model that takes images."),
    Field("draft", "draft", _path, "FILE", "Small model that drafts tokens for this one."),
    Field(
        "gpu_layers",
        "gpu-layers",
        _whole(-1, 100_000),
        "N",
        "Layers on the GPU; -1 is as many as fit.",
        default="-1",
    ),
    Field(
        "keep_alive_s",
        "keep-alive",
        _keep_alive,
        "TIME",
        "How long it stays loaded when idle: 15m, 0 or forever.",
        default="RELAY_KEEP_ALIVE",
    ),
    Field("preload", "preload", _word, "", "Load it when the node starts.", switch=True, default="no"),
    Field(
        "spill",
        "spill",
        _word,
        "",
        "Let layers that no GPU has room for run from RAM.",
        switch=True,
        default="yes",
    ),
    Field("host_only", "host-only", _word, "", "Never leave this machine.", switch=True, default="no"),
    Field(
        "offer",
        "offer",
        _word,
        "",
        "Let the relay network use it while it is loaded; it needs two slots.",
        switch=True,
        default="no",
    ),
    Field("input_rate", "input-price", _price, "USD", "What strangers pay for 1M tokens read.", default="0"),
    Field(
        "output_rate", "output-price", _price, "USD", "What strangers pay for 1M tokens written.", default="0"
    ),
    Field("path", "path", _path, "FILE", "Where its file is, after it was moved."),
    Field("url", "url", str, "URL", "For a model on another server: where that is."),
    Field("url_model", "url-model", str, "NAME", "For a model on another server: its name there."),
)
BY_OPTION: Final[Mapping[str, Field]] = {
    alias: field for field in FIELDS for alias in (field.key, field.option, field.option.replace("-", "_"))
}


def field_options(*, without: frozenset[str] = frozenset(), defaults: bool = True) -> Callable[[F], F]:
    """Options for all fields but those of ``without``; `chosen` turns what was given into changes.

    ``defaults``: the help says what counts where the option is not given, which for a change is nothing.
    """

    def decorate(command: F) -> F:
        for field in reversed(FIELDS):
            if field.key in without:
                continue
            flag = f"--{field.option}" + (f"/--no-{field.option}" if field.switch else "")
            if field.switch:
                option = click.option(flag, field.key, default=None, help=field.text(defaults=defaults))
            else:
                option = click.option(
                    flag,
                    field.key,
                    type=_Parsed(field.parse),
                    metavar=field.metavar,
                    multiple=field.many,
                    default=None,
                    help=field.text(defaults=defaults),
                )
            command = option(command)
        return command

    return decorate


def chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    """The changes that a command's options ask for, by `ModelSpec` field."""
    changes: dict[str, Any] = {}
    for field in FIELDS:
        value = options.get(field.key)
        if field.many:
            if value:
                changes[field.key] = tuple(dict.fromkeys(item for group in value for item in group))
        elif value is not None:
            changes[field.key] = value
    return changes


def parse_pair(text: str) -> tuple[str, Any]:
    """``KEY=VALUE`` as a field and its value. Raises `LocalError` ``invalid_request``."""
    key, equals, value = text.partition("=")
    field = BY_OPTION.get(key)
    if field is None or not equals:
        known = ", ".join(field.option for field in FIELDS)
        raise LocalError(
            "invalid_request", f"{text!r} sets nothing of a model", f"write KEY=VALUE with {known}"
        )
    try:
        return field.key, field.parse(value)
    except ValueError as error:
        raise LocalError("invalid_request", f"{key}: {error}", param=field.key) from None


def name_option(command: F) -> F:
    """``--name N``."""
    return click.option(
        "--name", type=_Parsed(_name), metavar="NAME", default=None, help="The name that clients use for it."
    )(command)
