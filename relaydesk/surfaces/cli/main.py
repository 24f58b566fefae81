"""The command line: its verbs, and the one place where what went wrong becomes a sentence and a code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from relaydesk.core.errors import FaultError
from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.verbs import VERBS, verb

_INTERRUPTED: Final = 130
# What a write to stdout or stderr may end with; errors of files carry their name.
_OUTPUT_ERRORS: Final = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF})
_HELP: Final = {"help_option_names": ["-h", "--help"]}


@click.group(
    cls=LazyGroup, verbs=VERBS, invoke_without_command=True, no_args_is_help=False, context_settings=_HELP
)
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Settings file instead of the usual relaydesk.toml.",
)
@click.option("--version", "-V", is_flag=True, help="Print the version.")
@click.pass_context
def cli(ctx: click.Context, config_path: Path | None, version: bool) -> None:
    """Run language models at home: a node with an OpenAI-compatible API, and its command line.

    Without a command it opens the console. Exit codes: 0 done, 1 failed, 2 usage, 3 no node to talk to,
    4 refused.
    """
    ctx.obj = config_path
    if version:
        from relaydesk import __version__

        click.echo(f"relaydesk {__version__}")
    elif ctx.invoked_subcommand is None:
        console = verb("console")
        if console.built:
            ctx.invoke(console.load())
        else:
            click.echo(ctx.get_help())


def run(argv: Sequence[str]) -> int:
    """Run the command line ``argv`` (with the program's name first) and return its exit code."""
    _prepare_streams()
    program = "relay" if os.path.basename(argv[0]) == "relay" else "relaydesk"
    try:
        code = _run(program, list(argv[1:]))
        sys.stdout.flush()
    except BrokenPipeError:
        code = _reader_left()
    except OSError as error:
        code = _say(f"the output cannot be written ({error.strerror or error})")
        _discard_output()
    return code


def _prepare_streams() -> None:
    if sys.stdout is None or sys.stderr is None:  # closed by the caller (`>&-`)
        nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        # A terminal that is not UTF-8 gets question marks rather than a traceback.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _run(program: str, args: list[str]) -> int:
    try:
        result: Any = cli.main(args, prog_name=program, standalone_mode=False)
    except click.UsageError as error:
        usage = error.ctx.command_path if error.ctx is not None else program
        return _say(f"{error.format_message().rstrip('.')}: see `{usage} --help`", error.exit_code)
    except click.ClickException as error:
        return _say(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _say("interrupted", _INTERRUPTED)
    except FaultError as error:
        _debug(error)
        return _say(error.fault.sentence, error.fault.rule.exit)
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in _OUTPUT_ERRORS:
            raise
        _debug(error)
        detail = " ".join(str(error).split())[:200]
        what = f"{type(error).__name__}: {detail}" if detail else type(error).__name__
        return _say(f"something failed inside relaydesk ({what}): RELAY_DEBUG=1 shows where")
    return result if isinstance(result, int) else 0


def _say(sentence: str, code: int = 1) -> int:
    """The one sentence an error gets, on stderr; ``code`` back."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    try:
        text = f"relaydesk: {sentence}"
        if sys.stderr.isatty():
            from relaydesk.surfaces.cli.output import wrap

            text = "\n".join(wrap(text))
        click.echo(text, err=True)
    except OSError:
        pass  # nobody is there to read it
    return code


def _debug(error: BaseException) -> None:
    if os.environ.get("RELAY_DEBUG"):
        import traceback

        traceback.print_exception(error)


def _reader_left() -> int:
    """What read our output has ended (``| head``): say nothing, but the work was not delivered."""
    _discard_output()
    return 1


def _discard_output() -> None:
    # The interpreter flushes stdout once more on its way out and would complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
