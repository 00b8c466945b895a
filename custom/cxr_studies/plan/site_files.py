"""The site files of a study: of data sets, whole or cut, and of the data file's sites.

Folders of site files are named by a digest of their content, so runs and studies share them.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cxr_studies.partition.class_sets import ClassSets
from cxr_studies.partition.partition import write_copy, write_nih_pool, write_sites
from cxr_studies.partition.skew import Skew
from cxr_studies.plan.data_file import DATA_SETS, Source, StudyData
from cxr_studies.plan.run_folder import Run, key_of
from cxr_study.common.errors import InputError
from cxr_study.data.labels.label_table import DESCRIPTORS
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.data.labels.uncertain_labels import apply_policy
from cxr_study.data.readers import official_files
from cxr_study.data.sites.patient_split import RECIPE, SCHEME, split_fold, split_patients
from cxr_study.data.sites.site_data import find_files, labelled_classes, read_labels, select_views
from cxr_study.data.sites.site_file import SiteFile, read_site_file, write_site_file
from cxr_study.data.sites.split_file import read_split, write_split
from cxr_study.runs.simulated_run import prepare


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set, or a site, as read.

    Attributes:
        site: Site file of all of it, named as the data set is; its split is not used.
        table: Label table as read, of the views that the site file selects.
        classes: Those that the site file lists, else all of the table.
        images: Number of rows of the table that have an image file.
        digest: SHA-256 of labels after the policy, patients, sizes of image files, and the site
            file's keys about images, if it has any, shortened.
    """

    site: SiteFile
    table: pd.DataFrame
    classes: tuple[str, ...]
    images: int
    digest: str


def data_sets(data: StudyData, names: Iterable[str], folder: Path) -> dict[str, DataSet]:
    """Find data sets, or draw them.

    Args:
        data: On which data a study runs.
        names: Of the data sets; those that `data` does not have are left out.
        folder: For their site files, a folder for each.

    Returns:
        Name -> data set.

    Raises:
        ValueError: Files are missing, or not those of the data set.
    """
    if data.images is not None:
        from cxr_phantom.demo_data import demo_data_sets  # real data need no phantom

        root = demo_data_sets(data.images)
        return {name: _read(root / f"{name}.yaml") for name in names}
    return {
        name: _read(_site_file(name, data.sources[name], folder / name))
        for name in names
        if name in data.sources
    }


def given_sites(data: StudyData, seed: int) -> dict[str, DataSet]:
    """Sites with splits of their own; of the phantom, other patients are drawn for each seed.

    Args:
        data: On which data a study runs.
        seed: Of the run; changes nothing where the data are real.

    Returns:
        Name of the site -> its data.

    Raises:
        ValueError: A site file, or what it names, is unusable.
    """
    if data.images is None:
        return {path.stem: _read(path) for path in data.sites}
    from cxr_phantom.demo_data import demo_study

    folder = demo_study(seed, data.images)
    return {name: _read(folder / f"{name}.yaml") for name in data.site_names}


def _site_file(name: str, source: Source, folder: Path) -> Path:
    """Write a site file of the data set's name for a download, or for another site file."""
    folder.mkdir(parents=True, exist_ok=True)
    path, split = folder / f"{name}.yaml", folder / "split.csv"
    if isinstance(source, SiteFile) or source.suffix == ".yaml":
        site = source if isinstance(source, SiteFile) else read_site_file(source)
        write_copy(site, path, labelled_classes(site, class_columns(read_labels(site))), split)
    elif name == "nih":
        write_nih_pool(source, folder)
    else:
        key = DATA_SETS[name]
        labels, metadata, images = official_files(key, source)
        write_site_file(
            path, dataset=key, labels=labels, metadata=metadata, images=images, split=split
        )
    return path


def _read(path: Path) -> DataSet:
    """Read a site file with its labels, and find its images."""
    site = read_site_file(path)
    table = select_views(site, read_labels(site))
    classes = labelled_classes(site, class_columns(table))
    decided = apply_policy(table[[*DESCRIPTORS, *classes]], site.policy)
    files = find_files(site, table["image"])
    sizes = np.array([-1 if file is None else file.stat().st_size for file in files], np.int64)
    sha = hashlib.sha256(",".join(decided.columns).encode("utf-8"))
    sha.update(pd.util.hash_pandas_object(decided, index=False).to_numpy().tobytes())
    sha.update(sizes.tobytes())
    if how := site.model_dump(include={"bits", "contradictions"}, exclude_defaults=True):
        sha.update(str(how).encode())
    return DataSet(site, table, classes, int((sizes >= 0).sum()), sha.hexdigest()[:16])


@dataclass(frozen=True)
class ScenarioFiles:
    """Writes the site files of scenarios into folders, each folder once.

    Attributes:
        found: Name -> data set.
        folder: Receives the folders.
    """

    found: Mapping[str, DataSet]
    folder: Path

    def write_cut(
        self,
        name: str,
        class_sets: ClassSets,
        *,
        seed: int,
        share: Fraction,
        skew: Skew | None = None,
    ) -> Path:
        """Write the sites that a data set is cut into, `<name>-1.yaml` and so on.

        Their test patients together are those of `write_whole` with the same seed.

        Args:
            name: Of the data set.
            class_sets: Classes of each site.
            seed: Of split and cut.
            share: Share of each site's training patients that is used.
            skew: How sites differ in size or findings; None: not at all.

        Returns:
            Folder of the site files.

        Raises:
            InputError: There are too few patients, or the labels do not have a class.
        """
        data = self.found[name]
        what = {"digest": data.digest, "parts": class_sets, "seed": seed, "share": str(share)}
        if skew is not None:
            what["skew"] = asdict(skew)
        cut = partial(
            write_sites,
            data.site,
            class_sets=class_sets,
            seed=seed,
            share=float(share),
            skew=skew,
        )
        return write_once(self.folder, {**what, "recipe": RECIPE}, cut)

    def write_whole(self, labelled: Mapping[str, Sequence[str]], *, seed: int) -> Path:
        """Write whole data sets as sites, `<name>.yaml` each.

        Args:
            labelled: Name of a data set -> classes that the site labels.
            seed: Of the split.

        Returns:
            Folder of the site files.
        """
        digests = {name: [self.found[name].digest, *classes] for name, classes in labelled.items()}
        what = {"wholes": digests, "seed": seed, "recipe": RECIPE}
        split = partial(split_patients, seed=seed)
        return self._copies(what, self.found, labelled, split, f"70/10/20 {SCHEME}", seed)

    def write_test_only(self, name: str) -> Path:
        """Write a data set that no site trains on: all its images are in the test split.

        Args:
            name: Of the data set.

        Returns:
            Folder of its site file.
        """

        def split(table: pd.DataFrame) -> pd.DataFrame:
            patients = table[["patient"]].drop_duplicates().assign(split="test")
            return patients.sort_values("patient", ignore_index=True)

        data = self.found[name]
        what, labelled = {"test only": data.digest}, {name: data.classes}
        return self._copies(what, self.found, labelled, split, "all patients are tested")

    def write_given(
        self,
        sites: Mapping[str, DataSet],
        labelled: Mapping[str, Sequence[str]],
        *,
        seed: int,
        folds: int | None = None,
    ) -> Path:
        """Write sites with truth of their own, `<name>.yaml` each.

        Args:
            sites: Name -> site, as its site file describes it.
            labelled: Name -> classes that the site labels.
            seed: Decides which fold is tested.
            folds: Number of folds of the patients, see `split_fold`. None: sites keep their splits.

        Returns:
            Folder of the site files.

        Raises:
            InputError: Folds are asked for where a split file has patients of other sites.
        """
        for each in sites.values() if folds else ():
            if each.site.split.is_file() and "site" in read_split(each.site.split).assignment:
                raise InputError(
                    f"{each.site.split}: folds need labels of the site's own patients alone; this "
                    "split has the column 'site'. Give each site a csv of its own, or leave out "
                    "the data file's key 'folds'."
                )
        digests = {
            name: [
                each.digest,
                "" if folds else _digest(each.site.split),
                _digest(each.site.truth),
                *labelled[name],
            ]
            for name, each in sites.items()
        }
        if folds is None:
            return self._copies({"given": digests}, sites, labelled)
        what = {"given": digests, "folds": folds, "seed": seed, "recipe": RECIPE}
        split = partial(split_fold, fold=seed % folds, folds=folds, seed=seed)
        scheme = f"fold {seed % folds + 1} of {folds} is tested, of the rest 1/8 validates"
        return self._copies(what, sites, labelled, split, scheme, seed)

    def _copies(
        self,
        what: Mapping[str, Any],
        found: Mapping[str, DataSet],
        labelled: Mapping[str, Sequence[str]],
        split: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
        scheme: str = "",
        seed: int | None = None,
    ) -> Path:
        """Folder of copies of site files with other classes, and with another split or their own.

        Args:
            what: Decides the content, JSON-serialisable; its digest names the folder.
            found: Name -> data set.
            labelled: Name -> classes, of the sites that are written.
            split: Split of a label table; None: the site's own.
            scheme: How it was split, for the header of the split file.
            seed: Of the split, likewise.
        """

        def write(half: Path) -> None:
            for name, classes in labelled.items():
                data, path = found[name], half / f"{name}.yaml"
                if split is None:
                    write_copy(data.site, path, classes, data.site.split, data.site.truth)
                    continue
                csv = half / f"{name}_split.csv"
                write_split(split(data.table), data.table, csv, scheme=scheme, seed=seed)
                write_copy(data.site, path, classes, csv, data.site.truth)

        return write_once(self.folder, what, write)


def decode(found: Mapping[str, DataSet], runs: Iterable[Run], folder: Path, size: int) -> None:
    """Check all images before any run starts, and decode them once into the cache.

    Args:
        found: Name -> data set.
        runs: Those of sites with splits of their own are checked, too.
        folder: Of the scenarios' site files.
        size: Side of the images, pixels.

    Raises:
        ValueError: An image is unusable, or two sites have a patient in common.
    """
    files = ScenarioFiles(found, folder)
    for name in found:
        prepare(files.write_test_only(name), [name], size)
    given = [run.where for run in runs if run.where["given"]]
    for place, sites in dict.fromkeys((each["site_files"], (*each["sites"],)) for each in given):
        prepare(Path(place), sites, size)


def write_once(folder: Path, what: Mapping[str, Any], write: Callable[[Path], object]) -> Path:
    """Folder for some content, written where it is not there yet; it appears whole or not at all.

    Args:
        folder: Receives the folder.
        what: Decides the content, JSON-serialisable; its key names the folder.
        write: Called with an empty folder to fill, which is then renamed.

    Returns:
        Path of the folder.
    """
    target = folder / key_of(what)
    if target.is_dir():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".half-", ignore_cleanup_errors=True) as to:
        write(Path(to))
        try:
            Path(to).rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another study has just written it
                raise
    return target


def _digest(file: Path | None) -> str:
    """SHA-256 of a file, shortened to 16 digits; "" for None."""
    return "" if file is None else hashlib.sha256(file.read_bytes()).hexdigest()[:16]
