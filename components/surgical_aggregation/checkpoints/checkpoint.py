"""A model on disk: its variables and its manifest in one .npz, written atomically."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surgical_aggregation.aggregation.averaging import Array, Variables

MANIFEST = "manifest.json"
FORMAT = 2
"""Newest layout: 1 has no moments, 2 has them. A file has the oldest that can hold it."""

_MOMENTS = "@moments/"


class CheckpointError(ValueError):
    """A file is no checkpoint that this version can read."""


@dataclass(frozen=True)
class Checkpoint:
    """A model and facts about it.

    Attributes:
        variables: Every variable under its name on the wire (see `wire`).
        manifest: Facts, JSON-serialisable: `head_features` (number of features a column weighs),
            `variable_kinds` (may be missing where another program wrote the file); from a run also
            `classes` (class -> the sites that trained it and the last round in which one did),
            `round` (number of rounds made), `planned_rounds` (made and planned), `job`, `history`
            (earlier jobs, see `continuation`), `best` (see `headers.BEST`), `best_of_rounds` (the
            same of the rounds' models alone), `not_compared` (rounds since then whose models could
            not be compared with it), `removed` (see `remove_classes`) and the digest of the initial
            body.
        moments: Of the server's optimizer (see `server_optimizer`).
    """

    variables: dict[str, Array]
    manifest: dict[str, Any] = field(default_factory=dict)
    moments: dict[str, Array] = field(default_factory=dict)


def digest(variables: Variables) -> str:
    """SHA-256 over names, shapes, dtypes and values of variables, in name order, as hex."""
    sha = hashlib.sha256()
    for name in sorted(variables):
        value = np.ascontiguousarray(variables[name])
        sha.update(f"{name}\0{value.dtype.str}\0{value.shape}\0".encode())
        sha.update(value.tobytes())
    return sha.hexdigest()


def save(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint atomically: `path` is always the old file or the new one, whole.

    The bytes depend on the content alone (no time stamps), so equal models are equal files.

    Raises:
        CheckpointError: A variable has a name that is reserved for moments.
    """
    if reserved := [name for name in checkpoint.variables if name.startswith(_MOMENTS)]:
        raise CheckpointError(
            f"names that begin with {_MOMENTS!r} are reserved; got a variable {reserved[0]!r}. "
            "Rename the model's layer."
        )
    layout = 2 if checkpoint.moments else 1
    manifest = json.dumps({**checkpoint.manifest, "format": layout}, indent=1, sort_keys=True)
    moments = {f"{_MOMENTS}{name}": value for name, value in checkpoint.moments.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            _write(file, manifest, {**checkpoint.variables, **moments})
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def give_second_name(path: Path, second: Path) -> None:
    """Make `second` the same file as `path`, atomically; a copy where the disk has no hard links.

    Checkpoints are replaced and never written in place, so each name keeps what it stands for.
    """
    second.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=second.parent, prefix=f".{second.name}.") as folder:
        temporary = Path(folder) / second.name
        try:
            os.link(path, temporary)
        except OSError:
            shutil.copyfile(path, temporary)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
        temporary.replace(second)


def _write(file: Any, manifest: str, variables: Mapping[str, Array]) -> None:
    # numpy.savez cannot hold a variable called "file" and stamps the time of day into the archive.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(MANIFEST), manifest)
        for name, value in variables.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(value), allow_pickle=False)


def load(path: Path) -> Checkpoint:
    """Read a checkpoint; raises `CheckpointError` where that is missing, damaged or too new."""
    if not path.is_file():
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
        raise CheckpointError(f"checkpoint {str(path)!r} does not exist{where}.")
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            variables: dict[str, Array] = {}
            moments: dict[str, Array] = {}
            for name in archive.namelist():
                if name != MANIFEST:
                    with archive.open(name) as entry:
                        array = np.lib.format.read_array(entry, allow_pickle=False)
                    part = moments if name.startswith(_MOMENTS) else variables
                    part[name.removeprefix(_MOMENTS).removesuffix(".npy")] = array
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise CheckpointError(
            f"{str(path)!r} is not a checkpoint of this project: {error}. "
            "Make an initial body with `surgagg model init`, or point to the best.npz of a run."
        ) from error
    if manifest.get("format") not in range(1, FORMAT + 1):
        raise CheckpointError(
            f"checkpoint {str(path)!r} has format {manifest.get('format')!r}; this version reads "
            f"formats 1 to {FORMAT}. Install the version that wrote it."
        )
    return Checkpoint(variables, manifest, moments)
