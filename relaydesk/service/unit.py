"""The systemd units, system and user, as text.

The system unit runs as a user of its own that exists only while it runs, with as little of the machine in
reach as the engines allow. What is left open has its reason in the unit itself, where an operator reads it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

NAME: Final = "relaydesk.service"
# By how its first line begins a unit is known as ours: only such a one is replaced or removed.
OURS: Final = "# Written by `relaydesk service`"
MARK: Final = f"{OURS}; own changes belong in `systemctl edit relaydesk`."
GPU_GROUPS: Final = ("render", "video")
# Work after the drain: streams get their error frame, workers end, the store is closed.
_STOP_S: Final = 15
_PRIVILEGED: Final = 1024


@dataclass(frozen=True, slots=True)
class UnitOptions:
    """What the unit depends on.

    ``command`` is the program with its arguments, ``drain_s`` `RELAY_DRAIN_TIMEOUT`, ``port`` the port of
    `RELAY_LISTEN`, ``acme_port`` that of `RELAY_ACME_HTTP_LISTEN` where it is used, ``groups`` those of
    `GPU_GROUPS` that this machine has: a unit that names another does not start.
    """

    command: Sequence[str]
    drain_s: float = 30.0
    port: int = 8383
    acme_port: int = 0
    groups: Sequence[str] = ()


def system_unit(options: UnitOptions) -> str:
    """The unit for the whole machine."""
    return "\n".join(
        [
            MARK,
            "# Settings: /etc/relaydesk/relaydesk.toml, or variables in /etc/relaydesk/relaydesk.env.",
            "",
            *_head("network-online.target"),
            *_service(options),
            *_IDENTITY,
            *([f"SupplementaryGroups={' '.join(options.groups)}"] if options.groups else []),
            *_capabilities(options.port, options.acme_port),
            *_SANDBOX,
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def user_unit(options: UnitOptions) -> str:
    """The unit of one user. State and socket are where `relaydesk serve` by hand has them."""
    return "\n".join(
        [
            MARK,
            "# `loginctl enable-linger` keeps it running while you are logged out.",
            "",
            *_head(""),
            *_service(options),
            *_USER_SANDBOX,
            "",
            "[Install]",
            "WantedBy=default.target",
            "",
        ]
    )


def _head(after: str) -> list[str]:
    lines = ["[Unit]", "Description=relaydesk: language models at home, behind one API"]
    if after:
        lines += [f"Wants={after}", f"After={after}"]
    # Five tries in ten minutes, then somebody has to look.
    return [*lines, "StartLimitIntervalSec=600", "StartLimitBurst=5", ""]


def _service(options: UnitOptions) -> list[str]:
    return [
        "[Service]",
        "Type=notify",
        "NotifyAccess=main",
        f"ExecStart={' '.join(map(quote, options.command))}",
        "ExecReload=/bin/kill -HUP $MAINPID",
        "Restart=on-failure",
        "RestartSec=3",
        "# 2: a setting cannot be used. Trying again does not change it.",
        "RestartPreventExitStatus=2",
        "WatchdogSec=60",
        "TimeoutStartSec=120",
        f"# Longer than RELAY_DRAIN_TIMEOUT ({options.drain_s:g} s): running requests may end.",
        f"TimeoutStopSec={round(options.drain_s) + _STOP_S}",
        "# The node ends its engines itself, after they have drained.",
        "KillMode=mixed",
        "# An engine that ran out of memory must not take the node with it.",
        "OOMPolicy=continue",
        "LimitNOFILE=65536",
        "UMask=0077",
    ]


def _capabilities(*ports: int) -> list[str]:
    if any(0 < port < _PRIVILEGED for port in ports):
        return ["AmbientCapabilities=CAP_NET_BIND_SERVICE", "CapabilityBoundingSet=CAP_NET_BIND_SERVICE"]
    return ["CapabilityBoundingSet="]


def quote(word: str) -> str:
    """A word of a command line as systemd reads it (systemd.service(5), "Command lines")."""
    escaped = word.replace("%", "%%").replace("$", "$$")
    if escaped and shlex.quote(word) == word:
        return escaped
    inner = escaped.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'


_IDENTITY: Final = (
    "",
    "# A user that exists only while this runs; its files are below /var/lib/private.",
    "DynamicUser=yes",
    "StateDirectory=relaydesk",
    "StateDirectoryMode=0700",
    "CacheDirectory=relaydesk",
    "CacheDirectoryMode=0700",
    "# Others may look in, so that `relaydesk status` can say `sudo`; the socket itself is 0600.",
    "RuntimeDirectory=relaydesk",
    "RuntimeDirectoryMode=0755",
    "ConfigurationDirectory=relaydesk",
    "EnvironmentFile=-/etc/relaydesk/relaydesk.env",
    "Environment=XDG_CONFIG_HOME=/etc HOME=%S/relaydesk XDG_CACHE_HOME=%C/relaydesk",
    "# An API key of your own, which nothing else on this machine can read:",
    "#LoadCredential=api-key:/etc/relaydesk/api-key",
)

_USER_SANDBOX: Final = (
    "",
    "NoNewPrivileges=yes",
    "LockPersonality=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "SystemCallArchitectures=native",
)

_SANDBOX: Final = (
    "",
    "# GPUs stay in reach: no PrivateDevices, and no ProtectClock, which closes devices as well. Where",
    "# all their modules are loaded before this starts, or there is no GPU, this closes the others:",
    "#DevicePolicy=closed",
    "#DeviceAllow=char-nvidia* rw",
    "#DeviceAllow=char-drm rw",
    "#DeviceAllow=char-kfd rw",
    "# Engines compile kernels for GPUs at run time: no MemoryDenyWriteExecute.",
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "# Read-only rather than hidden: `model add` takes files where they are, if their rights allow it.",
    "ProtectHome=read-only",
    "PrivateTmp=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "ProtectProc=invisible",
    "LockPersonality=yes",
    "RemoveIPC=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged",
    "SystemCallErrorNumber=EPERM",
)
