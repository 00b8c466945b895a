"""The images of a study's data sets, decoded before its runs begin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cxr_study.runs.simulated_run import prepare
from cxr_study.studies.plan.data_sets import DataSet
from cxr_study.studies.plan.setting_files import SettingFiles


def decode(found: Mapping[str, DataSet], folder: Path, size: int) -> None:
    """Find out what is wrong with images before anything starts, and decode them once.

    Args:
        found: Name -> data set.
        folder: For site files.
        size: Side of the images, pixels.

    Raises:
        ValueError: An image is unusable.
    """
    files = SettingFiles(found, folder)
    for name in found:
        prepare(files.test_only(name), [name], size)
