"""The command line: `surgagg`."""

import os
import signal
import sys
from importlib import import_module


def start() -> None:
    """Entry point of `surgagg`: run the command line and end the process.

    A missing or incompatible package is reported in one line on standard error, with exit code 2.
    A SIGTERM ends the process with 143, after the processes that it started.
    """
    interrupt = signal.getsignal(signal.SIGINT)
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as in a shell's background jobs
            signal.signal(number, _end)
    try:
        command_line = import_module("cxr_study.cli.main")
    except ModuleNotFoundError as error:
        from surgical_aggregation.extras import missing

        print(f"surgagg: {missing(error) or error}", file=sys.stderr)
        sys.exit(2)
    except ImportError as error:
        print(f"surgagg: {error}", file=sys.stderr)
        sys.exit(2)
    signal.signal(signal.SIGINT, interrupt)
    # A plain SIGTERM would end this process only and leave the simulator's running.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    command_line.main()


def _end(number: int, _: object) -> None:
    """End at once: Python drops exceptions that a handler raises in the import's own callbacks."""
    os._exit(128 + number)
