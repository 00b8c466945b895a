"""What a job's settings may be; every other test of a value goes through this."""

import re
from pathlib import Path

import pytest

from cxr_study.jobs import job_folder
from cxr_study.jobs.command_line_settings import JobError
from cxr_study.jobs.job_settings import checked, lines

JOBS = Path(__file__).parents[3] / "jobs"


@pytest.mark.parametrize("job", sorted(path.parent.name for path in JOBS.glob("*/meta.json")))
def test_the_jobs_own_values_can_be_used(job):
    typed = job_folder.typed(JOBS / job)
    own = job_folder.read_settings(JOBS / job)
    assert {name: getattr(typed, name) for name in own} == own
    assert typed.model_fields_set == own.keys()


@pytest.mark.parametrize(("name", "value", "need"), [
    ("num_rounds", "three", "a whole number, 0 or more; got 'three'"),
    ("num_rounds", 2.5, "a whole number"),
    ("num_rounds", True, "a whole number"),
    ("patience", -1, "a whole number, 0 or more; got -1"),
    ("min_clients", -1, "a whole number, 0 or more"),
    ("site_silence", 0, "a whole number, 1 or more"),
    ("image_size", 7, "a whole number from 8 to 2048"),
    ("hidden", 10**9, "a whole number from 0 to 16384"),
    ("batch_size", 0, "a whole number, 1 or more"),
    ("learning_rate", "fast", "a number; got 'fast'"),
    ("learning_rate", float("nan"), "a number; got nan"),
    ("server_momentum", float("inf"), "a number; got inf"),
    ("mixed_precision", 1, "true or false; got 1"),
    ("strategy", 121, "a text; got 121"),
])  # fmt: skip
def test_a_value_of_another_type_or_out_of_range_is_refused(name, value, need):
    with pytest.raises(JobError, match=re.escape(f"setting '{name}' needs {need}")):
        job_folder.typed(JOBS / "surgical", {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("average_decay", 1.0),
        *[(name, -1.0) for name in ("learning_rate", "focal_gamma", "server_learning_rate")],
        *[(name, "foo") for name in ("backbone", "strategy", "augmentation", "class_weighting",
                                     "send", "tracking", "server_optimizer")],
        *[("body_weighting", value) for value in ("positives", "classes", "conflict_averse")],
    ],
)  # fmt: skip
def test_what_no_run_could_use_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"{name.removeprefix('server_')}.*{value}"):
        job_folder.typed(JOBS / "surgical", {name: value})


@pytest.mark.parametrize(("job", "values", "more", "message"), [
    ("surgical", {"head_weighting": "positives"}, {"report_counts": True},
     "set report_counts=true"),
    ("vanilla", {"head_weighting": "positives"}, None, "head_weighting must be one of"),
    ("surgical_he", {"weighting": "positives"}, None, "weighting must be one of"),
    ("evaluation", {"tracking": "foo"}, None, r"tracking.*foo"),
    ("surgical", {"server_optimizer": "fedadam", "server_learning_rate": 0.1},
     {"server_learning_rate": 0.03}, "Set server_learning_rate=0, for its own"),
    *[("surgical", {"strategy": "fedbn", **wish}, {"strategy": "fedavg"}, "needs one model")
     for wish in ({"refit_model": "best"}, {"average_decay": 0.8})],
    ("surgical", {"focal_gamma": 2.0, "refit_model": "best"}, {"focal_gamma": 0.0},
     "plain cross-entropy"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused(job, values, more, message):
    with pytest.raises(ValueError, match=message):
        job_folder.typed(JOBS / job, values)
    if more:
        job_folder.typed(JOBS / job, {**values, **more})


def test_a_whole_number_is_a_number_and_a_jobs_own_settings_are_kept():
    typed = checked({"learning_rate": 1, "mine": [1]})
    assert typed.learning_rate == 1.0 and typed.mine == [1]


def test_lines_set_the_defaults_with_their_comments():
    first, second, third = lines("epochs", "seed", "strategy", strategy="fedavg").splitlines()
    assert (first, second) == ("epochs = 1                                 # per round", "seed = 0")
    assert third.startswith('strategy = "fedavg"                        # fedavg | ')
