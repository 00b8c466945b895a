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

EXAMPLES = Path(__file__).parents[2] / "custom/examples"


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
        return self.run("surgagg", *arguments)

    def run(self, *command):
        """Run a program, for which `surgagg` and this Python are the first in PATH."""
        own = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "SURGAGG_CACHE": str(self.home / "cache"), "COLUMNS": "120", "MPLBACKEND": "agg",
        }  # fmt: skip
        done = subprocess.run(
            list(map(str, command)), cwd=self.home, env={**os.environ, **own},
            capture_output=True, text=True,
        )  # fmt: skip
        return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)

    def output_of(self, *command):
        """Run a program, which must end well; what it says."""
        done = self.run(*command)
        assert done.code == 0, done.out[-3000:] + done.err[-3000:]
        return done.out

    def example(self, name, *arguments):
        """Run an example; what it says."""
        return self.output_of("python", EXAMPLES / name, *arguments)
