"""Everything a front can ask a node to do, one frozen record for each command.

Each class states its ``access`` (READ commands are allowed on a read-only attachment), its ``danger``
(what would be lost, empty where nothing is) and its ``help`` sentence; footer, palette, help, CLI and the
control socket read these. The tag is the command's name on the wire.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Final

import msgspec

from relaydesk.core.access.audit import AuditFilter
from relaydesk.core.errors import Fault
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.view.sections import FaultView


class Access(Enum):
    """What a front may do: look, or also change."""

    READ = "read"
    WRITE = "write"


def _tag(class_name: str) -> str:
    return "".join("-" + char.lower() if char.isupper() else char for char in class_name).lstrip("-")


class Command(msgspec.Struct, frozen=True, tag_field="command", tag=_tag):
    """Base of all commands."""

    access: ClassVar[Access] = Access.WRITE
    danger: ClassVar[str] = ""
    help: ClassVar[str] = ""


class AddModel(Command, frozen=True):
    """Register the GGUF file ``spec.path`` in place, or the server ``spec.url``.

    ``url_key`` is that server's API key; it is kept among the node's secrets and shown nowhere.
    """

    help: ClassVar[str] = "register a model file in place, or another OpenAI-compatible server"
    spec: ModelSpec
    url_key: str = ""


class PullModel(Command, frozen=True):
    """Fetch a model and register it. Runs as a job; ``changes`` are `ModelSpec` fields."""

    help: ClassVar[str] = "fetch a model and register it"
    reference: str
    name: str = ""
    changes: dict[str, Any] = {}


class SetModel(Command, frozen=True):
    """Change fields of a registered model's `ModelSpec`; they count from its next load."""

    help: ClassVar[str] = "change how a model is run"
    name: str
    changes: dict[str, Any]


class RemoveModel(Command, frozen=True):
    """Forget a model; delete its file only where relaydesk wrote it."""

    danger: ClassVar[str] = "the registration and, if relaydesk fetched it, the file"
    help: ClassVar[str] = "forget a model; its file is deleted only if relaydesk wrote it"
    name: str


class LoadModel(Command, frozen=True):
    """Load a model now. Runs as a job."""

    help: ClassVar[str] = "load a model now"
    name: str


class UnloadModel(Command, frozen=True):
    """Unload a model: at once where it is idle, else when its last request ends."""

    danger: ClassVar[str] = "the loaded state; requests under way finish first"
    help: ClassVar[str] = "unload a model once its requests have ended"
    name: str


class FitModel(Command, frozen=True):
    """Report what a model needs, what there is, and what would make it fit."""

    access: ClassVar[Access] = Access.READ
    help: ClassVar[str] = "what a model needs, what there is, and what would make it fit"
    name: str


class DiscoverModels(Command, frozen=True):
    """List GGUF files in other programs' caches that could be added in place."""

    access: ClassVar[Access] = Access.READ
    help: ClassVar[str] = "find model files of other programs that can be added in place"


class CancelJob(Command, frozen=True):
    """Stop a job; what a pull has fetched so far is kept where it can be resumed."""

    help: ClassVar[str] = "stop a long command"
    id: str


class ShowRequest(Command, frozen=True):
    """One request's life by its id."""

    access: ClassVar[Access] = Access.READ
    help: ClassVar[str] = "one request's life: queue, load, first token, rate, outcome"
    id: str


class ShowDefaultKey(Command, frozen=True):
    """Show the default key's secret."""

    help: ClassVar[str] = "show the default key"


class RotateDefaultKey(Command, frozen=True):
    """Replace the default key; the old one stops working at once."""

    danger: ClassVar[str] = "the old key: every client that uses it gets 401 from now on"
    help: ClassVar[str] = "replace the default key"


class AddKey(Command, frozen=True):
    """Make a named key; the outcome's ``key`` is its secret, which is shown nowhere again.

    ``settings``: ``tokens_per_day``, ``max_concurrency``, ``requests_per_minute`` (0: no limit), ``models``
    (empty: all), ``expires_ms`` (0: never), ``in_path``.
    """

    help: ClassVar[str] = "make a key of its own name and limits; its secret is shown once"
    name: str
    settings: dict[str, Any] = {}


class SetKey(Command, frozen=True):
    """Change settings of a named key (see `AddKey`); they hold from the next request on."""

    help: ClassVar[str] = "change a key's limits, models or expiry"
    name: str
    settings: dict[str, Any]


class RemoveKey(Command, frozen=True):
    """Revoke a named key: it opens nothing from now on; its running requests end in peace."""

    danger: ClassVar[str] = "the key: every client that uses it gets 401 from now on"
    help: ClassVar[str] = "revoke a key at once; its running requests end in peace"
    name: str


class ShowUsage(Command, frozen=True):
    """What a key used, by day (UTC). ``since_day`` is in days since 1970."""

    access: ClassVar[Access] = Access.READ
    help: ClassVar[str] = "what a key used, by day"
    name: str
    since_day: int = 0


class ShowAudit(Command, frozen=True):
    """The newest audit records that match, newest first; fields as in `AuditFilter`."""

    access: ClassVar[Access] = Access.READ
    help: ClassVar[str] = "who asked what of which model, and what came of it"
    wanted: AuditFilter = AuditFilter()
    limit: int = 100


class ProbeRelays(Command, frozen=True):
    """Probe every listed node through relays now; ``ref`` (``operator:node``) only that one.

    The outcome's value lists each probe: target, relay, status, code, marker, verdict, who was charged.
    """

    help: ClassVar[str] = "ask every node of the network through a relay how it does"
    ref: str = ""


class ShowOperators(Command, frozen=True):
    """This node's own identity, and the network's operators with their nodes as the directories list them."""

    access: ClassVar[Access] = Access.READ
    help: ClassVar[str] = "the network's operators, their nodes, and who this node is there"


class TrustOperator(Command, frozen=True):
    """Use the nodes of an operator (its id, name or owner's address) whatever directories say of it."""

    help: ClassVar[str] = "use an operator's nodes whatever directories say of it"
    owner: str


class BlockOperator(Command, frozen=True):
    """Never use the nodes of an operator (its id, name or owner's address)."""

    help: ClassVar[str] = "never use an operator's nodes"
    owner: str


class ForgetOperator(Command, frozen=True):
    """Take back what was decided about an owner, and that it was the first known with its id."""

    danger: ClassVar[str] = "the decision about this owner, and that it was the first known with its id"
    help: ClassVar[str] = "take back what was decided about an operator"
    owner: str


class ImportCertificate(Command, frozen=True):
    """Take an owner's certificate for this node's key; ``certificate`` is its file's text."""

    help: ClassVar[str] = "take an owner's certificate for this node's key"
    certificate: str


class ShowLedger(Command, frozen=True):
    """The books as `LedgerView`: accounts and earnings here, and our credit at targets."""

    access: ClassVar[Access] = Access.READ
    help: ClassVar[str] = "accounts, open tickets and earnings here, and our credit at targets"


class IssueCredit(Command, frozen=True):
    """Make a voucher of ``amount`` microunits; the outcome's ``code`` is shown nowhere again.

    ``expires_ms`` is wall-clock milliseconds, 0 for never; ``note`` says who bought it.
    """

    help: ClassVar[str] = "make a voucher for credit at this node; its code is shown once"
    amount: int
    expires_ms: int = 0
    note: str = ""


class RedeemCredit(Command, frozen=True):
    """Hand in a voucher's code: its target is asked at once, or takes it with the next reserve.

    The outcome's ``state`` is ``redeemed`` or ``waiting``; one that its target refuses is a fault.
    """

    help: ClassVar[str] = "hand in a voucher: its target is asked to credit it at once, else within minutes"
    code: str


class ShowStatement(Command, frozen=True):
    """An account's rows after number ``after``, a page of them.

    ``account``: an address or its beginning; empty where there is only one.
    """

    access: ClassVar[Access] = Access.READ
    help: ClassVar[str] = "every row of an account, signed and chained"
    account: str = ""
    after: int = 0


class FetchStatement(Command, frozen=True):
    """Our account at another node (``operator:node``), asked for there; rows after number ``after``, a page.

    With ``after`` 0 all of it is fetched and held against our own book, and kept for the pages behind.
    """

    help: ClassVar[str] = "our account at another node, fetched there and held against our own book"
    node: str
    after: int = 0


class ResolveDispute(Command, frozen=True):
    """End a frozen ticket: ``amount`` microunits are earned, the rest goes back to its payer."""

    danger: ClassVar[str] = "the dispute: what is earned of it and what goes back is final"
    help: ClassVar[str] = "end a frozen ticket: what is earned of it, the rest goes back"
    tx_id: str
    amount: int


class CheckHop(Command, frozen=True):
    """Check what stands in front of this node. Runs as a job; the section ``hopcheck`` shows it.

    ``url``: where the world reaches the node (empty: the URL it advertises). ``via``: layers between, from
    the inside outwards, each ``NAME=URL``. ``long``: silences of up to two minutes too.
    """

    help: ClassVar[str] = "find what in front of this node takes its marker away"
    url: str = ""
    via: tuple[str, ...] = ()
    long: bool = False


class PrepareHopCheck(Command, frozen=True):
    """Make a nonce for a check from elsewhere: for five minutes the node answers probes that carry it.

    The outcome's value: ``nonce``, ``expires_at_ms``, ``url``, ``layers`` (`LayerView`), ``target`` (another
    operator's ``operator:node``, or empty), ``lab``.
    """

    help: ClassVar[str] = "let a check from elsewhere have timed answers of this node for five minutes"


class LookFromOutside(Command, frozen=True):
    """Ask peers what they see of this node at the URL it advertises (``url`` must be that one, or empty).

    The outcome's value: ``status``, ``headers``, ``kind``, ``problem``; None where no peer looks.
    """

    help: ClassVar[str] = "ask another operator's node how this one looks from outside"
    url: str = ""


class RenewCa(Command, frozen=True):
    """Replace the hub's certificate authority."""

    danger: ClassVar[str] = "the old CA: every client that trusts it must be given the new ca.pem"
    help: ClassVar[str] = "make a new certificate authority"


class ShowConfig(Command, frozen=True):
    """The settings in force and where each came from; secrets are left out."""

    access: ClassVar[Access] = Access.READ
    help: ClassVar[str] = "the settings in force and where each came from"


class Reload(Command, frozen=True):
    """Read settings and certificate files again, as SIGHUP does."""

    help: ClassVar[str] = "read settings and certificate files again"


class Stop(Command, frozen=True):
    """Drain, then stop the node, as SIGTERM does."""

    danger: ClassVar[str] = "the service: no new requests, streams get the drain time to end"
    help: ClassVar[str] = "drain, then stop the node"


AnyCommand = (
    AddModel
    | PullModel
    | SetModel
    | RemoveModel
    | LoadModel
    | UnloadModel
    | FitModel
    | DiscoverModels
    | CancelJob
    | ShowRequest
    | ShowDefaultKey
    | RotateDefaultKey
    | AddKey
    | SetKey
    | RemoveKey
    | ShowUsage
    | ShowAudit
    | ProbeRelays
    | ShowOperators
    | TrustOperator
    | BlockOperator
    | ForgetOperator
    | ImportCertificate
    | ShowLedger
    | IssueCredit
    | RedeemCredit
    | ShowStatement
    | FetchStatement
    | ResolveDispute
    | CheckHop
    | PrepareHopCheck
    | LookFromOutside
    | RenewCa
    | ShowConfig
    | Reload
    | Stop
)

COMMANDS: Final[dict[str, type[Command]]] = {
    str(cls.__struct_config__.tag): cls for cls in Command.__subclasses__()
}


def name_of(command: Command | type[Command]) -> str:
    """The command's name on the wire, for example ``load-model``."""
    return str(command.__struct_config__.tag)


def read_only_fault(command: Command) -> Fault | None:
    """Why a read-only attachment may not do this, or None where it may."""
    if command.access is Access.READ:
        return None
    return Fault(
        "refused",
        f"{name_of(command)} changes the node and this attachment is read-only",
        "attach without --read-only",
    )


class Outcome(msgspec.Struct, frozen=True):
    """What came of a command. ``value`` is its answer as JSON-able data; ``job`` the id of a long one.

    An outcome may carry a secret the command was made to show; a view never does.
    """

    ok: bool
    value: Any = None
    job: str = ""
    fault: FaultView | None = None
