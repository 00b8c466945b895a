"""The program `surgagg`: the command line, where the installed packages let it start."""

import sys


def main() -> None:
    """Run the command; packages that are missing or unfit are one line, and exit code 2."""
    try:
        from cxr_study.cli import main as command_line
    except ImportError as error:
        print(f"surgagg: {error}", file=sys.stderr)
        sys.exit(2)
    command_line.main()
