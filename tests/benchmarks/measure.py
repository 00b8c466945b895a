"""What the benchmarks share: options, and a stop-watch.

Helpers of the tests can be imported once this module is.
"""

import argparse
import sys
import timeit
from pathlib import Path

SUPPORT = str(Path(__file__).resolve().parents[1] / "support")
sys.path.insert(0, SUPPORT)


def options(doc, **defaults):
    """The command's options: name -> value of the default's type; of a list's, several values."""
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=as_written)
    for name, default in defaults.items():
        how = {"type": type(default), "nargs": None}
        if isinstance(default, list):
            how = {"type": type([*default, ""][0]), "nargs": "+"}
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, **how)
    return parser.parse_args()


def fastest(work, repeats=3):
    """Seconds of the fastest of several calls, without a first one."""
    return min(timeit.repeat(work, number=1, repeat=repeats + 1)[1:])
