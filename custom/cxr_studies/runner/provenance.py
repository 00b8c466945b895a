"""Where results come from: a run's computer; a report's study, data and selection."""

from __future__ import annotations

from pathlib import Path

from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.study_selection import Selection
from cxr_study.common.files import replace

ORIGIN_FILE = "origin.txt"


def device() -> str:
    """Name of the GPU, or "CPU", as TensorFlow tells; after `tensorflow_setup.configure`."""
    import tensorflow as tf

    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    names = dict.fromkeys(str(each.get("device_name", "GPU")) for each in details)
    return ", ".join(names) or "CPU"


def origin(study: Path, data: StudyData, selection: Selection) -> str:
    """Study file, data file and selection, in words."""
    return f"study {study}, data {data.path}, {selection}"


def write_origin(told: str, folder: Path) -> None:
    """Put an origin beside the report in a folder."""
    replace(folder / ORIGIN_FILE, f"{told}\n")


def another(told: str, folder: Path) -> str | None:
    """Origin of the report in a folder; None where there is none, or it has the same origin."""
    path = folder / ORIGIN_FILE
    kept = path.read_text(encoding="utf-8").strip() if path.is_file() else told
    return None if kept == told else kept
