"""``relaydesk operators init`` and ``certify``: the owner key, which may stay on an offline machine."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import click

from relaydesk.core.commands import ImportCertificate
from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.relay.directory.certificate import (
    DAY_S,
    LONGEST_S,
    NodeCertificate,
    issue_certificate,
    operator_of,
)
from relaydesk.core.relay.directory.envelope import MAX_NUMBER
from relaydesk.core.relay.directory.signing_key import SigningKey, new_key, parse_key
from relaydesk.surfaces.cli.attach import attach_option, find_node, json_option
from relaydesk.surfaces.cli.output import note, print_json, say

_KEY_FILE: Final = "relaydesk-owner.key"
_MOST_BYTES: Final = 16 * 1024
_file = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--out", type=_file, default=_KEY_FILE, show_default=True, help="File of the key, made anew.")
@json_option
def init(out: Path, as_json: bool) -> None:
    """Make an owner key. It may stay on a machine without a network: it only signs certificates."""
    from relaydesk.engine.clock import SystemRng

    key = new_key("owner", SystemRng())
    write_new(out, key.text() + "\n", 0o600)
    operator = operator_of(key.address)
    if as_json:
        print_json({"owner": key.address, "operator": str(operator), "file": str(out)})
        return
    say(f"owner     {key.address}")
    say(f"operator  {operator}")
    note(f"The key is in {out}. Who has it is this operator: keep a copy, and keep it off the node.")


@click.command()
@click.argument("signing", required=False)
@click.option("--key", "key_file", type=_file, default=_KEY_FILE, show_default=True, help="The owner key.")
@click.option(
    "--node", "node_id", type=click.IntRange(0, MAX_NUMBER), help="The node's number, 0 for a first."
)
@click.option(
    "--days",
    type=click.IntRange(1, LONGEST_S // DAY_S),
    default=365,
    show_default=True,
    help="How long the certificate is valid.",
)
@click.option("--out", type=_file, help="File of the certificate; stdout where none is given.")
@click.option("--import", "import_file", type=_file, help="Hand a certificate to the running node instead.")
@json_option
@attach_option
def certify(
    signing: str | None,
    key_file: Path,
    node_id: int | None,
    days: int,
    out: Path | None,
    import_file: Path | None,
    as_json: bool,
    attach: Path | None,
) -> None:
    """Sign the node key SIGNING, an address that `operators list` shows on the node, as its owner."""
    if import_file is not None:
        if signing or out or node_id is not None:
            raise click.UsageError("--import takes a certificate that is made already.")
        _hand_over(import_file, as_json, attach)
        return
    if signing is None:
        raise click.UsageError("Give the node's signing address, or --import FILE.")
    owner = read_key(key_file)
    made = _certificate(owner, signing, node_id or 0, days)
    if out is not None:
        write_new(out, made.encode().decode() + "\n", 0o644)
    if as_json:
        print_json(
            {
                "operator": str(made.ref.operator),
                "node": made.node_id,
                "owner": made.owner,
                "signing": made.signing,
                "expires_ms": made.expires_at * 1000,
                "certificate": made.encode().decode(),
            }
        )
    elif out is None:
        say(made.encode().decode())
    note(
        f"Certifies {made.signing} as node {made.ref} for {days} days. On the node: "
        f"`relaydesk operators certify --import {out or 'FILE'}`."
    )


def read_key(path: Path) -> SigningKey:
    """The owner key in a file. Raises `LocalError`, `EnvError` ``secret_failed``."""
    text = _text(path)
    if path.stat().st_mode & 0o077:
        note(f"Other users can read {path}: `chmod 600 {path}`.")
    return parse_key(text, "owner")


def write_new(path: Path, text: str, mode: int) -> None:
    """Write a file that is not there yet. Raises `LocalError` ``conflict``, `EnvError`."""
    from relaydesk.store.files import file_error

    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise LocalError("conflict", f"{path} is there already", "give another name with --out") from None
    except OSError as error:
        raise file_error(error, "write", path) from error


def _certificate(owner: SigningKey, signing: str, node_id: int, days: int) -> NodeCertificate:
    now = int(time.time())
    return issue_certificate(
        owner.address,
        owner.sign,
        node_id=node_id,
        signing=signing,
        issued_at=now,
        expires_at=now + days * DAY_S,
    )


def _hand_over(path: Path, as_json: bool, attach: Path | None) -> None:
    text = _text(path)
    value = find_node(attach).call(ImportCertificate(text)).value or {}
    if as_json:
        print_json(value)
    elif value.get("in_force"):
        say("the node uses this certificate from now on")
    else:
        say("the node uses this certificate from its next start on: restart it")


def _text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise LocalError("invalid_request", f"{path} is too large to be one", "give the right file")
        return data.decode("ascii")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise EnvError("storage_failed", f"cannot read {path} ({reason})", "give the right file") from error
    except UnicodeDecodeError:
        raise LocalError(
            "invalid_request", f"{path} is no file of relaydesk", "give the right file"
        ) from None
