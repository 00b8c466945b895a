"""Studies from their plan to their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rich.console import Console

from cxr_studies.papers import published_data
from cxr_studies.papers.published_data import DataUse
from cxr_studies.plan import plan
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.run_folder import DATA, FOLDERS, RUNS, SITES, Run, read_result
from cxr_studies.plan.site_files import data_sets, decode
from cxr_studies.plan.study_file import Selection, Study
from cxr_studies.runner import side_by_side
from cxr_studies.runner.side_by_side import Failure
from cxr_study.common.errors import InputError
from cxr_study.common.wording import counted


@dataclass(frozen=True)
class StudyRuns:
    """The runs of some studies after an attempt to make them all.

    Attributes:
        runs: Study -> all its runs, of which two may have the same key.
        failures: Those that failed.
        data_use: Data set -> how it is used.
    """

    runs: dict[str, list[Run]]
    failures: list[Failure]
    data_use: Mapping[str, DataUse]


def run_studies(
    studies: Sequence[Study],
    data: StudyData,
    folder: Path,
    selection: Selection,
    *,
    at_once: int | None,
    console: Console,
    project: Path | None = None,
) -> StudyRuns:
    """Make the runs of some studies that are not made yet.

    Studies share the runs that they have in common; everything is in one folder.

    Args:
        studies: Their names differ.
        data: On which data they run.
        folder: Of runs, test sets and site files.
        selection: The part of each study that is wanted.
        at_once: Largest number of runs at the same time; None: see `side_by_side.parallel_runs`.
        console: Where progress is printed.
        project: FLARE's project file: federated runs are made in a POC. None: in the simulator.

    Raises:
        InputError: They cannot be made.
        ValueError: The data, a setting or the initial body is unusable.
    """
    _check_folder(folder)
    _check_names([study.name for study in studies])
    needed = [plan.check(study, data, selection, project) for study in studies]
    found = data_sets(data, dict.fromkeys(chain.from_iterable(needed)), folder / DATA)
    planned = {
        study.name: plan.runs(study, data, found, folder, selection, project) for study in studies
    }
    unique = {run.key: run for runs in planned.values() for run in reversed(runs)}
    everything = [run for runs in planned.values() for run in runs if unique[run.key] is run]
    made = sum(read_result(folder / RUNS / run.key) is not None for run in everything)
    started = f"{made} made before, {len(everything) - made} begin now"
    console.print(f"{counted(len(everything), 'run')}: {started}.", highlight=False, soft_wrap=True)
    pooled = sorted({run.row.method for run in everything if run.row.pooled})
    if pooled and data.per_site:
        note = f"{', '.join(pooled)}: all images in one place, without 'per_site' of {data.path}"
        console.print(f"note: {note}.", highlight=False, soft_wrap=True)
    decode(found, everything, folder / SITES, everything[0].what["network"]["image_size"])
    data_use = {name: published_data.data_use_of(each) for name, each in found.items()}
    return StudyRuns(
        planned, side_by_side.run_all(everything, folder / RUNS, at_once, console), data_use
    )


def _check_folder(folder: Path) -> None:
    """Refuse a folder that FLARE's simulator cannot use, and a file."""
    path = folder.absolute()
    if " " in str(path):
        raise InputError(
            f"FLARE's simulator needs a folder without spaces in its path; got "
            f"{str(path)!r}. Give another --out."
        )
    there = next(each for each in (path, *path.parents) if each.exists())
    if not there.is_dir():
        raise InputError(f"studies need a folder; {there} is a file. Give another --out.")


def _check_names(names: Sequence[str]) -> None:
    """Refuse studies whose reports would be written over one another, or over the runs."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(
                f"each study needs a name of its own; two are called {name!r}. Rename a file, or "
                "make them one after the other, with another --out."
            )
        if name in FOLDERS:
            raise InputError(
                f"a study needs another name than {name!r}, a runner's folder. Rename its file."
            )
