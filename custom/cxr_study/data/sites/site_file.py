"""The site file: which data a site has, which classes it labels and what it decided about them.

A YAML file that stays at the site; its name is the site's, and paths are relative to it:

    dataset: chexpert                # nih, chexpert, mimic, cxr-lt, vindr, padchest or table
    labels: ../chexpert/train.csv    # or a list of csv files
    images: ../chexpert
    split: chexpert_split.csv        # see split_file
    metadata: ../mimic/mimic-cxr-2.0.0-metadata.csv.gz   # mimic only

    # All of these may be left out:
    classes: [Atelectasis, Edema]    # default: all of the data set's
    views: frontal                   # frontal (default) or all
    merges: {Fracture: [Clavicle fracture, Rib fracture]}   # see merges
    distinct: [Effusion]             # names that resemble another class and are none
    uncertain: {default: zeros, Edema: ones}     # or one word; see label_policy
    blank: negative                  # or: not labelled; to be said where dataset is table
    bad_images: 1%                   # unusable images to go on without: a number or a share
    truth: ../truth/chexpert.csv     # more labels of the same images, for evaluation only
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cxr_study.common.yaml_files import read_keys
from cxr_study.data.images.image_limit import allowed
from cxr_study.data.labels.label_policy import BLANK_POLICIES, UNCERTAIN_POLICIES, LabelPolicy
from cxr_study.data.labels.vocabulary import class_name
from cxr_study.data.readers import DATASETS

VIEW_CHOICES = ("frontal", "all")
_REQUIRED = ("dataset", "labels", "images", "split")
_KEYS = (
    *_REQUIRED,
    "metadata",
    "classes",
    "views",
    "merges",
    "distinct",
    "uncertain",
    "blank",
    "bad_images",
    "truth",
)


class SiteFileError(ValueError):
    """A site file does not say what it should."""


@dataclass(frozen=True)
class SiteFile:
    """What a site file says, with absolute paths.

    Attributes:
        path: The site file.
        dataset: A key of `cxr_study.data.readers.DATASETS`.
        labels: The dataset's csv files.
        metadata: MIMIC's metadata csv; None for the others.
        images: Folder the label table's `image` is relative to.
        split: The split file, which may not exist yet.
        classes: Names of the classes the site labels, in the file's order; None for all of the
            dataset's.
        views: "frontal" or "all".
        merges: Class -> columns of the dataset that make it up.
        distinct: Names that resemble another class and are none.
        policy: What uncertain and blank labels count as.
        bad_images: Unusable images to go on without: a number, or a share such as "1%".
        truth: Csv with the column `image` and one column per class, for evaluation only; or None.
    """

    path: Path
    dataset: str
    labels: tuple[Path, ...]
    metadata: Path | None
    images: Path
    split: Path
    classes: tuple[str, ...] | None
    views: str
    merges: Mapping[str, tuple[str, ...]]
    distinct: tuple[str, ...]
    policy: LabelPolicy
    bad_images: int | str
    truth: Path | None

    @property
    def site(self) -> str:
        """Name of the site."""
        return self.path.stem


def read_site_file(path: Path) -> SiteFile:
    """Read and check a site file.

    Raises:
        SiteFileError: The file does not exist or is not YAML, a key is missing, unknown or not
            what it should be, a path does not exist, or a class is unknown or listed twice; names
            the file and the key.
    """
    lines = read_keys(path, "site file", SiteFileError)
    lines.check(_KEYS, _REQUIRED)
    path, keys = lines.path, lines.values
    dataset = _choice(path, "dataset", keys["dataset"], tuple(DATASETS))
    if DATASETS[dataset].metadata != ("metadata" in keys):
        need = "needs" if DATASETS[dataset].metadata else "has no use for"
        raise SiteFileError(f"{path}: dataset '{dataset}' {need} the key 'metadata'.")
    return SiteFile(
        path=path,
        dataset=dataset,
        labels=tuple(_file(path, "labels", csv) for csv in _list(path, "labels", keys["labels"])),
        metadata=_file(path, "metadata", keys["metadata"]) if "metadata" in keys else None,
        images=_folder(path, "images", keys["images"]),
        split=_target(path, "split", keys["split"]),
        classes=_classes(path, dataset, keys["classes"]) if "classes" in keys else None,
        views=_choice(path, "views", keys.get("views", "frontal"), VIEW_CHOICES),
        merges=_merges(path, dataset, keys.get("merges", {})),
        distinct=tuple(map(str, _list(path, "distinct", keys.get("distinct", [])))),
        policy=_policy(path, dataset, keys.get("uncertain", "zeros"), keys.get("blank")),
        bad_images=_bad_images(path, keys.get("bad_images", 0)),
        truth=_file(path, "truth", keys["truth"]) if "truth" in keys else None,
    )


def write_site_file(
    path: Path,
    *,
    dataset: str,
    labels: Path | Sequence[Path],
    images: Path,
    split: Path,
    metadata: Path | None = None,
    truth: Path | None = None,
    **decisions: object,
) -> None:
    """Write a site file; its folder exists already.

    Args:
        path: The site file.
        dataset: A key of `cxr_study.data.readers.DATASETS`.
        labels: The dataset's csv, or several; this and the other paths relative to the working
            directory or absolute, and relative to the site file in what is written.
        images: Folder of the images.
        split: The split file.
        metadata: MIMIC's metadata csv.
        truth: Csv of more labels of the same images, for evaluation only.
        decisions: The other keys, such as `classes`, as they are to stand in the file; None to
            leave a key out.
    """

    def relative(target: Path) -> str:
        return Path(os.path.relpath(target, Path(path).parent)).as_posix()

    several = [labels] if isinstance(labels, Path) else list(labels)
    keys: dict[str, object] = {
        "dataset": dataset,
        "labels": relative(several[0]) if len(several) == 1 else list(map(relative, several)),
    }
    for key, target in {"metadata": metadata, "images": images, "split": split}.items():
        if target is not None:
            keys[key] = relative(target)
    keys |= {key: value for key, value in decisions.items() if value is not None}
    if truth is not None:
        keys["truth"] = relative(truth)
    Path(path).write_text(yaml.safe_dump(keys, sort_keys=False), encoding="utf-8")


def _need(path: Path, key: str, need: str, got: object) -> SiteFileError:
    return SiteFileError(f"{path}: key '{key}' needs {need}; got {got!r}.")


def _choice(path: Path, key: str, value: object, choices: Sequence[str]) -> str:
    if value not in choices:
        raise _need(path, key, f"{', '.join(choices[:-1])} or {choices[-1]}", value)
    return str(value)


def _list(path: Path, key: str, value: object) -> list[Any]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or (not value and key != "distinct"):
        raise _need(path, key, "one entry or a list of them", value)
    return value


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
    return Path(os.path.normpath(path.parent / Path(value).expanduser()))


def _classes(path: Path, dataset: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise _need(path, "classes", "a list of at least one class", value)
    names = [class_name(str(spelling), dataset) for spelling in value]
    twice = [spelling for i, spelling in enumerate(value) if names[i] in names[:i]]
    if twice:
        raise _need(path, "classes", "each class once", twice[0])
    return tuple(names)


def _merges(path: Path, dataset: str, value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise _need(path, "merges", "lines 'class: [names it is made of]'", value)
    merges: dict[str, tuple[str, ...]] = {}
    for target, sources in value.items():
        name = class_name(str(target), dataset)
        if name in merges:
            raise _need(path, "merges", "each class once", target)
        merges[name] = tuple(map(str, _list(path, "merges", sources)))
    return merges


def _policy(path: Path, dataset: str, uncertain: Any, blank: Any) -> LabelPolicy:
    by_class = dict(uncertain) if isinstance(uncertain, dict) else {"default": uncertain}
    for policy in by_class.values():
        _choice(path, "uncertain", policy, UNCERTAIN_POLICIES)
    if blank is not None:
        _choice(path, "blank", blank, BLANK_POLICIES)
    elif dataset != "table":
        blank = "negative"  # of a hospital's own table only the hospital knows
    return LabelPolicy(
        uncertain=by_class.pop("default", "zeros"),
        by_class={class_name(str(name), dataset): policy for name, policy in by_class.items()},
        blank=blank,
    )


def _bad_images(path: Path, value: Any) -> int | str:
    try:
        allowed(value, 1)
    except ValueError:
        raise _need(
            path, "bad_images", "a number of images, or a share such as 1%", value
        ) from None
    return value
