"""The site files of a study: data sets, whole or cut into sites, split anew for every seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import pandas as pd

from cxr_study.data.labels.class_sets import ClassSets
from cxr_study.data.sites.partition import decisions, write_sites
from cxr_study.data.sites.patient_split import split_patients
from cxr_study.data.sites.site_file import write_site_file
from cxr_study.data.sites.split_file import write_split
from cxr_study.studies.plan.data_sets import DataSet
from cxr_study.studies.plan.site_folders import written


class SettingFiles:
    """Writes site files into folders, each folder once.

    Args:
        found: Name -> data set.
        folder: Of the folders.
    """

    def __init__(self, found: Mapping[str, DataSet], folder: Path):
        self.found = found
        self.folder = folder

    def parts(self, name: str, class_sets: ClassSets, *, seed: int, share: Fraction) -> Path:
        """Folder of the sites that a data set is cut into, `<name>-1.yaml` and so on.

        Their test patients together are those of `wholes` with the same seed.

        Args:
            name: Of the data set.
            class_sets: Classes of each site.
            seed: Of splits and cut.
            share: Of each site's training patients, to be used.
        """
        data = self.found[name]
        what = {"digest": data.digest, "parts": class_sets, "seed": seed, "share": str(share)}

        def write(half: Path) -> None:
            write_sites(data.site, half, class_sets, seed=seed, share=float(share))

        return written(self.folder, what, write)

    def wholes(self, held: Mapping[str, Sequence[str]], *, seed: int) -> Path:
        """Folder of whole data sets as sites, `<name>.yaml` each.

        Args:
            held: Name of a data set -> classes to label.
            seed: Of the splits.
        """
        digests = {name: [self.found[name].digest, *classes] for name, classes in held.items()}

        def write(half: Path) -> None:
            for name, classes in held.items():
                assignment = split_patients(self.found[name].table, seed=seed)
                scheme = "70/10/20 of the patients, stratified by any positive label"
                self._write(half, name, classes, assignment, scheme, seed)

        return written(self.folder, {"wholes": digests, "seed": seed}, write)

    def test_only(self, name: str) -> Path:
        """Folder with a data set that no site trains on: all its images are in the test split."""
        data = self.found[name]

        def write(half: Path) -> None:
            assignment = data.table[["patient"]].drop_duplicates().assign(split="test")
            assignment = assignment.sort_values("patient", ignore_index=True)
            self._write(half, name, data.classes, assignment, "all patients are tested", None)

        return written(self.folder, {"test only": data.digest}, write)

    def _write(
        self,
        folder: Path,
        name: str,
        classes: Sequence[str],
        assignment: pd.DataFrame,
        scheme: str,
        seed: int | None,
    ) -> None:
        site, split = self.found[name].site, folder / f"{name}_split.csv"
        write_split(assignment, self.found[name].table, split, scheme=scheme, seed=seed)
        write_site_file(
            folder / f"{name}.yaml",
            dataset=site.dataset,
            labels=site.labels,
            metadata=site.metadata,
            images=site.images,
            split=split,
            classes=list(classes),
            **decisions(site, classes),
        )
