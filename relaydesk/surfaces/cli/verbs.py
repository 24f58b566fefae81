"""The whole command line as one table: what there is, where it is, and its line of help."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import click


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb: its name, where its command is (``module:attribute``), its line of help, its own verbs.

    The help stands here so that the list of verbs is printed without importing any of them.
    """

    name: str
    target: str
    help: str
    below: tuple[Verb, ...] = ()

    @property
    def built(self) -> bool:
        """Whether its module is part of this version; one that is not has no line in the help."""
        return importlib.util.find_spec(self.target.partition(":")[0]) is not None

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


_CLI: Final = "relaydesk.surfaces.cli"
_MODEL: Final = (
    Verb("pull", f"{_CLI}.model.pull:pull", "Fetch a model and register it."),
    Verb("add", f"{_CLI}.model.add:add", "Register a model file where it is, or another server."),
    Verb("discover", f"{_CLI}.model.discover:discover", "Find model files of other programs to add."),
    Verb("list", f"{_CLI}.model.listing:listing", "All models and the memory they compete for."),
    Verb("fit", f"{_CLI}.model.fit:fit", "What a model needs, what there is, what would help."),
    Verb("load", f"{_CLI}.model.load:load", "Load a model now."),
    Verb("unload", f"{_CLI}.model.load:unload", "Unload a model once its requests have ended."),
    Verb("set", f"{_CLI}.model.edit:edit", "Change how a model is run."),
    Verb("rm", f"{_CLI}.model.edit:remove", "Forget a model."),
)
_REQUEST: Final = (
    Verb("list", f"{_CLI}.request:listing", "The newest requests."),
    Verb("show", f"{_CLI}.request:show", "One request's life: where its time went."),
)
_KEY: Final = (
    Verb("add", f"{_CLI}.key.edit:add", "Make a key; its secret is shown once."),
    Verb("list", f"{_CLI}.key.show:listing", "All keys, what they may do and have used today."),
    Verb("set", f"{_CLI}.key.edit:edit", "Change what a key may do."),
    Verb("rm", f"{_CLI}.key.edit:remove", "Revoke a key."),
    Verb("usage", f"{_CLI}.key.show:usage", "What a key used, by day."),
)
_AUDIT: Final = (Verb("tail", f"{_CLI}.audit:tail", "The newest records, or what comes."),)
_RELAYS: Final = (Verb("probe", f"{_CLI}.relays:probe", "Ask nodes through relays how they do, now."),)
_OPERATORS: Final = (
    Verb("list", f"{_CLI}.operators.listing:listing", "The network's operators, and who this node is."),
    Verb("init", f"{_CLI}.operators.keys:init", "Make an owner key."),
    Verb("certify", f"{_CLI}.operators.keys:certify", "Sign a node's key as its owner."),
    Verb("trust", f"{_CLI}.operators.decide:trust", "Use an operator's nodes whatever directories say."),
    Verb("block", f"{_CLI}.operators.decide:block", "Never use an operator's nodes."),
    Verb("forget", f"{_CLI}.operators.decide:forget", "Take back what was decided."),
)
_DIRECTORY: Final = (
    Verb("init", f"{_CLI}.directory.keep:init", "Begin a directory of one's own."),
    Verb("admit", f"{_CLI}.directory.keep:admit", "Admit an operator to it, or evict one."),
    Verb("list", f"{_CLI}.directory.listing:listing", "Whom it admits, and their nodes."),
    Verb("sign", f"{_CLI}.directory.keep:sign", "Sign it now."),
    Verb("serve", f"{_CLI}.directory.serve:serve", "Keep and serve it without a node."),
)
_LEDGER: Final = (
    Verb("balance", f"{_CLI}.ledger.balance:balance", "Accounts and earnings here, our credit elsewhere."),
    Verb("credit", f"{_CLI}.ledger.credit:credit", "Make a voucher; its code is shown once."),
    Verb("redeem", f"{_CLI}.ledger.credit:redeem", "Hand in a voucher of another operator."),
    Verb("statement", f"{_CLI}.ledger.statement:statement", "An account's rows; compare two statements."),
    Verb("resolve", f"{_CLI}.ledger.credit:resolve", "End a disputed ticket."),
)
_CONFIG: Final = (
    Verb("show", f"{_CLI}.config:show", "The settings in force."),
    Verb("check", f"{_CLI}.config:check", "Whether a node would start with the settings given."),
)
_SERVICE: Final = (
    Verb("print", f"{_CLI}.service:print_unit", "Print the unit that `install` would write."),
    Verb("install", f"{_CLI}.service:install", "Write the unit and say how to start it."),
    Verb("uninstall", f"{_CLI}.service:uninstall", "Remove the unit and say how to stop it."),
)
_TLS: Final = (Verb("renew-ca", f"{_CLI}.tls:renew_ca", "Make a new certificate authority."),)

VERBS: Final = (
    Verb("serve", f"{_CLI}.serve:serve", "Run a headless node."),
    Verb("console", f"{_CLI}.console:console", "The console: on a running node, else with one of its own."),
    Verb("demo", f"{_CLI}.demo:demo", "A whole node with a real small model, on loopback."),
    Verb("status", f"{_CLI}.status:status", "What the node is and does."),
    Verb(
        "model",
        f"{_CLI}.model:model",
        "Models: pull, add, discover, list, fit, load, unload, set, rm.",
        _MODEL,
    ),
    Verb("token", f"{_CLI}.token:token", "Show or rotate the default API key."),
    Verb("key", f"{_CLI}.key.group:key", "Named keys: add, list, set, rm, usage.", _KEY),
    Verb("request", f"{_CLI}.request:request", "Requests and where their time went: list, show.", _REQUEST),
    Verb("audit", f"{_CLI}.audit:audit", "Who asked what of which model: tail.", _AUDIT),
    Verb("relays", f"{_CLI}.relays:relays", "The relay network as this node sees it: probe.", _RELAYS),
    Verb(
        "operators",
        f"{_CLI}.operators.group:operators",
        "Operators: list, init, certify, trust, block, forget.",
        _OPERATORS,
    ),
    Verb(
        "directory",
        f"{_CLI}.directory.group:directory",
        "Keep a network directory: init, admit, list, sign, serve.",
        _DIRECTORY,
    ),
    Verb(
        "ledger",
        f"{_CLI}.ledger.group:ledger",
        "Credit: balance, credit, redeem, statement, resolve.",
        _LEDGER,
    ),
    Verb(
        "check-hop",
        f"{_CLI}.check_hop:check_hop",
        "Find what in front of a node takes its marker away.",
    ),
    Verb("config", f"{_CLI}.config:config", "The settings: show, check.", _CONFIG),
    Verb("doctor", f"{_CLI}.doctor:doctor", "Check this machine and say what to do."),
    Verb(
        "service",
        f"{_CLI}.service:service",
        "Run relaydesk as a systemd service: print, install, uninstall.",
        _SERVICE,
    ),
    Verb("tls", f"{_CLI}.tls:tls", "The node's own certificate authority: renew-ca.", _TLS),
)


def verb(name: str) -> Verb:
    """A top verb by its name."""
    return next(each for each in VERBS if each.name == name)


def paths() -> Iterator[str]:
    """Every command of this version as people type it, without the program's name: ``model list``."""
    for top in VERBS:
        if top.built:
            yield top.name
            yield from (f"{top.name} {inner.name}" for inner in top.below)
