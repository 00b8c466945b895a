"""The site files of a study: of data sets, whole or cut, and of the data file's sites."""

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
from cxr_study.data.labels.label_table import DESCRIPTORS, apply_policy
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.data.readers import official_files
from cxr_study.data.sites.patient_split import RECIPE, SCHEME, split_fold, split_patients
from cxr_study.data.sites.site_data import find_files, labelled_classes, read_labels, select_views
from cxr_study.data.sites.site_file import SiteFile, read_site_file, write_site_file
from cxr_study.data.sites.split_file import read_split, write_split
from cxr_study.runs.simulated_run import prepare


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set.

    Attributes:
        site: Site file of all of it, named as the data set is; its split is not used.
        table: Label table as read, of the views that the site file says.
        images: How many rows of the table have an image file.
        digest: SHA-256 of labels as decided, patients and sizes of the image files, shortened.
    """

    site: SiteFile
    table: pd.DataFrame
    classes: tuple[str, ...]
    images: int
    digest: str


def data_sets(data: StudyData, names: Iterable[str], folder: Path) -> dict[str, DataSet]:
    """Find data sets, or draw them; those that `data` does not have are left out.

    Raises:
        ValueError: One is not where it should be, or not what it should be.
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
    """Sites with splits of their own; of the phantom, drawn anew for every seed.

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
    site = read_site_file(path)
    table = select_views(site, read_labels(site))
    classes = labelled_classes(site, class_columns(table))
    decided = apply_policy(table[[*DESCRIPTORS, *classes]], site.policy)
    files = find_files(site, table["image"])
    sizes = np.array([-1 if file is None else file.stat().st_size for file in files], np.int64)
    sha = hashlib.sha256(",".join(decided.columns).encode("utf-8"))
    sha.update(pd.util.hash_pandas_object(decided, index=False).to_numpy().tobytes())
    sha.update(sizes.tobytes())
    return DataSet(site, table, classes, int((sizes >= 0).sum()), sha.hexdigest()[:16])


@dataclass(frozen=True)
class ScenarioFiles:
    """Writes the site files of scenarios into folders, each folder once."""

    found: Mapping[str, DataSet]
    folder: Path

    def parts(
        self,
        name: str,
        class_sets: ClassSets,
        *,
        seed: int,
        share: Fraction,
        skew: Skew | None = None,
    ) -> Path:
        """Folder of the sites that a data set is cut into, `<name>-1.yaml` and so on.

        Their test patients together are those of `wholes` with the same seed.

        `share` is of each site's training patients, to be used; with a `skew` sites differ.
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
        return written(self.folder, {**what, "recipe": RECIPE}, cut)

    def wholes(self, labelled: Mapping[str, Sequence[str]], *, seed: int) -> Path:
        """Folder of whole data sets as sites, `<name>.yaml` each; labelled: name -> classes."""
        digests = {name: [self.found[name].digest, *classes] for name, classes in labelled.items()}
        what = {"wholes": digests, "seed": seed, "recipe": RECIPE}
        split = partial(split_patients, seed=seed)
        return self._copies(what, self.found, labelled, split, f"70/10/20 {SCHEME}", seed)

    def test_only(self, name: str) -> Path:
        """Folder with a data set that no site trains on: all its images are in the test split."""

        def split(table: pd.DataFrame) -> pd.DataFrame:
            patients = table[["patient"]].drop_duplicates().assign(split="test")
            return patients.sort_values("patient", ignore_index=True)

        data = self.found[name]
        what, labelled = {"test only": data.digest}, {name: data.classes}
        return self._copies(what, self.found, labelled, split, "all patients are tested")

    def given(
        self,
        sites: Mapping[str, DataSet],
        labelled: Mapping[str, Sequence[str]],
        *,
        seed: int,
        folds: int | None = None,
    ) -> Path:
        """Folder of sites with truth of their own, `<name>.yaml` each; and splits, without folds.

        With folds a seed tests its own one, see `split_fold`.

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
        """Folder of copies of site files with such classes, and another split or their own."""

        def write(half: Path) -> None:
            for name, classes in labelled.items():
                data, path = found[name], half / f"{name}.yaml"
                if split is None:
                    write_copy(data.site, path, classes, data.site.split, data.site.truth)
                    continue
                csv = half / f"{name}_split.csv"
                write_split(split(data.table), data.table, csv, scheme=scheme, seed=seed)
                write_copy(data.site, path, classes, csv, data.site.truth)

        return written(self.folder, what, write)


def decode(found: Mapping[str, DataSet], runs: Iterable[Run], folder: Path, size: int) -> None:
    """Find out what is wrong with images before anything starts, and decode them once.

    Runs of sites with splits of their own are looked at, too.

    Raises:
        ValueError: An image is unusable, or two sites have a patient in common.
    """
    files = ScenarioFiles(found, folder)
    for name in found:
        prepare(files.test_only(name), [name], size)
    given = [run.where for run in runs if run.where["given"]]
    for place, sites in dict.fromkeys((each["site_files"], (*each["sites"],)) for each in given):
        prepare(Path(place), sites, size)


def written(folder: Path, what: Mapping[str, Any], write: Callable[[Path], object]) -> Path:
    """A folder with something in it, which appears whole or not at all.

    `what` is in it, JSON-serialisable, and names it. Where it is not there yet, `write` is called
    with an empty folder beside it.
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
    return "" if file is None else hashlib.sha256(file.read_bytes()).hexdigest()[:16]
