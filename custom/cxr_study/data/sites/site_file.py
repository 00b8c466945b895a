"""The site file: which data a site has, which classes it labels and what it decided about them.

A YAML file that stays at the site and is named as it, with paths relative to it; custom/SITES.md
has one with all keys. Where it is, a hospital's policy says, else the job; unnamed, the phantom's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo

from cxr_study.common import offered_data
from cxr_study.common.errors import InputError
from cxr_study.common.yaml_files import (
    ExistingFile,
    ExistingFolder,
    NeedError,
    Target,
    read_model,
)
from cxr_study.data.images.image_files import allowed
from cxr_study.data.labels.label_table import Blank, LabelPolicy, Uncertain
from cxr_study.data.labels.vocabulary import class_name
from cxr_study.data.readers import dataset_of
from cxr_study.data.readers.table_layout import TableLayout, Word

if TYPE_CHECKING:
    from surgical_aggregation.site.contract.site_policy import SitePolicy

__all__ = ["read_site_file", "write_site_file"]

_Words = tuple[Word, ...]


def _dataset(name: str) -> str:
    dataset_of(name)  # which refuses one that is not known
    return name


def _list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _names(spellings: Iterable[str], info: ValidationInfo) -> tuple[str, ...]:
    """Names of classes in their canonical spelling, each once."""
    names: dict[str, None] = {}
    for spelling in spellings:
        name = class_name(spelling, info.data.get("dataset"))
        if name in names:
            raise NeedError("each class once", spelling)
        names[name] = None
    return tuple(names)


def _merges(value: dict[str, _Words], info: ValidationInfo) -> dict[str, _Words]:
    return dict(zip(_names(value, info), value.values(), strict=True))


def _policies(value: object) -> object:
    return value if isinstance(value, dict) else {"default": value}


def _limit(value: Any) -> int | str:
    try:
        allowed(value, 1)
    except ValueError:
        raise NeedError("a number of images, or a share such as 1%") from None
    return value


_Several = BeforeValidator(_list)
_Some = Field(min_length=1)


class SiteFile(TableLayout):
    """The keys of a site file, see the module; paths are absolute, the split may not exist yet."""

    dataset: Annotated[str, AfterValidator(_dataset)]
    labels: Annotated[tuple[ExistingFile, ...], _Several, _Some]
    metadata: ExistingFile | None = None
    images: ExistingFolder
    nested: bool = False
    split: Target
    classes: Annotated[_Words, _Some, AfterValidator(_names)] | None = None
    views: Literal["frontal", "all"] = "frontal"
    merges: Annotated[dict[Word, Annotated[_Words, _Several, _Some]], AfterValidator(_merges)] = (
        Field(default_factory=dict)
    )
    distinct: Annotated[_Words, _Several, AfterValidator(_names)] = ()
    uncertain: Annotated[dict[Word, Uncertain], BeforeValidator(_policies)] = Field(
        default_factory=dict
    )
    blank: Blank | None = None
    bad_images: Annotated[int | str, PlainValidator(_limit)] = 0
    contradictions: Literal["note", "refuse"] = "note"
    bits: Annotated[int, Field(ge=8, le=16, strict=True)] | None = None
    truth: ExistingFile | None = None
    _path: Path

    def model_post_init(self, context: Any, /) -> None:
        """Keep the path of the file, and check dataset and metadata together."""
        self._path = context
        has_metadata = bool(dataset_of(self.dataset).metadata_names)
        if self.dataset != "table" and has_metadata != (self.metadata is not None):
            need = "needs" if has_metadata else "has no use for"
            raise ValueError(f"dataset '{self.dataset}' {need} the key 'metadata'.")
        own = any(getattr(self, key) for key in ("nested", *TableLayout.model_fields))
        if self.dataset != "table" and own:
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
    def policy(self) -> LabelPolicy:
        """What uncertain and blank labels count as."""
        policies = {class_name(name, self.dataset): p for name, p in self.uncertain.items()}
        # What a blank cell of a hospital's own table means, only the hospital knows.
        blank = self.blank or (None if self.dataset == "table" else "negative")
        return LabelPolicy(policies.pop("default", "zeros"), policies, blank)


def read_site_file(path: Path) -> SiteFile:
    """Read and check a site file.

    Raises:
        InputError: The file does not exist or is not YAML, a key is missing, unknown or not
            what it should be, a path does not exist, or a class is unknown or listed twice; names
            the file and the key.
    """
    return read_model(SiteFile, path, "site file", InputError)


def write_site_file(path: Path, **keys: Any) -> None:
    """Write a site file with these keys, paths relative to it; its folder exists already.

    `labels` is a path or several; a key of None is left out.
    """

    def relative(target: Path) -> str:
        return Path(os.path.relpath(target, Path(path).parent)).as_posix()

    given = {key: value for key, value in keys.items() if value is not None}
    given |= {key: relative(value) for key, value in given.items() if isinstance(value, Path)}
    if not isinstance(given["labels"], str):
        several = list(map(relative, given["labels"]))
        given["labels"] = several if len(several) > 1 else several[0]
    Path(path).write_text(yaml.safe_dump(given, sort_keys=False), encoding="utf-8")


VARIABLE = "CXR_SITES"
"""With the folder, where the client starts: the site's own word, as its policy is."""


def find_site_file(site: str, given: str | None, policy: SitePolicy) -> Path:
    """Path of <folder>/<site>.yaml, which exists.

    A site with a policy is a hospital's. Its policy names the folder, else `VARIABLE` does; a job
    cannot, and it trains on the phantom only where it says so itself.

    Args:
        site: Its name.
        given: Folder or demo data that the job names, or `VARIABLE` in the job's place.
        policy: The site's.

    Raises:
        SiteError: The job names a folder and may not, nobody does, or there is no such file.
    """
    # FLARE, which those who only read a site file do not need
    from surgical_aggregation.site.contract.site import SiteError
    from surgical_aggregation.site.contract.site_policy import NO_POLICY

    if policy is not NO_POLICY:
        own = policy.site_files or os.environ.get(VARIABLE)
        if given not in (None, "", own, os.environ.get(VARIABLE)):
            raise SiteError(
                f"this site says itself where its site files are; the job names {given!r}. Leave "
                f"the job's setting 'sites' as it is by default, {{${VARIABLE}}}."
            )
        if not own:
            raise SiteError(
                "a site with a policy needs the folder of its site files; none is named. Give "
                f"'site_files' in its local/privacy.json, or the variable {VARIABLE} where the "
                f"client starts; {offered_data.PHANTOM!r} in place of a folder is the phantom."
            )
        given = own
    folder = offered_data.site_files(given)
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    if site not in names:
        raise SiteError(
            f"site file {folder / site}.yaml does not exist; {folder} has sites {names}. Give the "
            f"folder of your site files: --site-files (the setting 'sites'), the variable "
            f"{VARIABLE} where the client starts, or 'site_files' in the site's local/privacy.json."
        )
    return folder / f"{site}.yaml"
