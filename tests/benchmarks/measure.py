"""What the benchmarks share: options, stop-watches, and samples of the processes that they start.

Helpers of the tests can be imported once this module is.
"""

import argparse
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psutil

SUPPORT = str(Path(__file__).resolve().parents[1] / "support")
sys.path.insert(0, SUPPORT)


def options(doc, **defaults):
    """The command's options: name -> value of the default's type; of a list's, several values."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in defaults.items():
        several = isinstance(default, list)
        how = {
            "type": type([*default, ""][0] if several else default),
            "nargs": "+" if several else None,
        }
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, **how)
    return parser.parse_args()


def seconds(work):
    """Seconds that a call takes, and what it returns."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def fastest(work, repeats=3):
    """Seconds of the fastest of several calls, without a first one."""
    work()
    return min(seconds(work)[0] for _ in range(repeats))


@contextmanager
def sampled(look):
    """Four times a second, look(process, its command) at every process that this one started."""
    done = threading.Event()

    def sample():
        while not done.wait(0.25):
            for process in psutil.Process().children(recursive=True):
                try:
                    look(process, process.cmdline())
                except psutil.Error:
                    continue

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def simulated(command):
    """What a process is in FLARE's simulator: "site <name>", "server", or None."""
    line = " ".join(command)
    if "simulator_worker" in line:
        return f"site {command[command.index('--client') + 1]}"
    return "server" if "cxr_study.runs.patched_simulator " in line else None
