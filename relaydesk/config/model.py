"""Every setting, one row each. Adding one is adding one field here and running `relaydesk.config.table`."""

# ruff: noqa: RUF009 (a row declares a field; its values are immutable)
from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from relaydesk.config import kinds
from relaydesk.config.kinds import Kind
from relaydesk.config.listen import Listen
from relaydesk.core.access.origins import parse_origin
from relaydesk.core.access.proxies import parse_network

T = TypeVar("T")
PREFIX: Final = "RELAY_"


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of one setting beside its value.

    ``key`` is its name in `Settings`, in the file and, with dashes, as a flag; ``name`` the environment
    variable. ``reload`` says that SIGHUP applies a new value without a restart.
    """

    key: str
    kind: Kind[Any]
    default: str
    help: str
    secret: bool
    reload: bool

    @property
    def name(self) -> str:
        """The environment variable."""
        return PREFIX + self.key.upper()

    @property
    def flag(self) -> str:
        """The command-line flag."""
        return "--" + self.key.replace("_", "-")


def row(kind: Kind[T], default: str, help: str, *, secret: bool = False, reload: bool = False) -> T:
    """Declare one setting. ``default`` is text, read like any other value."""
    parts = {"kind": kind, "default": default, "help": help, "secret": secret, "reload": reload}
    declared: Any = field(default=kind.parse(default), repr=not secret, metadata=parts)
    return declared  # type: ignore[no-any-return]  # dataclasses take a Field where a default stands


def _source(text: str) -> str:
    from relaydesk.core.relay.directory.source import parse_source  # slow to load, and rarely needed

    return str(parse_source(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The values a node runs with. A path of None means the usual place (`relaydesk.config.paths`)."""

    listen: Listen = row(kinds.listen(), ":8383", "Where clients connect; `:port` means every interface.")
    v1_tls: str = row(
        kinds.choice("auto", "on", "off"),
        "auto",
        "TLS for clients; `auto` is on unless only loopback is bound.",
    )
    tls_domain: tuple[str, ...] = row(
        kinds.domains(),
        "",
        "Domains to get a certificate for from an ACME server, whose terms you thereby accept.",
    )
    acme_directory: str = row(
        kinds.https_url(),
        "https://acme-v02.api.letsencrypt.org/directory",
        "The ACME server; Let's Encrypt where nothing else is set.",
    )
    acme_email: str = row(kinds.email(), "", "Mail address that the ACME server may write to.")
    acme_ca: Path | None = row(kinds.path(), "", "CA (PEM) of a private ACME server's own certificate.")
    acme_http_listen: Listen = row(
        kinds.listen(),
        ":80",
        "Where the domain is proved by HTTP, open only while that goes on; port 80 must lead here.",
    )
    acme_dns_hook: Path | None = row(
        kinds.path(), "", "Program that sets TXT records; then the domain is proved by DNS instead."
    )
    tls_cert: Path | None = row(
        kinds.path(), "", "Own certificate chain (PEM), reread when it changes; needs `RELAY_TLS_KEY`."
    )
    tls_key: Path | None = row(
        kinds.path(), "", "Own private key (PEM), reread when it changes; needs `RELAY_TLS_CERT`."
    )
    tls_names: tuple[str, ...] = row(
        kinds.names(),
        "",
        "More names and addresses for relaydesk's own certificate, fixed at the first start.",
    )
    api_key: str = row(
        kinds.secret(),
        "",
        "The default key, used as it is and never stored; without it one is made.",
        secret=True,
    )
    secrets: str = row(
        kinds.choice("file", "keyring"),
        "file",
        "Where secrets are kept: files in the state directory, or the system's keyring; a change moves them.",
    )
    socket: Path | None = row(
        kinds.path(), "", "Control socket; usually `control.sock` in the state directory."
    )
    state_dir: Path | None = row(
        kinds.path(), "", "What survives a restart; usually the user's state directory."
    )
    model_dir: Path | None = row(
        kinds.path(), "", "Where pulled models go; usually `models` in the state directory."
    )
    load_timeout: float = row(
        kinds.duration("1s", "24h"), "10m", "How long one model may take to load.", reload=True
    )
    keep_alive: float = row(
        kinds.duration("0s", "720h", forever=True),
        "15m",
        "How long an idle model stays loaded where it sets nothing itself.",
        reload=True,
    )
    drain_timeout: float = row(
        kinds.duration("0s", "1h"), "30s", "How long running requests may go on after SIGTERM.", reload=True
    )
    heartbeat: float = row(
        kinds.duration("1s", "5m"),
        "15s",
        "Time between comments that keep a silent stream open.",
        reload=True,
    )
    host_memory_mb: int | None = row(
        kinds.optional(kinds.integer(0, 1 << 27, " of MiB")),
        "",
        "Pretend that this machine has this much memory for models.",
        reload=True,
    )
    threads: int = row(
        kinds.integer(0, 1024), "0", "Engine threads; 0 means one less than the cores, at least 1."
    )
    queue: int = row(kinds.integer(1, 100_000), "512", "Requests that may wait for one model.", reload=True)
    path_prefix: str = row(
        kinds.mount(), "", "Path at which a reverse proxy mounts the hub; it is served without it too."
    )
    trusted_proxies: tuple[str, ...] = row(
        kinds.items(
            parse_network,
            "addresses and networks such as 127.0.0.1,10.0.0.0/8 with commas between them",
            "NETS",
        ),
        "",
        "Reverse proxies whose `X-Forwarded-For` and `Forwarded` headers are believed.",
    )
    hosts: tuple[str, ...] = row(
        kinds.names(),
        "",
        "More names that a hub on a loopback address answers to, such as a local proxy's public name.",
    )
    origins: tuple[str, ...] = row(
        kinds.items(
            parse_origin,
            "origins such as https://chat.example.org or http://*.lan:* with commas between them",
            "ORIGINS",
        ),
        "",
        "More web origins whose pages may use the hub with a key; pages of this machine always may.",
    )
    max_body_mb: int = row(kinds.integer(1, 1024, " of MiB"), "8", "Largest request body in MiB.")
    open_discovery: str = row(
        kinds.choice("off", "on"),
        "off",
        "Let who has no key see which models there are; asking them still needs one.",
    )
    audit_days: int = row(kinds.integer(1, 36_500), "90", "How many days of the audit are kept.", reload=True)
    network: str = row(
        kinds.choice("off", "on"),
        "off",
        "Take part in the relay network: relay for others, and ask through others.",
    )
    network_listen: Listen = row(
        kinds.listen(), ":8384", "Where other nodes connect; without a certificate only a loopback address."
    )
    network_tls: str = row(
        kinds.choice("auto", "on", "off"),
        "auto",
        "TLS for other nodes; `auto` is on where there is a certificate, unless only loopback is bound.",
    )
    public_url: str = row(
        kinds.base_url(),
        "",
        "Where others reach the network listener, such as https://node.example.org/path (in labs "
        "http:// too); without it no directory lists this node.",
    )
    outbound_address: str = row(
        kinds.address(),
        "",
        "Address of this machine that connections to other nodes come from; usually the system chooses.",
    )
    directories: tuple[str, ...] = row(
        kinds.items(
            _source,
            "items ADDRESS@https://HOST[/PATH] (in labs http:// too) or ADDRESS@/absolute/file with commas "
            "between them",
            "DIRECTORIES",
        ),
        "",
        "Directories of the network to believe, each by its key's address and where it is read.",
    )
    directory_interval: float = row(
        kinds.duration("1s", "1h"), "5m", "Longest time between looks at a directory.", reload=True
    )
    allow_private: str = row(
        kinds.choice("off", "on"),
        "off",
        "For labs: reach nodes at private addresses, by plain HTTP too; `RELAY_PUBLIC_URL` must be private.",
    )
    network_ca: Path | None = row(
        kinds.path(), "", "CA (PEM) to trust beside the system's, in labs with `RELAY_ALLOW_PRIVATE` only."
    )
    default_key_network: str = row(
        kinds.choice("off", "on"),
        "off",
        "Let the default key ask models of the relay network (`net/…`).",
        reload=True,
    )
    default_key_credit_per_day: int = row(
        kinds.credit(), "0", "What the default key may pay there in a day (UTC); 0 pays nothing.", reload=True
    )
    network_slots: int | None = row(
        kinds.optional(kinds.integer(0, 1024)),
        "",
        "Engine slots that the network may hold at once; usually half, and never the last one.",
    )
    relay_circuits: int = row(
        kinds.integer(1, 65_536), "256", "Requests relayed for others at once.", reload=True
    )
    relay_per_minute: int = row(
        kinds.integer(1, 1_000_000),
        "600",
        "Requests a minute that one address may have relayed.",
        reload=True,
    )
    relay_monthly_gb: int = row(
        kinds.integer(0, 1_000_000),
        "0",
        "GB relayed for others in a month (UTC); 0 means no limit.",
        reload=True,
    )
    target_per_minute: int = row(
        kinds.integer(1, 1_000_000),
        "1200",
        "Reserves a minute that one address, which is usually a relay's, may send to this node; requests and"
        " questions to the ledger as many.",
        reload=True,
    )
    probe_interval: float = row(
        kinds.duration("1s", "1h"),
        "2m",
        "Time between background probes of the network's nodes.",
        reload=True,
    )
    hop_check_interval: float = row(
        kinds.duration("0s", "720h"),
        "6h",
        "Time between checks of what stands in front of this node, at the URL it advertises; 0 means never.",
        reload=True,
    )
    dialback: str = row(
        kinds.choice("off", "on"),
        "off",
        "Look at other operators' nodes that ask for it, once a minute each: do they answer, marked.",
        reload=True,
    )
    log_level: str = row(
        kinds.choice("debug", "info", "warning", "error"),
        "info",
        "Least severity that is logged.",
        reload=True,
    )

    @property
    def tls_on(self) -> bool:
        """What ``v1_tls`` comes to for this listener."""
        return self.v1_tls == "on" or (self.v1_tls == "auto" and not self.listen.loopback_only)


SETTINGS: Final[tuple[Setting, ...]] = tuple(
    Setting(key=item.name, **item.metadata) for item in dataclasses.fields(Settings)
)
BY_KEY: Final[dict[str, Setting]] = {setting.key: setting for setting in SETTINGS}
