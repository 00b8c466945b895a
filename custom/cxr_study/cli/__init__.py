"""The command line: `surgagg`."""

import sys
from importlib import import_module


def start() -> None:
    """Run the command; packages that are missing or unfit are one line, and exit code 2."""
    try:
        command_line = import_module("cxr_study.cli.main")
    except ModuleNotFoundError as error:
        from surgical_aggregation.extras import missing

        print(f"surgagg: {missing(error) or error}", file=sys.stderr)
        sys.exit(2)
    except ImportError as error:
        print(f"surgagg: {error}", file=sys.stderr)
        sys.exit(2)
    command_line.main()
