"""What the commands share: what they say, what they are refused, folders for results."""

from __future__ import annotations

import shutil
from pathlib import Path

from rich.console import Console

from cxr_study.runs.finished_run import RunFolderError

console = Console()

MARK = "job/meta.json"
"""In a run's folder: tells it from any other."""


class DataError(ValueError):
    """A command is not told whose images to train on."""


def check_data(
    given: object,
    phantom: bool,
    needed: str = "training needs --site-files <folder of <site>.yaml>",
) -> None:
    """Refuse nobody's data, or two kinds of them."""
    if bool(given) == phantom:
        got = "both" if phantom else "neither"
        raise DataError(f"{needed} for real data, or --phantom for drawn images; got {got}.")


def split(sites: str) -> tuple[str, ...]:
    """Names from a text with commas; of an empty one none."""
    return tuple(name.strip() for name in sites.split(",")) if sites else ()


def joined(names: list[str] | None) -> str:
    """The names of an option that may be repeated, by comma."""
    return ",".join(names or ())


def say(text: str, to: Console = console) -> None:
    """Print a line as it is: nothing in a path or a message is markup, or wrapped."""
    to.print(text, markup=False, highlight=False, soft_wrap=True)


def make_room(folder: Path, force: bool, mark: str = MARK) -> None:
    """Remove a folder of an earlier run (see `mark`) where that is wanted, or see `check_room`."""
    check_room(folder, force, mark)
    if folder.exists():
        shutil.rmtree(folder)


def check_room(folder: Path, force: bool, mark: str = MARK) -> None:
    """Refuse a folder that exists, unless it is a run's and is to be removed."""
    if not folder.exists():
        return
    if not force:
        raise RunFolderError(
            f"a run needs a new folder; {folder} exists. Give another --out, or --force."
        )
    if not (folder / mark).is_file():
        raise RunFolderError(
            f"only what an earlier run made is removed; {folder} holds no {mark}. Remove it "
            "yourself, or give another --out."
        )
