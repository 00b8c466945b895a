"""The data file: on which data a study runs, and with which recipe.

A YAML file, with phantoms that are drawn for it:

    data: phantom
    images: 2000                      # of each data set
    settings: {batch_size: 16}           # of all trainings; see the jobs for what there is

or with real data; paths are relative to the file:

    data:
      nih: /data/nih                  # folder of the official download
      chexpert: sites/stanford.yaml   # or a site file of the whole data set
    initial_body: initial.npz         # made by `surgagg model init`
    preset: paper                     # settings that belong together; `settings` win

or with the sites of hospitals, which keep their own splits, for studies with `sites: all`:

    sites: [sites/a.yaml, sites/b.yaml]   # site files; a site is called as its file
    initial_body: initial.npz             # default: the embedded study's

A study needs the data sets that it names; more do no harm. Of MIMIC the folder has CXR-LT's label
csv, too: it labels the classes of both NIH and CheXpert.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cxr_study.common.yaml_files import Keys, read_keys
from cxr_study.data.readers import official_files
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.jobs.command_line_settings import PRESETS
from cxr_study.studies.plan import shipped_files

DATA_SETS: Mapping[str, str] = MappingProxyType(
    {"nih": "nih", "chexpert": "chexpert", "mimic": "cxr-lt"}
)
"""Data set, as studies name it -> key of `readers.DATASETS`, for an official download."""

_PHANTOM, _PHANTOM_SITES = "phantom", ("nih", "chexpert")


class DataFileError(ValueError):
    """A data file does not say what it should."""


@dataclass(frozen=True)
class StudyData:
    """What a data file says, with absolute paths.

    Attributes:
        path: Of the file.
        images: Of each data set of the phantom; None where the data are real.
        sources: Data set -> folder of its official download, or site file of all of it; or site ->
            its site file. Empty for the phantom.
        initial_body: Checkpoint to start from; None: the embedded study's.
        preset: See `PRESETS`; None: none.
        settings: Setting -> value; win over the preset's. Whether a job has them is not looked at.
        given: Whether `sources` are sites.
    """

    path: Path
    images: int | None
    sources: Mapping[str, Path]
    initial_body: Path | None
    preset: str | None
    settings: Mapping[str, Any]
    given: bool = False

    @property
    def name(self) -> str:
        """Of the file."""
        return self.path.stem

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites of a study that has all of them; two of the phantom."""
        return _PHANTOM_SITES if self.images is not None else tuple(self.sources)

    @property
    def own_splits(self) -> bool:
        """Whether these sites keep splits and truth of their own."""
        return self.given or self.images is not None

    def has(self, data_set: str) -> bool:
        """Whether it has a data set; of the phantom all are drawn."""
        return self.images is not None or data_set in self.sources


def read_data(source: str | Path) -> StudyData:
    """Read and check a data file.

    Args:
        source: Path of the file, or the name of a shipped one.

    Raises:
        DataFileError: The file does not exist or is not YAML, a key is missing, unknown or not what
            it should be, or data are not where it says; names the file and the key.
    """
    path = shipped_files.find(source, "data_files", "data file", DataFileError)
    keys = read_keys(path, "data file", DataFileError)
    given, real = keys.has("sites"), keys.values.get("data") != _PHANTOM
    required = ("data", "initial_body") if real else ("data", "images")
    keys.check(
        ("data", "sites", "images", "initial_body", "preset", "settings"), () if given else required
    )
    if given:
        keys.refuse(("data",), "beside 'sites'")
    if real:
        keys.refuse(("images",), "where the data are real: all of them are used")
    return StudyData(
        path=keys.path,
        images=None if real else keys.number("images", 1),
        sources=_sites(keys) if given else _sources(keys) if real else {},
        initial_body=_file(keys, "initial_body") if keys.has("initial_body") else None,
        preset=keys.choice("preset", tuple(PRESETS)) if keys.has("preset") else None,
        settings=keys.below("settings", "lines 'setting: value'").values
        if keys.has("settings")
        else {},
        given=given,
    )


def _sites(keys: Keys) -> dict[str, Path]:
    files = keys.values["sites"]
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise keys.need("sites", "a list of site files")
    sites: dict[str, Path] = {}
    for number, file in enumerate(files, start=1):
        path = Keys(keys.path, {"sites": file}, keys.error).target("sites")
        if path.stem in sites:
            raise keys.need("sites", "another file name for each site", file)
        try:
            sites[path.stem] = read_site_file(path).path
        except ValueError as error:
            raise keys.error(f"{keys.path}: key 'sites', {number}: {error}") from error
    return sites


def _sources(keys: Keys) -> dict[str, Path]:
    data = keys.below("data", f"{_PHANTOM}, or lines 'data set: folder or site file'")
    data.check(tuple(DATA_SETS), ())
    if not data.values:
        raise keys.need("data", "one data set or more")
    sources = {name: data.target(name) for name in data.values}
    for name, source in sources.items():
        try:
            if source.suffix == ".yaml":
                read_site_file(source)
            else:
                official_files(DATA_SETS[name], source)
        except ValueError as error:
            raise keys.error(f"{data.path}: {data.place}key '{name}': {error}") from error
    return sources


def _file(keys: Keys, key: str) -> Path:
    target = keys.target(key)
    if not target.is_file():
        raise keys.need(key, f"a file that exists (looked for {target})")
    return target
