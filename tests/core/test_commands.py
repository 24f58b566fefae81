from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from relaydesk.core.codec import convert, decode, encode
from relaydesk.core.commands import (
    COMMANDS,
    Access,
    AnyCommand,
    Command,
    FitModel,
    LoadModel,
    RemoveModel,
    Stop,
    name_of,
    read_only_fault,
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_shown(name: str) -> None:
    kind = COMMANDS[name]
    assert kind.help
    assert kind.help[0].islower()
    assert not kind.help.endswith(".")
    assert kind.__doc__
    assert isinstance(kind.access, Access)
    assert name == name_of(kind)
    # A command that loses something is one that changes something.
    assert not (kind.danger and kind.access is Access.READ)


def test_the_union_and_the_table_agree() -> None:
    assert set(get_args(AnyCommand)) == set(COMMANDS.values())
    assert len(COMMANDS) == len(Command.__subclasses__())


def test_names_on_the_wire() -> None:
    assert name_of(LoadModel) == "load-model"
    assert name_of(Stop()) == "stop"
    assert COMMANDS["remove-model"] is RemoveModel


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_cross_the_wire_by_tag(name: str) -> None:
    kind = COMMANDS[name]
    samples = {
        "spec": {"name": "m"},
        "changes": {"ctx": 5},
        "settings": {"models": []},
        "reference": "smollm2",
    }
    samples |= {"wanted": {"key": "ann"}, "since_day": 3, "limit": 5}
    samples |= {"via": ["nginx=http://127.0.0.1:80"], "long": True}
    samples |= {"amount": 5, "expires_ms": 0, "after": 2}
    fields = {field: samples.get(field, "x") for field in kind.__struct_fields__}
    command = convert({"command": name, **fields}, kind)
    assert decode(encode(command), AnyCommand) == command  # type: ignore[arg-type]


def test_another_commands_tag_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(b'{"command":"stop","name":"m"}', LoadModel)


def test_read_only_lets_reads_through_and_names_the_rest() -> None:
    assert read_only_fault(FitModel("m")) is None
    fault = read_only_fault(LoadModel("m"))
    assert fault is not None
    assert fault.code == "refused"
    assert "load-model" in fault.message


@pytest.mark.parametrize("name", ["show-default-key", "rotate-default-key"])
def test_whoever_may_only_look_gets_no_key(name: str) -> None:
    assert COMMANDS[name].access is Access.WRITE
