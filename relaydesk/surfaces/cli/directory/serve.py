"""``relaydesk directory serve``: a directory kept and served without a node."""

from __future__ import annotations

import asyncio
import signal
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import click

from relaydesk.config.listen import Listen, parse_listen
from relaydesk.core.errors import EnvError, LocalError
from relaydesk.surfaces.cli.directory.keep import folder_option, shelf_of
from relaydesk.surfaces.cli.output import note
from relaydesk.surfaces.cli.settings import load_settings

if TYPE_CHECKING:
    from relaydesk.config.model import Settings
    from relaydesk.engine.relay.directory.shelf import Shelf


@click.command()
@folder_option
@click.option(
    "--listen", "listen_text", metavar="HOST:PORT", help="Where to listen; RELAY_NETWORK_LISTEN if not given."
)
def serve(folder: Path | None, listen_text: str | None) -> None:
    """Serve the directory, take records of those it admits, and sign in time, until stopped.

    TLS by RELAY_TLS_CERT and RELAY_TLS_KEY; without them only on a loopback address, behind a proxy.
    """
    settings = load_settings().settings
    try:
        listen = parse_listen(listen_text) if listen_text else settings.network_listen
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--listen") from None
    context = _context(settings, listen)
    # A device of a lab or the signer's own trust: read before anything listens.
    trust = _trust(settings)
    asyncio.run(_main(shelf_of(folder), settings, listen, context, trust))


async def _main(
    shelf: Shelf, settings: Settings, listen: Listen, context: ssl.SSLContext | None, trust: ssl.SSLContext
) -> None:
    from aiohttp import web

    from relaydesk.engine.clock import SystemClock
    from relaydesk.engine.relay.directory.keeper import Keeper, keep
    from relaydesk.engine.relay.outbound.outbound import Outbound
    from relaydesk.engine.tasks import cancel_and_wait, spawn
    from relaydesk.surfaces.network.directory import add_directory_routes

    clock, lab = SystemClock(), settings.allow_private == "on"
    outbound = Outbound(clock, allow_private=lambda: lab, tls=lambda: trust, source=settings.outbound_address)
    keeper = Keeper(shelf, clock, outbound, allow_private=lambda: lab)
    await keeper.open()
    app = web.Application(client_max_size=64 * 1024)
    add_directory_routes(app, keeper)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=2.0, auto_decompress=False)
    await runner.setup()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    keeping = spawn(keep(keeper, lambda why: note(f"The directory was not signed: {why}.")), name="keeper")
    try:
        site = web.TCPSite(runner, listen.host or None, listen.port, ssl_context=context)
        try:
            await site.start()
        except OSError as error:
            reason = error.strerror or str(error)
            raise EnvError(
                "port_in_use", f"cannot listen on {listen} ({reason})", "choose another with --listen"
            ) from error
        scheme = "http" if context is None else "https"
        for host, port, *_ in runner.addresses:
            click.echo(f"directory {keeper.address} on {scheme}://{Listen(host, port)}")
        await stop.wait()
    finally:
        await cancel_and_wait(keeping)
        await runner.cleanup()
        await outbound.aclose()


def _context(settings: Settings, listen: Listen) -> ssl.SSLContext | None:
    """TLS for the listener, None for plain HTTP. Raises `LocalError` where that must not be."""
    if settings.tls_cert is not None and settings.tls_key is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(settings.tls_cert, settings.tls_key)
        except OSError as error:
            raise EnvError(
                "tls_failed",
                f"RELAY_TLS_CERT and RELAY_TLS_KEY cannot be used ({error.strerror or error})",
                "give a certificate chain and its key in PEM",
            ) from error
        return context
    if not listen.loopback_only and settings.allow_private != "on":
        raise LocalError(
            "bad_setting",
            f"{listen} would serve plain HTTP to other machines",
            "set RELAY_TLS_CERT and RELAY_TLS_KEY, or listen on 127.0.0.1 behind a proxy with TLS",
            param="RELAY_NETWORK_LISTEN",
        )
    return None


def _trust(settings: Settings) -> ssl.SSLContext:
    """Whose certificates of nodes are believed: the system's, and RELAY_NETWORK_CA beside it in a lab."""
    context = ssl.create_default_context()
    if settings.network_ca is not None and settings.allow_private == "on":
        try:
            context.load_verify_locations(settings.network_ca)
        except OSError as error:
            raise EnvError(
                "tls_failed", f"RELAY_NETWORK_CA cannot be read ({error.strerror or error})", "give PEM"
            ) from error
    return context
