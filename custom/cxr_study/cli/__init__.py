"""The command line: `surgagg`."""

import sys
from importlib import import_module

from surgical_aggregation.extras import missing


def start() -> None:
    """Run the command; packages that are missing or unfit are one line, and exit code 2."""
    try:
        command_line = import_module("cxr_study.cli.main")
    except ImportError as error:
        wanted = missing(error) if isinstance(error, ModuleNotFoundError) else None
        print(f"surgagg: {wanted or error}", file=sys.stderr)
        sys.exit(2)
    command_line.main()
