"""The command line `surgagg`: groups of commands, errors and exit codes."""

from __future__ import annotations

import os
import sys
import threading
from typing import Annotated, Any

import typer
from rich.console import Console

from cxr_study.cli import data, evaluate, model, model_use, run
from cxr_study.cli.common import console, say
from cxr_study.runs.finished_run import InterruptedRunError, JobFailedError
from surgical_aggregation import __version__
from surgical_aggregation.extras import missing, offered

_UsageError: Any = typer.BadParameter.__mro__[1]
"""click's UsageError; typer may bundle its own copy of click."""
_Abort: Any = typer.Abort
INTERRUPTED = 130
"""Exit code after an interrupt from the terminal."""

COMMANDS = "surgagg.commands"
"""Group of entry points by which packages add commands; each is a `typer.Typer`.

An entry point called "data.audit" adds its commands to `surgagg data`; one without a dot adds them
to `surgagg`.
"""

_FLARES = "conn_mgr"
"""Prefix of FLARE's connection threads; one whose connection was given up may never end."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Train one chest X-ray model with hospitals that label different findings.",
    epilog="Example:  surgagg demo      Exit codes: 0 done, 1 a job failed, 2 wrong use, 3 done "
    "without one of the sites.",
)
_model = typer.Typer(
    no_args_is_help=True,
    help="Create, describe, evaluate, calibrate, edit and package models.",
    epilog="Example:  surgagg model show runs/demo",
)
for _commands in (model_use.model_app, evaluate.app, model.app):
    _model.add_typer(_commands)

_GROUPS = {"": app, "data": data.app, "model": _model}
"""Name of a group of commands -> its app; "" is `surgagg` itself."""

for _commands in (run.app, model_use.app):
    app.add_typer(_commands)
for _name, _group in list(_GROUPS.items())[1:]:
    app.add_typer(_group, name=_name)
for _name, _commands in offered(COMMANDS, typer.Typer):
    if (_where := _name.rpartition(".")[0]) in _GROUPS:
        _GROUPS[_where].add_typer(_commands)
    else:
        say(f"surgagg: {_name!r} of {COMMANDS!r} names no group of commands", Console(stderr=True))


def _version(wanted: bool) -> None:
    if wanted:
        console.print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command and end the process, even if a connection thread of FLARE never ends."""
    code = command()
    if any(thread.name.startswith(_FLARES) for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def command() -> int:
    """Run the command given in `sys.argv`.

    A mistake of the user is reported in one line on standard error; other errors are raised.

    Returns:
        The exit code: 0 done, 1 a job failed, 2 wrong use, 3 a site is in no round, 130
        interrupted.
    """
    try:
        return app(prog_name="surgagg", standalone_mode=False) or 0
    except _UsageError as error:
        # typer would draw a box, for which it imports rich for 0.1 s.
        if message := error.format_message():  # none where the help has been shown instead
            help_ = f"{error.ctx.command_path} --help"
            say(f"surgagg: {message.rstrip('.')}. See {help_}.", Console(stderr=True))
        return 2
    except ModuleNotFoundError as error:
        if (wanted := missing(error)) is None:
            raise
        say(f"surgagg: {wanted}", Console(stderr=True))
        return 2
    except (ValueError, OSError, JobFailedError, InterruptedRunError) as error:
        say(f"surgagg: {error}", Console(stderr=True))
        codes = {JobFailedError: 1, InterruptedRunError: INTERRUPTED}
        return next((code for kind, code in codes.items() if isinstance(error, kind)), 2)
    except (KeyboardInterrupt, _Abort):
        return INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
