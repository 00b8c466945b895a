"""The site file: which data a site has, which classes it labels and what it decided about them.

A YAML file that stays at the site and is named as it, with paths relative to it; custom/SITES.md
has one with all keys.
"""

import codecs
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, PlainValidator, ValidationInfo

from cxr_study.common.yaml_files import (
    ExistingFile,
    ExistingFolder,
    FileModel,
    NeedError,
    Target,
    read_model,
)
from cxr_study.data.images.image_files import allowed
from cxr_study.data.labels.uncertain_labels import Blank, LabelPolicy, Uncertain
from cxr_study.data.labels.vocabulary import class_name
from cxr_study.data.readers import DATASETS
from cxr_study.data.readers.table_layout import (
    IGNORED,
    KINDS,
    Findings,
    Patients,
    TableLayout,
    word_fault,
)


class SiteFileError(ValueError):
    """A site file does not say what it should."""


def _dataset(value: object) -> str:
    *names, last = DATASETS
    if not isinstance(value, str) or value not in DATASETS:
        raise NeedError(f"{', '.join(names)} or {last}")
    return value


def _list(value: object) -> list[Any]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise NeedError("one entry or a list of them")
    return value


def _texts(value: object) -> list[str]:
    return list(map(str, _list(value)))


def _names(spellings: Iterable[object], info: ValidationInfo) -> tuple[str, ...]:
    """Names of classes in their canonical spelling, each once."""
    names: dict[str, None] = {}
    for spelling in spellings:
        name = class_name(str(spelling), info.data.get("dataset"))
        if name in names:
            raise NeedError("each class once", spelling)
        names[name] = None
    return tuple(names)


def _classes(value: object, info: ValidationInfo) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise NeedError("a list of at least one class")
    return _names(value, info)


def _merges(value: object, info: ValidationInfo) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise NeedError("lines 'class: [names it is made of]'")
    sources = [tuple(_texts(names)) for names in value.values()]
    if () in sources:
        raise NeedError("one name or more for each class")
    return dict(zip(_names(value, info), sources, strict=True))


def _policies(value: object) -> object:
    return value if isinstance(value, dict) else {"default": value}


def _limit(value: Any) -> int | str:
    try:
        allowed(value, 1)
    except ValueError:
        raise NeedError("a number of images, or a share such as 1%") from None
    return value


def _columns(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        raise NeedError("lines '<name in the csv>: <what it is>'")
    for name, kind in value.items():
        if kind not in (*KINDS, IGNORED):
            raise NeedError(f"{', '.join(KINDS)} or {IGNORED} for '{name}'", kind)
    return {str(name): kind for name, kind in value.items()}


def _words(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        raise NeedError("lines '<word>: <what it stands for>'")
    for word, meant in value.items():
        if isinstance(word, bool):
            raise NeedError("quotes around a word that YAML takes for true or false", word)
        if fault := word_fault("" if meant is None else str(meant)):
            raise NeedError(f"for '{word}' {fault}", meant)
    return {str(word): "" if meant is None else str(meant) for word, meant in value.items()}


def _encoding(value: object) -> str:
    try:
        return codecs.lookup(str(value)).name
    except LookupError:
        raise NeedError("the name of an encoding, such as cp1252") from None


_Merges = Annotated[dict[str, tuple[str, ...]], PlainValidator(_merges)]
_Uncertain = Annotated[dict[str, Uncertain], BeforeValidator(_policies)]


class SiteFile(FileModel):
    """The keys of a site file, see the module; paths are absolute, the split may not exist yet."""

    dataset: Annotated[str, PlainValidator(_dataset)]
    labels: Annotated[tuple[ExistingFile, ...], BeforeValidator(_list), Field(min_length=1)]
    metadata: ExistingFile | None = None
    images: ExistingFolder
    nested: bool = False
    split: Target
    classes: Annotated[tuple[str, ...], PlainValidator(_classes)] | None = None
    views: Literal["frontal", "all"] = "frontal"
    merges: _Merges = Field(default_factory=dict)
    distinct: Annotated[tuple[str, ...], BeforeValidator(_texts)] = ()
    uncertain: _Uncertain = Field(default_factory=dict)
    blank: Blank | None = None
    bad_images: Annotated[int | str, PlainValidator(_limit)] = 0
    contradictions: Literal["note", "refuse"] = "note"
    bits: Annotated[int, Field(ge=8, le=16, strict=True)] | None = None
    truth: ExistingFile | None = None
    columns: Annotated[dict[str, str], PlainValidator(_columns)] = Field(default_factory=dict)
    words: Annotated[dict[str, str], PlainValidator(_words)] = Field(default_factory=dict)
    encoding: Annotated[str, PlainValidator(_encoding)] | None = None
    findings: Findings | None = None
    threshold: Annotated[float, Field(gt=0, le=1, strict=True)] | None = None
    patients: Patients | None = None
    _path: Path

    def model_post_init(self, context: Any, /) -> None:
        """Keep the path of the file, and check dataset and metadata together."""
        self._path = context
        has_metadata = bool(DATASETS[self.dataset].metadata_names)
        if self.dataset != "table" and has_metadata != (self.metadata is not None):
            need = "needs" if has_metadata else "has no use for"
            raise ValueError(f"dataset '{self.dataset}' {need} the key 'metadata'.")
        if self.dataset != "table" and (self.nested or self.layout != TableLayout()):
            raise ValueError(
                "the keys 'columns', 'words', 'encoding', 'findings', 'threshold', 'patients' and "
                f"'nested' are of dataset 'table'; '{self.dataset}' has its own columns and words."
            )

    @property
    def path(self) -> Path:
        """The site file."""
        return self._path

    @property
    def site(self) -> str:
        """Name of the site."""
        return self.path.stem

    @property
    def layout(self) -> TableLayout:
        """How a hospital's own csv is written."""
        return TableLayout(
            self.columns, self.words, self.encoding, self.findings, self.threshold, self.patients
        )

    @property
    def policy(self) -> LabelPolicy:
        """What uncertain and blank labels count as."""
        policies = {class_name(name, self.dataset): p for name, p in self.uncertain.items()}
        # What a blank cell of a hospital's own table means, only the hospital knows.
        blank = self.blank or (None if self.dataset == "table" else "negative")
        return LabelPolicy(policies.pop("default", "zeros"), policies, blank)


def read_site_file(path: Path) -> SiteFile:
    """Read and check a site file.

    Raises:
        SiteFileError: The file does not exist or is not YAML, a key is missing, unknown or not
            what it should be, a path does not exist, or a class is unknown or listed twice; names
            the file and the key.
    """
    return read_model(SiteFile, path, "site file", SiteFileError)


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
    """Write a site file, with paths relative to it; its folder exists already.

    `decisions` are the other keys, as they are to stand in the file; None leaves one out.
    """
    folder = Path(path).parent

    def relative(target: Path | None) -> str | None:
        return None if target is None else Path(os.path.relpath(target, folder)).as_posix()

    several = [labels] if isinstance(labels, Path) else list(labels)
    keys = {
        "dataset": dataset,
        "labels": relative(several[0]) if len(several) == 1 else list(map(relative, several)),
        "metadata": relative(metadata),
        "images": relative(images),
        "split": relative(split),
        **decisions,
        "truth": relative(truth),
    }
    given = {key: value for key, value in keys.items() if value is not None}
    Path(path).write_text(yaml.safe_dump(given, sort_keys=False), encoding="utf-8")
