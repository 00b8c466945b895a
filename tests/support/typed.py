"""The command line as it is typed, without a process of its own."""

import io
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

from cxr_study import cli


def typed(*arguments):
    """Type `surgagg ...`: its exit code, and what it says on standard output and error."""
    out, err = io.StringIO(), io.StringIO()
    argv, handler = sys.argv, signal.getsignal(signal.SIGTERM)
    sys.argv = ["surgagg", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            cli.main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = argv
        signal.signal(signal.SIGTERM, handler)
    return SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue())
