"""The site file: which data a site has, and which classes it labels.

A YAML file that stays at the site; paths are relative to the file itself:

    dataset: nih                                   # nih | chexpert
    labels: ../nih/Data_Entry_2017_v2020.csv
    images: ../nih/images
    split: nih_split.csv                           # columns patient,split
    classes: [Atelectasis, Cardiomegaly]           # default: all of the dataset's
    truth: ../truth/nih.csv                        # optional: more labels of the same images
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from cxr_study import readers, split
from cxr_study.images import locate
from cxr_study.label_table import DESCRIPTORS
from cxr_study.vocabulary import VocabularyError, canonical, nearest

_REQUIRED = ("dataset", "labels", "images", "split")
_KEYS = (*_REQUIRED, "classes", "truth")


class SiteFileError(ValueError):
    """A site file does not say what it should."""


@dataclass(frozen=True)
class SiteFile:
    """What a site file says, with absolute paths.

    Attributes:
        path: The site file.
        dataset: A key of `cxr_study.readers.CLASSES`.
        labels: The dataset's official csv.
        images: Folder the label table's `image` is relative to.
        split: Csv with the columns `patient` and `split`.
        classes: Canonical names of the classes the site labels, in the file's order.
        truth: Csv with the column `image` and one column per class, for evaluation only; or None.
    """

    path: Path
    dataset: str
    labels: Path
    images: Path
    split: Path
    classes: tuple[str, ...]
    truth: Path | None


def read_site_file(path: Path) -> SiteFile:
    """Read and check a site file.

    Raises:
        SiteFileError: The file does not exist or is not YAML, a key is missing or unknown, a path
            does not exist, or a class is unknown, listed twice or not one the dataset labels;
            names the file and the key.
    """
    path = Path(path).absolute()
    keys = _mapping(path)
    for key in keys:
        if key not in _KEYS:
            raise SiteFileError(f"{path}: key '{key}' is not known; {nearest(str(key), _KEYS)}.")
    for key in _REQUIRED:
        if key not in keys:
            raise SiteFileError(f"{path}: needs key '{key}'; has {', '.join(keys) or 'none'}.")
    dataset = keys["dataset"]
    if dataset not in tuple(readers.CLASSES):
        raise _need(path, "dataset", " or ".join(readers.CLASSES), dataset)
    return SiteFile(
        path=path,
        dataset=dataset,
        labels=_file(path, "labels", keys["labels"]),
        images=_folder(path, "images", keys["images"]),
        split=_file(path, "split", keys["split"]),
        classes=_classes(path, dataset, keys.get("classes", list(readers.CLASSES[dataset]))),
        truth=_file(path, "truth", keys["truth"]) if "truth" in keys else None,
    )


def write_site_file(
    path: Path,
    *,
    dataset: str,
    labels: Path,
    images: Path,
    split: Path,
    classes: Sequence[str] | None = None,
    truth: Path | None = None,
) -> None:
    """Write a site file; its folder exists already.

    Args:
        path: The site file.
        dataset: A key of `cxr_study.readers.CLASSES`.
        labels: The dataset's official csv; this and the other paths relative to the working
            directory or absolute, and relative to the site file in what is written.
        images: Folder of the images.
        split: The split file.
        classes: Classes the site labels; all of the dataset's when omitted.
        truth: Csv of more labels of the same images, for evaluation only.
    """
    paths = {"labels": labels, "images": images, "split": split, "truth": truth}
    keys: dict[str, str | list[str]] = {"dataset": dataset}
    for key, target in paths.items():
        if target is not None:
            keys[key] = Path(os.path.relpath(target, Path(path).parent)).as_posix()
    if classes is not None:
        keys["classes"] = list(classes)
    Path(path).write_text(yaml.safe_dump(keys, sort_keys=False), encoding="utf-8")


def load_table(site_file: SiteFile) -> pd.DataFrame:
    """Read the labels of a site, put every image in its split and find its file.

    Args:
        site_file: What `read_site_file` returns.

    Returns:
        The label table (see `cxr_study.label_table`) with the site's classes in the site's order,
        and behind them `split` (train, validation or test) and `file` (absolute path, str).

    Raises:
        TableError: The labels or the split file do not hold what their format promises.
        SplitError: A patient has no split, or two.
        SiteFileError: Image files are missing.
    """
    table = readers.read(site_file.dataset, site_file.labels)
    table = table[[*DESCRIPTORS, *site_file.classes]].copy()
    assignment = split.read_split(site_file.split)
    try:
        split.check(table, assignment)
    except split.SplitError as error:
        raise split.SplitError(f"{site_file.split}: {error}") from None
    table["split"] = table["patient"].map(assignment.set_index("patient")["split"])
    files = locate(site_file.images, table["image"])
    missing = [image for image, file in zip(table["image"], files, strict=True) if file is None]
    if missing:
        raise SiteFileError(
            f"{site_file.path}: key 'images': {len(missing)} of {len(files)} image files are "
            f"missing below {site_file.images}, first {', '.join(missing[:3])}. Point the key at "
            f"the folder these names start from, or take their rows out of {site_file.labels}."
        )
    table["file"] = [str(file) for file in files]
    return table


def _mapping(path: Path) -> dict[str, Any]:
    try:
        keys = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SiteFileError(f"site file {path} does not exist.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SiteFileError(f"site file {path} cannot be read as YAML: {error}") from error
    if not isinstance(keys, dict):
        raise SiteFileError(f"{path}: needs lines 'key: value'; got {keys!r}.")
    return keys


def _need(path: Path, key: str, need: str, got: object) -> SiteFileError:
    return SiteFileError(f"{path}: key '{key}' needs {need}; got {got!r}.")


def _file(path: Path, key: str, value: object) -> Path:
    target = _target(path, key, value)
    if not target.is_file():
        raise _need(path, key, f"a file that exists (looked for {target})", value)
    return target


def _folder(path: Path, key: str, value: object) -> Path:
    target = _target(path, key, value)
    if not target.is_dir():
        raise _need(path, key, f"a folder that exists (looked for {target})", value)
    return target


def _target(path: Path, key: str, value: object) -> Path:
    if not isinstance(value, str):
        raise _need(path, key, "a path", value)
    return Path(os.path.normpath(path.parent / value))


def _classes(path: Path, dataset: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise _need(path, "classes", "a list of at least one class", value)
    names: list[str] = []
    for spelling in value:
        try:
            name = canonical(str(spelling))
        except VocabularyError as error:
            raise SiteFileError(f"{path}: key 'classes': {error}.") from None
        if name not in readers.CLASSES[dataset]:
            raise _need(path, "classes", f"classes that dataset '{dataset}' labels", spelling)
        if name in names:
            raise _need(path, "classes", "each class once", spelling)
        names.append(name)
    return tuple(names)
