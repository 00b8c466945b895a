"""Whether a comparison can be made, as far as that is known before data are read."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from cxr_study.comparison.grid import ComparisonError, Setup
from cxr_study.jobs import job_folder, job_templates
from cxr_study.jobs.network_check import check_network

OWN_KNOBS = (
    "continues", "head_weighting", "initial_body", "min_clients", "num_rounds", "patience",
    "report_counts", "seed", "sites", "strategy", "threads", "union",
)  # fmt: skip
"""Knobs that a comparison sets itself."""


def check(setup: Setup, initial_body: Path | None) -> int:
    """Refuse a setup with which nothing could be trained.

    Args:
        setup: What all rows have in common.
        initial_body: Checkpoint; None: the embedded study's.

    Returns:
        Side of the images, pixels.

    Raises:
        ComparisonError: Too few sites, rounds that contradict each other, or a knob that the
            comparison sets.
        JobError: A knob that a job does not have, or a value of another kind.
        InitialBodyError: The initial body is of another network.
    """
    if len(set(setup.sites)) < max(2, len(setup.sites)):
        raise ComparisonError(
            f"a comparison needs two or more sites, each once; got {setup.sites}."
        )
    if not 1 <= setup.rounds <= setup.most_rounds:
        raise ComparisonError(
            f"--most-rounds must be at least --rounds, and that at least 1; got "
            f"{setup.most_rounds} and {setup.rounds}."
        )
    if own := [name for name in setup.settings if name in OWN_KNOBS]:
        raise ComparisonError(f"the comparison sets the knob {own[0]!r} itself; leave it out.")
    with TemporaryDirectory() as folder:
        job = Path(folder) / "job"  # of any method: they differ in the comparison's own knobs only
        job_templates.configure(
            "surgical", job, sites=setup.sites, settings=setup.settings, per_site={}
        )
        knobs = job_folder.knobs(job)
    check_network(initial_body, backbone=str(knobs["backbone"]), hidden=int(str(knobs["hidden"])))
    return int(str(knobs["image_size"]))
