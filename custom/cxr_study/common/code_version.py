"""Version of the running code, with the commit where it runs from a git checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

from surgical_aggregation import __version__


def code() -> str:
    """Version of the package; from a git checkout with the commit: "0.1.0 (76636db)".

    A "+" after the commit means that tracked files have uncommitted changes. There is no commit if
    git is missing, or if the package does not belong to the repository around it.
    """
    here = Path(__file__)
    # A repository around the package may be another project's, with this one installed in it.
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return __version__
    commit = _git(here.parent, "describe", "--always", "--dirty=+", "--exclude=*")
    return __version__ if commit is None else f"{__version__} ({commit})"


def _git(folder: Path, *command: str) -> str | None:
    """Output of a git command, stripped; None where git is missing or fails."""
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
