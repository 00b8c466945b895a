"""The command line: `surgagg`."""

import signal
import sys
from importlib import import_module


def start() -> None:
    """Entry point of `surgagg`: run the command line and end the process.

    A missing or incompatible package is reported in one line on standard error, with exit code 2.
    A SIGTERM ends the process with 143, after the processes that it started.
    """
    # A plain SIGTERM would end this process only and leave the simulator's running.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        command_line = import_module("cxr_study.cli.main")
    except ModuleNotFoundError as error:
        from surgical_aggregation.extras import missing

        print(f"surgagg: {missing(error) or error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except ImportError as error:
        print(f"surgagg: {error}", file=sys.stderr)
        sys.exit(2)
    command_line.main()
