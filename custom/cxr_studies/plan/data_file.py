"""The data file: on which data a study runs, and with which recipe.

A YAML file, with phantoms that are drawn for it:

    data: phantom
    images: 2000                      # of each data set
    settings: {batch_size: 16}        # of all trainings; the jobs list what there is

or with real data; paths are relative to the file:

    data:
      nih: /data/nih                  # folder of the official download
      chexpert: sites/stanford.yaml   # or a site file of the whole data set
      mimic: {dataset: mimic, labels: ..., views: all}    # or its keys, but for the split
    initial_body: initial.npz         # made by `surgagg model init`
    preset: paper                     # settings that belong together; `settings` win
    per_site: {chexpert: {learning_rate: 5.0e-5}}   # at one site alone; these win over both

or with the sites of hospitals, which keep their own splits, for studies with `sites: all`:

    sites: [sites/a.yaml, sites/b.yaml]   # site files; a site is named as its file
    initial_body: initial.npz
    folds: 5                              # seed 0 tests the first fold of the patients

A study needs the data sets that it names; more do no harm. The folder of MIMIC also holds CXR-LT's
label csv, which labels the classes of both NIH and CheXpert. The shipped files named after papers
have the data of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from cxr_studies.plan import shipped_files
from cxr_study.common.errors import InputError
from cxr_study.common.yaml_files import (
    ExistingFile,
    FileModel,
    NeedError,
    Target,
    choice_validator,
    read_model,
)
from cxr_study.data.readers import official_files
from cxr_study.data.sites.site_file import SiteFile, read_site_file
from cxr_study.jobs.presets import PRESETS

DATA_SETS: Mapping[str, str] = MappingProxyType(
    {"nih": "nih", "chexpert": "chexpert", "mimic": "cxr-lt"}
)
"""Data set, as studies name it -> key of `readers.DATASETS`, for an official download."""

_PHANTOM, _PHANTOM_SITES = "phantom", ("nih", "chexpert")


class WholeDataSet(SiteFile):
    """The keys of a site file of a whole data set, whose split the study makes."""

    split: Path = Field(default=Path(), exclude=True)


Source = Path | WholeDataSet
"""Of a data set: the folder of its official download, or a site file of all of it."""

_Source = Annotated[
    Annotated[Target, Tag("path")] | Annotated[WholeDataSet, Tag("keys")],
    Discriminator(lambda value: "keys" if isinstance(value, dict) else "path"),
]


def _lines(value: object) -> object:
    """The key `data`: "phantom" becomes an empty mapping, anything but a mapping is refused."""
    if value == _PHANTOM:
        return {}
    if not value or not isinstance(value, dict):
        raise NeedError(f"{_PHANTOM}, or lines 'data set: folder or site file'")
    return value


def _check_sources(sources: dict[str, Source]) -> dict[str, Source]:
    """Refuse a folder without the official files, and a site file that cannot be read."""
    for name, source in sources.items():
        if isinstance(source, WholeDataSet):
            continue
        try:
            if source.suffix == ".yaml":
                read_site_file(source)
            else:
                official_files(DATA_SETS[name], source)
        except ValueError as error:
            raise ValueError(f"key '{name}': {error}") from error
    return sources


def _site_files(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Refuse site files that cannot be read, and two of the same name."""
    if len({path.stem for path in paths}) < len(paths):
        raise NeedError("another file name for each site")
    for path in paths:
        read_site_file(path)
    return paths


class StudyData(FileModel):
    """The keys of a data file, with absolute paths.

    Attributes:
        data: Data set -> where it is; empty for the phantom, and with `sites`.
        sites: Site files of hospitals.
        folds: Number of folds that the sites' patients are cut into; seed s tests fold s modulo
            that number. None: the sites keep their splits.
        images: Frontal images of each data set of the phantom; None where the data are real.
        initial_body: Checkpoint to start from; None: the phantom's, for the phantom.
        preset: See `PRESETS`; None: none.
        settings: Setting -> value; win over the preset's. Checked by `run_settings.check`.
        per_site: Site -> setting -> value, at that site alone, in a federation or where it trains
            alone; win over `settings` and the preset's. Checked by `run_settings.check_per_site`.
        path: Of the file; not a key.
    """

    data: Annotated[
        dict[Annotated[str, choice_validator(DATA_SETS)], _Source],
        BeforeValidator(_lines),
        AfterValidator(_check_sources),
    ] = Field(default_factory=dict)
    sites: Annotated[tuple[Target, ...], Field(min_length=1), AfterValidator(_site_files)] = ()
    folds: Annotated[int, Field(strict=True, ge=2)] | None = None
    images: Annotated[int, Field(strict=True, ge=1)] | None = None
    initial_body: ExistingFile | None = None
    preset: Annotated[str, choice_validator(PRESETS)] | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    per_site: dict[str, Annotated[dict[str, Any], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    path: Path = Field(default=Path(), exclude=True)

    @model_validator(mode="after")
    def _check_keys(self) -> StudyData:
        keys = {key for key in self.model_fields_set if getattr(self, key) is not None}
        if self.sites and "data" in keys:
            raise ValueError("key 'data' cannot be combined with 'sites'.")
        if self.folds and not self.sites:
            raise ValueError(
                "key 'folds' cuts the patients of 'sites'; it does not apply without them."
            )
        real = bool(self.sources)
        if real and "images" in keys:
            raise ValueError("key 'images' does not apply where the data are real: all are used.")
        needed = {"initial_body" if real else "images"} | (set() if self.sites else {"data"})
        for key in sorted(needed - keys):
            raise ValueError(f"needs key '{key}'; has {', '.join(sorted(keys)) or 'none'}.")
        return self

    @property
    def name(self) -> str:
        """Name of the file, without its suffix."""
        return self.path.stem

    @property
    def sources(self) -> dict[str, Source]:
        """Data set, or site -> where it is; empty for the phantom."""
        return {**self.data, **{path.stem: path for path in self.sites}}

    @property
    def site_names(self) -> tuple[str, ...]:
        """The sites of a study that has all of them; two of the phantom."""
        return _PHANTOM_SITES if self.images is not None else tuple(self.sources)

    @property
    def own_splits(self) -> bool:
        """Whether these sites keep splits and truth of their own."""
        return bool(self.sites) or self.images is not None

    def has(self, data_set: str) -> bool:
        """Whether the file has a data set, e.g. "nih"; the phantom has all."""
        return self.images is not None or data_set in self.sources


def read_data(source: str | Path) -> StudyData:
    """Read and check a data file.

    Args:
        source: Path of the file, or name of a shipped one, e.g. "phantom".

    Returns:
        Its keys, with absolute paths.

    Raises:
        InputError: The file does not exist or is not YAML, a key is missing, unknown or has an
            unusable value, or data are not where it points; names the file and the key.
    """
    path = shipped_files.find(source, "data_files", "data file").absolute()
    return read_model(StudyData, path, "data file", InputError).model_copy(update={"path": path})
