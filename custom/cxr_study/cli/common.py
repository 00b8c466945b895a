"""Helpers of the commands: output, checks of options, folders for results."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from cxr_study.runs.finished_run import MARKER, RunFolderError

console = Console()


class DataError(ValueError):
    """A command needs exactly one source of images, and got none or two."""


def check_data(
    given: object,
    phantom: bool,
    needed: str = "training needs --site-files <folder of <site>.yaml>",
) -> None:
    """Check that a command has exactly one source of images.

    Args:
        given: Value of --site-files; falsy where it is not given.
        phantom: Whether --phantom is given.
        needed: Beginning of the message: what needs which option.

    Raises:
        DataError: Both are given, or neither.
    """
    if bool(given) == phantom:
        got = "both" if phantom else "neither"
        raise DataError(f"{needed} for real data, or --phantom for drawn images; got {got}.")


def split(sites: str) -> tuple[str, ...]:
    """Split names at commas and strip them: "a, b" becomes ("a", "b"); "" becomes ()."""
    return tuple(name.strip() for name in sites.split(",")) if sites else ()


def joined(names: list[str] | None) -> str:
    """Join the values of a repeatable option with commas, for functions that take names so."""
    return ",".join(names or ())


def say(text: str, to: Console = console) -> None:
    """Print a line unchanged: without rich's markup, highlighting or wrapping.

    Args:
        text: The line.
        to: Console. Default: standard output.
    """
    to.print(text, markup=False, highlight=False, soft_wrap=True)


def clear_folder(folder: Path, force: bool, marker: str = MARKER) -> None:
    """Remove a results folder of an earlier run, if there is one.

    Args:
        folder: Where results will be written.
        force: Whether an earlier run's folder may be removed.
        marker: File that tells the folder of a run from any other. Default: `MARKER`.

    Raises:
        RunFolderError: See `check_folder`.
    """
    check_folder(folder, force, marker)
    if folder.exists():
        shutil.rmtree(folder)


def check_folder(
    folder: Path, force: bool, marker: str = MARKER, inputs: Iterable[Path | None] = ()
) -> None:
    """Check that results can be written to a folder; changes nothing.

    Args:
        folder: Where results will be written.
        force: Whether an earlier run's folder may be removed.
        marker: File that tells the folder of a run from any other. Default: `MARKER`.
        inputs: Files and folders that the new run reads. Default: none.

    Raises:
        RunFolderError: The folder exists, and `force` is not given, the marker is missing, or an
            input is in it.
    """
    if not folder.exists():
        return
    if not force:
        raise RunFolderError(
            f"a run needs a new folder; {folder} exists. Give another --out, or --force."
        )
    if not (folder / marker).is_file():
        raise RunFolderError(
            f"only what an earlier run made is removed; {folder} holds no {marker}. Remove it "
            "yourself, or give another --out."
        )
    for path in filter(None, inputs):
        if path.resolve().is_relative_to(folder.resolve()):
            raise RunFolderError(
                f"--force would remove {path}, which the new run needs: it is in {folder}. Give "
                "another --out, or copy it elsewhere first."
            )
