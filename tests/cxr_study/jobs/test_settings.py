"""What a job's settings may be; every other test of a value goes through this."""

import json
import re
from dataclasses import fields

import pytest

from cxr_study.jobs.folder import top
from cxr_study.jobs.job import Job
from cxr_study.jobs.methods import JOBS
from cxr_study.jobs.presets import JobError
from cxr_study.jobs.settings import JobSettings, acting_at, checked, defaults, table
from surgical_aggregation.site.training.training_options import TrainingOptions
from tiny_job import JOBS as FOLDERS

SURGICAL = Job.of("surgical")


@pytest.mark.parametrize(("name", "value", "need"), [
    ("num_rounds", "three", "a whole number, 0 or more; got 'three'"),
    ("num_rounds", 2.5, "a whole number"), ("num_rounds", True, "a whole number"),
    ("patience", -1, "a whole number, 0 or more; got -1"),
    ("image_size", 7, "a whole number from 8 to 2048"),
    ("hidden", 10**9, "a whole number from 0 to 16384"),
    ("seed", 2**32, "a whole number from 0 to 4294967295"),  # NumPy's and Keras's limit
    ("batch_size", 0, "a whole number, 1 or more"),
    ("learning_rate", "fast", "a number, 0 or more; got 'fast'"),
    ("learning_rate", float("nan"), "a number, 0 or more; got nan"),
    ("server_momentum", float("inf"), "a number from 0 to below 1; got inf"),
    ("mixed_precision", 1, "true or false; got 1"), ("strategy", 121, "a text; got 121"),
])  # fmt: skip
def test_a_value_of_another_type_or_out_of_range_is_refused(name, value, need):
    with pytest.raises(JobError, match=re.escape(f"setting '{name}' needs {need}")):
        SURGICAL.with_settings({name: value})


@pytest.mark.parametrize(("name", "value"), [
    ("epochs", 0), ("average_decay", 1.0),
    *[(name, -1.0) for name in ("learning_rate", "focal_gamma", "server_learning_rate")],
    *[(name, "foo") for name in ("backbone", "strategy", "augmentation", "class_weighting",
                                 "send", "tracking", "server_optimizer")],
    ("body_weighting", "positives"),
])  # fmt: skip
def test_what_no_run_could_use_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"{name.removeprefix('server_')}.*{value}"):
        SURGICAL.with_settings({name: value})


@pytest.mark.parametrize(("job", "values", "more", "message"), [
    ("surgical", {"head_weighting": "positives"}, {"report_counts": True},
     "set report_counts=true"),
    ("vanilla", {"head_weighting": "positives"}, None, "head_weighting must be one of"),
    ("surgical_he", {"weighting": "positives"}, None, "weighting must be one of"),
    ("evaluation", {"tracking": "foo"}, None, r"tracking.*foo"),
    ("surgical", {"server_optimizer": "fedadam", "server_learning_rate": 0.1},
     {"server_learning_rate": 0.03}, "Set server_learning_rate=0 for its default"),
    *[("surgical", {"strategy": "fedbn", **wish}, {"strategy": "fedavg"}, "needs one model")
     for wish in ({"refit_model": "best"}, {"average_decay": 0.8})],
    ("surgical", {"focal_gamma": 2.0, "refit_model": "best"}, {"focal_gamma": 0.0},
     "plain cross-entropy"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused(job, values, more, message):
    with pytest.raises(ValueError, match=message):
        Job.of(job).with_settings(values)
    if more:
        Job.of(job).with_settings({**values, **more})


def test_a_whole_number_is_a_number_and_a_jobs_own_settings_are_kept():
    typed = checked({"learning_rate": 1, "mine": [1]})
    assert typed.learning_rate == 1.0 and typed.mine == [1]


@pytest.mark.parametrize("job", JOBS)
def test_the_table_says_of_a_job_what_its_parts_refer_to(job):
    """Each side's, as FLARE resolves them; in the table there is none besides."""
    made = Job.of(FOLDERS / job).folder
    sides = {"server": made.server, "site": made.clients["app_client"]}
    for side, config in sides.items():
        own = {name for name in defaults(job) if name in acting_at(side)}
        assert own == top(config).keys()
        parts = json.dumps({key: value for key, value in config.items() if key not in own})
        assert {*re.findall(r"\{(\w+)\}", parts)} - {"SITE_NAME"} == own


@pytest.mark.parametrize("side", ["server", "both", "site"])
def test_the_pages_table_is_what_the_code_says(side):
    """Where this fails, put what it shows into docs/reference/settings.md."""
    text = (FOLDERS.parent / "docs/reference/settings.md").read_text(encoding="utf-8")
    rows = [row for where, *row in table() if where == side]
    lines = [f"| `{name}` | {default} | {need} | {line} |" for name, default, need, line in rows]
    assert rows and "\n".join(lines) in text


@pytest.mark.parametrize("name", sorted({each.name for each in fields(TrainingOptions)}))
def test_what_the_table_refuses_as_too_small_the_component_refuses_too(name):
    least = JobSettings.model_json_schema()["properties"].get(name, {}).get("minimum")
    if least is None:
        assert not isinstance(getattr(TrainingOptions(), name), float), name  # each has a range
        return
    TrainingOptions(**{name: least})
    with pytest.raises(ValueError, match=f"{name} must be at least {least}"):
        TrainingOptions(**{name: least - 1})
