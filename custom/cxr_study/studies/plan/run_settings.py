"""The knobs of a study's runs: those of the data file on top of a preset's and the jobs' own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cxr_study.jobs import job_folder, presets
from cxr_study.jobs.methods import Row
from cxr_study.jobs.network_check import check_network
from cxr_study.runs import baseline_run, method_job
from cxr_study.studies.plan.data_file import DataFileError, StudyData
from cxr_study.studies.runner import baseline_runs

OWN_KNOBS = (
    "continues", "head_weighting", "initial_body", "min_clients", "report_counts", "seed", "sites",
    "strategy", "tracking", "union",
)  # fmt: skip
"""Knobs that a study sets itself."""


def check(data: StudyData) -> None:
    """Refuse knobs that no training could use, before any data are read.

    Raises:
        DataFileError: A knob is the study's own, or no job could run with it; names the file.
        ValueError: The initial body is of another network.
    """
    if own := [name for name in data.knobs if name in OWN_KNOBS]:
        raise DataFileError(
            f"{data.path}: key 'knobs': a study sets the knob {own[0]!r} itself; leave it out."
        )
    try:
        # This job has all knobs that a data file can set; others leave some out.
        knobs(Row("surgical", "fedbn+"), ("site",), (), data.preset, data.knobs)
        used = network(data)
    except ValueError as error:
        raise DataFileError(f"{data.path}: key 'knobs': {error}") from error
    check_network(data.initial_body, backbone=used["backbone"], hidden=used["hidden"])


def knobs(
    row: Row,
    sites: Sequence[str],
    union: Sequence[str],
    preset: str | None,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """Every knob of a training, those that nobody has set included.

    Args:
        row: How to train.
        sites: Names of the sites.
        union: Classes of all of them.
        preset: See `presets`; None: none.
        given: Knob -> value; they win.

    Raises:
        ValueError: A knob is unknown, or its value unusable.
    """
    if not row.federated:
        return baseline_runs.knobs(row, sites, union, preset, given)
    with TemporaryDirectory() as temporary:
        job = Path(temporary) / "job"
        method_job.configure(row, job, sites=sites, union=union, settings=given, preset=preset)
        return dict(job_folder.knobs(job))


def network(data: StudyData) -> dict[str, Any]:
    """The knobs of all trainings' network: backbone, image_size and hidden."""
    settings, _ = presets.apply(data.preset, data.knobs, {}, ())
    own = {name: value for name, value in settings.items() if name in baseline_run.KNOBS}
    found = baseline_run.knobs("individual", own)
    return {name: found[name] for name in ("backbone", "image_size", "hidden")}
