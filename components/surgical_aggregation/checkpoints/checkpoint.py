"""A model on disk: its variables and its manifest in one .npz, written atomically."""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from surgical_aggregation.aggregation.averaging import Array, Variables
from surgical_aggregation.aggregation.class_names import unfit
from surgical_aggregation.checkpoints.manifest import Manifest, fault
from surgical_aggregation.wire.untrusted_text import one_line

__all__ = ["load", "save"]

MANIFEST = "manifest.json"
FORMAT = 2
"""Newest layout: 1 has no moments, 2 has them. A file uses the oldest layout that fits."""

_MOMENTS = "@moments/"


class CheckpointError(ValueError):
    """A file is missing, or not a checkpoint that this version can read or write."""


@dataclass(frozen=True)
class Checkpoint:
    """A model with its manifest.

    Attributes:
        variables: Every variable by its name on the wire (see `wire.variables`).
        manifest: Facts about the model.
        moments: State of the server across rounds (see `aggregation.server_optimizer`).
    """

    variables: dict[str, Array]
    manifest: Manifest = field(default_factory=Manifest)
    moments: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "manifest", Manifest({**self.manifest}))  # also accepts a dict


def digest(variables: Variables) -> str:
    """SHA-256 over names, shapes, dtypes and values of variables, in name order, as hex."""
    sha = hashlib.sha256()
    for name in sorted(variables):
        value = np.ascontiguousarray(variables[name])
        sha.update(f"{name}\0{value.dtype.str}\0{value.shape}\0".encode())
        sha.update(value.tobytes())
    return sha.hexdigest()


def save(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint atomically: `path` is always the complete old or new file.

    The bytes depend only on the content (no time stamps), so equal models are equal files.

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


def link_or_copy(path: Path, second: Path) -> None:
    """Hard-link `second` to `path` atomically; copy if the disk has no hard links.

    Checkpoints are replaced, never written in place, so each name keeps its content.
    """
    second.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=second.parent, prefix=f".{second.name}.") as folder:
        temporary = Path(folder) / second.name
        try:
            os.link(path, temporary)
        except OSError:
            shutil.copy(path, temporary)  # with its mode: others may not read a model
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
    """Read a model from any source, and validate its manifest and class names; see `read`.

    Raises:
        CheckpointError: It cannot be read, or its manifest or a class name is invalid.
    """
    from surgical_aggregation.wire import variables as wire  # imports FLARE

    checkpoint = read(path)
    try:
        faults = [unfit(name, sys.maxsize) for name in wire.classes_of(checkpoint.variables)]
    except wire.WireError as error:
        faults = [str(error)]
    if why := next(filter(None, (*faults, fault(checkpoint.manifest))), None):
        raise _other(path, why)
    return checkpoint


def read(path: Path) -> Checkpoint:
    """Read any checkpoint, in memory bounded by the size of the file.

    Raises:
        CheckpointError: The file is missing, damaged or too new.
    """
    if not path.is_file():
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
        raise CheckpointError(f"checkpoint {str(path)!r} does not exist{where}.")
    with path.open("rb") as file:
        try:
            manifest, arrays = _contents(file, path.stat().st_size)
        except Exception as error:  # zipfile, json and NumPy raise many kinds
            raise _other(path, str(error)) from error
    if manifest.get("format") not in range(1, FORMAT + 1):
        raise CheckpointError(
            f"checkpoint {str(path)!r} has format {one_line(repr(manifest.get('format')))}; this "
            f"version reads formats 1 to {FORMAT}. Install the version that wrote it."
        )
    reserved = [name for name in arrays if name.startswith(_MOMENTS)]
    moments = {name.removeprefix(_MOMENTS): arrays.pop(name) for name in reserved}
    return Checkpoint(arrays, Manifest(manifest), moments)


def _other(path: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"{str(path)!r} is not a checkpoint of this project: {one_line(why)}. "
        "Use an initial body made by this version, or the best.npz of a run."
    )


def _contents(file: IO[bytes], size: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """Manifest and arrays of a file of `size` bytes; damaged files raise many kinds of error."""
    arrays: dict[str, Array] = {}
    with zipfile.ZipFile(file) as archive:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise ValueError("its entries are compressed, so their sizes are not known")
        if sum(entry.file_size for entry in archive.infolist()) > size:  # overlapping
            raise ValueError(f"its entries would be larger than the file, which has {size} bytes")
        manifest = json.loads(archive.read(MANIFEST))
        if not isinstance(manifest, dict):
            raise ValueError(f"its manifest must be a JSON object; got {manifest!r}")
        for name in archive.namelist():
            if name != MANIFEST:
                with archive.open(name) as entry:
                    arrays[name.removesuffix(".npy")] = _array(entry)
    return manifest, arrays


def _array(entry: IO[bytes]) -> Array:
    """Read an array from the bytes present, so that a forged header cannot allocate memory."""
    np.lib.format.read_magic(entry)
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(entry)
    if dtype.kind not in "biuf":
        raise ValueError(f"{entry.name!r} is not numeric; its dtype is {dtype}")
    values = np.frombuffer(bytearray(entry.read()), dtype)
    return values.reshape(shape, order="F" if by_columns else "C")
