from pathlib import Path

import pytest

from cxr_study.jobs import job_folder
from cxr_study.jobs.setting_values import check

JOBS = Path(__file__).parents[3] / "jobs"


@pytest.mark.parametrize("job", sorted(path.parent.name for path in JOBS.glob("*/meta.json")))
def test_the_jobs_own_values_can_be_used(job):
    check(job_folder.knobs(JOBS / job))


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("num_rounds", 0),
        ("patience", -1),
        ("batch_size", 0),
        ("epochs", 0),
        ("learning_rate", -1.0),
        ("learning_rate", float("nan")),
        ("focal_gamma", -1.0),
        ("backbone", "foo"),
        ("strategy", "fedfoo"),
        ("augmentation", "foo"),
        ("class_weighting", "foo"),
        ("send", "foo"),
        ("tracking", "foo"),
        ("body_weighting", "positives"),
        ("server_optimizer", "foo"),
        ("server_learning_rate", -1.0),
    ],
)
def test_what_no_run_could_use_is_refused_by_name(knob, value):
    with pytest.raises(ValueError, match=rf"{knob.removeprefix('server_')}.*{value}"):
        check({**job_folder.knobs(JOBS / "surgical"), knob: value})


def test_a_job_that_continues_another_may_leave_its_rounds_to_it():
    knobs = {**job_folder.knobs(JOBS / "surgical"), "num_rounds": 0}
    check({**knobs, "continues": "0043d777"})
    with pytest.raises(ValueError, match="Set continues="):
        check(knobs)


def test_weighing_by_positives_needs_the_counts():
    knobs = {**job_folder.knobs(JOBS / "surgical"), "head_weighting": "positives"}
    with pytest.raises(ValueError, match="set report_counts=true"):
        check(knobs)
    check({**knobs, "report_counts": True})


def test_where_sites_share_a_union_head_nobody_counts_positives():
    knobs = {**job_folder.knobs(JOBS / "vanilla"), "head_weighting": "positives"}
    with pytest.raises(ValueError, match="head_weighting must be one of"):
        check(knobs)


def test_a_job_that_trains_nothing_needs_a_tracker_that_there_is():
    with pytest.raises(ValueError, match=r"tracking.*foo"):
        check({**job_folder.knobs(JOBS / "evaluation"), "tracking": "foo"})
