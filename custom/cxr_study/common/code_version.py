"""The code that runs: its version, and the commit of a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

from surgical_aggregation import __version__


def code() -> str:
    """Version of the package; from a git checkout with the commit: "0.1.0 (76636db)".

    "+" behind the commit: files that git tracks have been changed since.
    """
    here = Path(__file__)
    # A repository around the package may be another project's, with this one installed in it.
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return __version__
    commit = _git(here.parent, "describe", "--always", "--dirty=+", "--exclude=*")
    return __version__ if commit is None else f"{__version__} ({commit})"


def _git(folder: Path, *command: str) -> str | None:
    """What git says; None where there is no git, or it fails."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(folder), *command],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
