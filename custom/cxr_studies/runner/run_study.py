"""Studies from their plan to their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rich.console import Console

from cxr_studies.papers import published_data
from cxr_studies.papers.published_data import Had
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
class Made:
    """What was made.

    Attributes:
        runs: Study -> all its runs, of which two may be one, with the same key.
        failures: Those that failed.
        had: Data set -> what it is used as.
    """

    runs: dict[str, list[Run]]
    failures: list[Failure]
    had: Mapping[str, Had]


def make(
    studies: Sequence[Study],
    data: StudyData,
    folder: Path,
    selection: Selection,
    *,
    at_once: int | None,
    console: Console,
    project: Path | None = None,
) -> Made:
    """Make the runs of some studies that are not made yet.

    Studies share the runs that they have in common; everything is in one folder. Of `at_once`
    see `side_by_side.run_all`.

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
    told = f"{counted(len(everything), 'run')}: {made} made before, {len(everything) - made} begin"
    console.print(f"{told} now.", highlight=False, soft_wrap=True)
    pooled = sorted({run.row.method for run in everything if run.row.pooled})
    if pooled and data.per_site:
        told = f"{', '.join(pooled)}: all images in one place, without 'per_site' of {data.path}"
        console.print(f"note: {told}.", highlight=False, soft_wrap=True)
    decode(found, everything, folder / SITES, everything[0].what["network"]["image_size"])
    had = {name: published_data.ours(each) for name, each in found.items()}
    return Made(planned, side_by_side.run_all(everything, folder / RUNS, at_once, console), had)


def _check_folder(folder: Path) -> None:
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
