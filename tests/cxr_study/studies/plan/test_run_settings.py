import dataclasses

import pytest

from cxr_study.jobs.methods import Row
from cxr_study.jobs.network_check import InitialBodyError
from cxr_study.studies.plan import run_settings
from cxr_study.studies.plan.data_file import DataFileError


@pytest.fixture
def check(small_data):
    """Check the small data with some more knobs."""

    def check(knobs):
        data = dataclasses.replace(small_data.data, knobs={**small_data.data.knobs, **knobs})
        run_settings.check(data)

    return check


def test_knobs_that_some_job_has_are_all_right(check):
    check({"server_momentum": 0.5, "learning_rate": 1})


def test_a_knob_that_no_job_has_is_refused_by_the_file(check):
    with pytest.raises(DataFileError, match=r"small\.yaml: key 'knobs': .*'learning_rat'"):
        check({"learning_rat": 1})


def test_so_is_a_value_that_no_run_could_use(check):
    with pytest.raises(
        DataFileError, match=r"small\.yaml: key 'knobs': .*'batch_size' needs a whole number, 1"
    ):
        check({"batch_size": 0})


@pytest.mark.parametrize(
    ("own", "value"), [("strategy", "fedavg"), ("seed", 3), ("tracking", "tensorboard")]
)
def test_a_knob_that_is_the_studys_own_is_refused(check, own, value):
    told = rf"small\.yaml: key 'knobs': a study sets the knob '{own}' itself; leave it out"
    with pytest.raises(DataFileError, match=told):
        check({own: value})


def test_an_initial_body_of_another_network_is_refused(check):
    with pytest.raises(InitialBodyError, match="densenet121"):
        check({"backbone": "densenet121"})


def test_every_row_has_its_own_knobs_with_those_of_the_data_file():
    solo = run_settings.knobs(Row("complete", "fedavg"), ("nih",), (), None, {"epochs": 7})
    federated = run_settings.knobs(Row("surgical", "fedbn+"), ("a", "b"), (), None, {"epochs": 7})
    assert solo["epochs"] == federated["epochs"] == 7
    assert federated["min_clients"] == 2 and "min_clients" not in solo


def test_the_network_is_the_jobs_with_the_preset_and_the_knobs_on_top(small_data):
    data = dataclasses.replace(small_data.data, preset="paper", knobs={"image_size": 96})
    assert run_settings.network(data) == {"backbone": "densenet121", "image_size": 96, "hidden": 0}
