"""Commands of `surgagg deploy` as processes of their own, without a terminal."""

import subprocess
import sys
from contextlib import contextmanager

CODE = "from cxr_study.cli.main import main; main()"

SOON = 5.0
"""Seconds in which a command ends that was sent a signal."""


@contextmanager
def command(*arguments):
    """`surgagg deploy ...`; always ended."""
    words = [sys.executable, "-c", CODE, "deploy", *map(str, arguments)]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process, sent, soon=SOON):
    """What a process says that ends soon after a signal, with the signal's exit code."""
    process.send_signal(sent)
    said, _ = process.communicate(timeout=soon)
    assert process.returncode == 128 + sent and "Traceback" not in said, said
    return said
