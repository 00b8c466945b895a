"""The site file: a site's data, the classes it labels, and its decisions about labels and images.

A YAML file with the name of the site that stays at the site; its paths are relative to it.
docs/how-to/own-data.md describes all keys. The folder of site files is given by the hospital's
policy, else by the job; the default is the phantom's.
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
from cxr_study.data.labels.uncertain_labels import Blank, LabelPolicy, Uncertain
from cxr_study.data.labels.vocabulary import class_name
from cxr_study.data.readers import dataset_of
from cxr_study.data.readers.table_layout import TableLayout, Word

if TYPE_CHECKING:
    from surgical_aggregation.site.contract.site_policy import SitePolicy

__all__ = ["read_site_file", "write_site_file"]

_Words = tuple[Word, ...]


def _dataset(name: str) -> str:
    dataset_of(name)  # raises for unknown names
    return name


def _list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _names(spellings: Iterable[str], info: ValidationInfo) -> tuple[str, ...]:
    """Canonical spelling of class names; refuses repeated classes."""
    names: dict[str, None] = {}
    for spelling in spellings:
        name = class_name(spelling, info.data.get("dataset"))
        if name in names:
            raise NeedError("each class once", spelling)
        names[name] = None
    return tuple(names)


def _by_class(value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    return dict(zip(_names(value, info), value.values(), strict=True))


def _policies(value: object) -> object:
    return value if isinstance(value, dict) else {"default": value}


def _limit(value: int | str) -> int | str:
    try:
        allowed(value, 1)
    except ValueError:
        raise NeedError("a number of images, or a share such as 1%") from None
    return value


_Several = BeforeValidator(_list)
_Some = Field(min_length=1)


class SiteFile(TableLayout):
    """The content of a site file; see `table_layout.TableLayout` for further keys of own csvs.

    Attributes:
        dataset: Name of the data set, see `readers.dataset_of`.
        labels: Label csv files.
        metadata: The second csv of data sets that have one; for an own csv, the index of images.
        images: The images folder.
        nested: Whether images of an own csv may be in subfolders that it does not name.
        split: The split file; it may not exist yet.
        classes: Classes that the site labels. None: the data set's.
        views: Whether to use frontal images or all. Default "frontal".
        merges: Class -> columns that are merged into it, see `merges`.
        distinct: Classes that are declared to be different from all with similar names.
        uncertain: Class, or "default", -> policy of uncertain labels, see `uncertain_labels`.
        blank: Meaning of blank labels. None: undecided for an own csv, else "negative".
        bad_images: Number or share ("1%") of images that may be unusable. Default 0.
        contradictions: Whether images with notes are used ("note", the default) or left out
            ("refuse").
        bits: Bits that the values of 16-bit images use, 8 to 16. None: estimated.
        truth: A csv with more labels of the same images, for evaluation only.

    All paths are absolute.
    """

    dataset: Annotated[str, AfterValidator(_dataset)]
    labels: Annotated[tuple[ExistingFile, ...], _Several, _Some]
    metadata: ExistingFile | None = None
    images: ExistingFolder
    nested: bool = False
    split: Target
    classes: Annotated[_Words, _Some, AfterValidator(_names)] | None = None
    views: Literal["frontal", "all"] = "frontal"
    merges: Annotated[dict[Word, Annotated[_Words, _Several, _Some]], AfterValidator(_by_class)] = (
        Field(default_factory=dict)
    )
    distinct: Annotated[_Words, _Several, AfterValidator(_names)] = ()
    uncertain: Annotated[
        dict[Word, Uncertain], BeforeValidator(_policies), AfterValidator(_by_class)
    ] = Field(default_factory=dict)
    blank: Blank | None = None
    bad_images: Annotated[int | str, PlainValidator(_limit)] = 0
    contradictions: Literal["note", "refuse"] = "note"
    bits: Annotated[int, Field(ge=8, le=16, strict=True)] | None = None
    truth: ExistingFile | None = None
    _path: Path

    def model_post_init(self, context: Any, /) -> None:
        """Store the path of the file (pydantic's context), and check keys that depend on others.

        Raises:
            ValueError: A key does not fit the data set.
        """
        self._path = context
        has_metadata = bool(dataset_of(self.dataset).metadata_names)
        if self.dataset != "table" and has_metadata != (self.metadata is not None):
            need = "needs" if has_metadata else "does not use"
            raise ValueError(f"dataset '{self.dataset}' {need} the key 'metadata'.")
        own = any(getattr(self, key) for key in ("nested", *TableLayout.model_fields))
        if self.dataset != "table" and own:
            raise ValueError(
                "the keys 'columns', 'words', 'encoding', 'findings', 'threshold', 'patients' and "
                f"'nested' are for dataset 'table'; '{self.dataset}' has a fixed format."
            )

    @property
    def path(self) -> Path:
        """Path of the site file."""
        return self._path

    @property
    def site(self) -> str:
        """Name of the site: that of its file, without .yaml."""
        return self.path.stem

    @property
    def policy(self) -> LabelPolicy:
        """Treatment of uncertain and blank labels."""
        policies = dict(self.uncertain)
        # Only the hospital knows what a blank cell of its own table means.
        blank = self.blank or (None if self.dataset == "table" else "negative")
        return LabelPolicy(policies.pop("default", "zeros"), policies, blank)


def read_site_file(path: Path) -> SiteFile:
    """Read and check a site file; the labels and images are not read.

    Raises:
        InputError: The file does not exist or is not YAML; a key is missing, unknown or not valid;
            a path does not exist; or a class is listed twice. Names the file and the key.
    """
    return read_model(SiteFile, path, "site file", InputError)


def write_site_file(path: Path, **keys: Any) -> None:
    """Write a site file.

    Args:
        path: The file; its folder must exist.
        keys: Keys -> values. Paths become relative to the file; `labels` is one path or several; a
            key with the value None is left out.
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
"""Environment variable of a site's client with the folder of site files; the site sets it."""


def find_site_file(site: str, given: str | None, policy: SitePolicy, identity: str) -> Path:
    """Find the file of a site, <folder>/<site>.yaml.

    A site with a policy belongs to a hospital: the policy names the folder, else `VARIABLE` does. A
    job cannot name one there, nor another file in it, and the phantom is used only if the site
    itself names it.

    Args:
        site: Name of the site, as the job gives it.
        given: Folder or demo data from the job's setting `sites`; None and "" mean the phantom.
        policy: The site's policy, or `NO_POLICY`.
        identity: Name of the site in the network; needed if it has a policy.

    Returns:
        Path of the file, which exists.

    Raises:
        SiteError: The job names a folder or another site although the site has a policy, no folder
            is named, or there is no such file.
    """
    # Imports FLARE, which is not needed to read a site file.
    from surgical_aggregation.site.contract.site import SiteError
    from surgical_aggregation.site.contract.site_policy import NO_POLICY

    if policy is not NO_POLICY:
        if site != identity:
            raise SiteError(
                f"a site with a policy reads its own file, {identity}.yaml; the job names {site!r}."
                " Keep '{SITE_NAME}' as the argument 'site' of the job's component."
            )
        own = policy.site_files or os.environ.get(VARIABLE)
        if given not in (None, "", own, os.environ.get(VARIABLE)):
            raise SiteError(
                f"the folder of site files is set by this site itself; the job names {given!r}. "
                f"Keep the default of the job's setting 'sites', {{${VARIABLE}}}."
            )
        if not own:
            raise SiteError(
                "a site with a policy needs the folder of its site files; none is named. Set "
                f"'site_files' in its local/privacy.json, or the variable {VARIABLE} where the "
                f"client starts; {offered_data.PHANTOM!r} instead of a folder is the phantom."
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
