"""What the report of a study is made of, kept beside it: a later one may be of something else."""

from __future__ import annotations

from pathlib import Path

from cxr_study.common.files import replace
from cxr_study.studies.plan.data_file import StudyData
from cxr_study.studies.plan.selection import Selection

ORIGIN_FILE = "origin.txt"


def origin(study: Path, data: StudyData, selection: Selection) -> str:
    """Study file, data file and selection, in words."""
    return f"study {study}, data {data.path}, {selection}"


def write(told: str, folder: Path) -> None:
    """Put an origin beside the report in a folder."""
    replace(folder / ORIGIN_FILE, f"{told}\n")


def another(told: str, folder: Path) -> str | None:
    """Origin of the report in a folder; None where there is none, or it has the same origin."""
    path = folder / ORIGIN_FILE
    kept = path.read_text(encoding="utf-8").strip() if path.is_file() else told
    return None if kept == told else kept
