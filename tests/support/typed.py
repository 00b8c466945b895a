"""The command line as it is typed: in this process, or as the console script."""

import io
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

from cxr_study.cli import main as cli


def typed(*arguments):
    """Type `surgagg ...`: its exit code, and what it says on standard output and error."""
    out, err = io.StringIO(), io.StringIO()
    argv, handler = sys.argv, signal.getsignal(signal.SIGTERM)
    sys.argv = ["surgagg", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = cli.command()
    finally:
        sys.argv = argv
        signal.signal(signal.SIGTERM, handler)
    return SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue())


def answer(*arguments, code=0):
    """Type `surgagg ...`, which must end with a code; what it says."""
    call = typed(*arguments)
    assert call.code == code, call.err
    return call.out + call.err


class Typist:
    """Types `surgagg ...` in a folder, with its own cache; each time in a new process."""

    def __init__(self, home):
        self.home = home

    def __call__(self, *arguments):
        command = [Path(sys.executable).with_name("surgagg"), *map(str, arguments)]
        own = {"SURGAGG_CACHE": str(self.home / "cache"), "COLUMNS": "100"}
        done = subprocess.run(
            command, cwd=self.home, env={**os.environ, **own}, capture_output=True, text=True
        )
        return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)
