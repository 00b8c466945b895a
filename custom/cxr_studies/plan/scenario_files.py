"""The site files of a study: data sets, whole or cut, or the data file's sites."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from cxr_studies.partition.class_sets import ClassSets
from cxr_studies.partition.partition import write_sites
from cxr_studies.plan.data_sets import DataSet, write_copy
from cxr_studies.plan.planned_run import Run, key_of
from cxr_study.data.sites.patient_split import RECIPE, SCHEME, split_patients, write_split
from cxr_study.runs.simulated_run import prepare


@dataclass(frozen=True)
class ScenarioFiles:
    """Writes site files into folders, each folder once."""

    found: Mapping[str, DataSet]
    folder: Path

    def parts(self, name: str, class_sets: ClassSets, *, seed: int, share: Fraction) -> Path:
        """Folder of the sites that a data set is cut into, `<name>-1.yaml` and so on.

        Their test patients together are those of `wholes` with the same seed.

        `share` is of each site's training patients, to be used.
        """
        data = self.found[name]
        what = {"digest": data.digest, "parts": class_sets, "seed": seed, "share": str(share)}
        what["recipe"] = RECIPE

        def write(half: Path) -> None:
            write_sites(data.site, half, class_sets, seed=seed, share=float(share))

        return written(self.folder, what, write)

    def wholes(self, labelled: Mapping[str, Sequence[str]], *, seed: int) -> Path:
        """Folder of whole data sets as sites, `<name>.yaml` each; labelled: name -> classes."""
        digests = {name: [self.found[name].digest, *classes] for name, classes in labelled.items()}

        def write(half: Path) -> None:
            for name, classes in labelled.items():
                data = self.found[name]
                assignment = split_patients(data.table, seed=seed)
                _write_split_site(half, data, classes, assignment, f"70/10/20 {SCHEME}", seed)

        return written(self.folder, {"wholes": digests, "seed": seed, "recipe": RECIPE}, write)

    def test_only(self, name: str) -> Path:
        """Folder with a data set that no site trains on: all its images are in the test split."""
        data = self.found[name]

        def write(half: Path) -> None:
            assignment = data.table[["patient"]].drop_duplicates().assign(split="test")
            assignment = assignment.sort_values("patient", ignore_index=True)
            scheme = "all patients are tested"
            _write_split_site(half, data, data.classes, assignment, scheme, None)

        return written(self.folder, {"test only": data.digest}, write)

    def given(self, sites: Mapping[str, DataSet], labelled: Mapping[str, Sequence[str]]) -> Path:
        """Folder of sites with splits and truth of their own, `<name>.yaml` each."""
        digests = {
            name: [each.digest, _digest(each.site.split), _digest(each.site.truth), *labelled[name]]
            for name, each in sites.items()
        }

        def write(half: Path) -> None:
            for name, each in sites.items():
                site = each.site
                write_copy(site, half / f"{name}.yaml", labelled[name], site.split, site.truth)

        return written(self.folder, {"given": digests}, write)


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
    if not target.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(dir=folder, prefix=".half-"))
        try:
            write(half)
            half.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another study has just written it
                raise
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return target


def _digest(file: Path | None) -> str:
    return "" if file is None else hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def _write_split_site(
    folder: Path,
    data: DataSet,
    classes: Sequence[str],
    assignment: pd.DataFrame,
    scheme: str,
    seed: int | None,
) -> None:
    split = folder / f"{data.site.site}_split.csv"
    write_split(assignment, data.table, split, scheme=scheme, seed=seed)
    write_copy(data.site, folder / f"{data.site.site}.yaml", classes, split)
