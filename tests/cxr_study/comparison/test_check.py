import dataclasses

import pytest

from cxr_study.comparison.check import OWN_KNOBS, check
from cxr_study.comparison.grid import ComparisonError, Setup
from cxr_study.jobs.network_check import InitialBodyError
from cxr_study.jobs.settings import JobError
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save

SETUP = Setup(("nih", "chexpert"), 2, 4, 1, {"image_size": 16})


def test_it_knows_the_size_of_the_images():
    assert check(SETUP, None) == 16
    assert check(dataclasses.replace(SETUP, settings={}), None) == 64


@pytest.mark.parametrize("sites", [("nih",), ("nih", "nih"), ("nih", "chexpert", "nih")])
def test_fewer_than_two_sites_or_one_twice_are_refused(sites):
    with pytest.raises(ComparisonError, match="two or more sites, each once"):
        check(dataclasses.replace(SETUP, sites=sites), None)


@pytest.mark.parametrize(("rounds", "most"), [(3, 2), (0, 2)])
def test_rounds_that_contradict_each_other_are_refused(rounds, most):
    setup = dataclasses.replace(SETUP, rounds=rounds, most_rounds=most)
    with pytest.raises(ComparisonError, match=f"got {most} and {rounds}"):
        check(setup, None)


@pytest.mark.parametrize("name", OWN_KNOBS)
def test_a_knob_that_the_comparison_sets_is_refused(name):
    setup = dataclasses.replace(SETUP, settings={name: 1})
    with pytest.raises(ComparisonError, match=f"sets the knob '{name}' itself"):
        check(setup, None)


def test_a_knob_that_no_job_has_is_refused():
    with pytest.raises(JobError, match="learning_rat"):
        check(dataclasses.replace(SETUP, settings={"learning_rat": 1.0}), None)


def test_a_body_of_another_network_is_refused(tmp_path):
    save(Checkpoint({}, {"backbone": "densenet121"}), tmp_path / "body.npz")
    with pytest.raises(InitialBodyError):
        check(SETUP, tmp_path / "body.npz")
