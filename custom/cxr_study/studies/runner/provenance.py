"""Where results come from: a run's computer and code; a report's study, data and selection."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cxr_study.common.files import replace
from cxr_study.studies.plan.data_file import StudyData
from cxr_study.studies.plan.selection import Selection
from surgical_aggregation import __version__

ORIGIN_FILE = "origin.txt"


def device() -> str:
    """Name of the GPU, or "CPU", as TensorFlow tells; after `tensorflow_setup.configure`."""
    import tensorflow as tf

    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    names = dict.fromkeys(str(each.get("device_name", "GPU")) for each in details)
    return ", ".join(names) or "CPU"


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


def origin(study: Path, data: StudyData, selection: Selection) -> str:
    """Study file, data file and selection, in words."""
    return f"study {study}, data {data.path}, {selection}"


def write_origin(told: str, folder: Path) -> None:
    """Put an origin beside the report in a folder."""
    replace(folder / ORIGIN_FILE, f"{told}\n")


def another(told: str, folder: Path) -> str | None:
    """Origin of the report in a folder; None where there is none, or it has the same origin."""
    path = folder / ORIGIN_FILE
    kept = path.read_text(encoding="utf-8").strip() if path.is_file() else told
    return None if kept == told else kept


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
