import dataclasses

import pytest

from cxr_study.studies.plan.check import check
from cxr_study.studies.plan.data_file import DataFileError
from cxr_study.studies.plan.selection import Selection, StudyError
from cxr_study.studies.plan.study_file import read_study


@pytest.fixture
def checked(small_data):
    """Check a shipped study on the small data, some of the data file changed."""

    def checked(study, data=None, **selection):
        data = dataclasses.replace(small_data.data, **(data or {}))
        return check(read_study(study), data, Selection(**selection))

    return checked


def test_what_is_needed_are_the_data_sets_of_the_selection_and_its_tests(checked):
    assert checked("fedfbn", settings=("iid partial",)) == ("nih", "chexpert", "mimic")
    assert checked("clients") == ("nih", "mimic")


def test_what_cannot_be_selected_or_run_is_refused(checked, small_data):
    with pytest.raises(StudyError, match="no setting '9'"):
        checked("clients", settings=("9",))
    with pytest.raises(DataFileError, match="learning_rat"):
        checked("clients", {"knobs": {**small_data.data.knobs, "learning_rat": 1}})


def test_a_data_set_to_train_on_must_be_there(checked, small_data):
    sources = {"nih": small_data.data.sources["nih"]}
    with pytest.raises(StudyError, match=r"trains on chexpert; data file .*small\.yaml has nih"):
        checked("nih-chexpert", {"sources": sources})


def test_one_to_test_on_may_be_missing_but_not_every_one(checked, small_data):
    sources = {"nih": small_data.data.sources["nih"]}
    assert checked("clients", {"sources": sources}) == ("nih",)
    mimic = dataclasses.replace(read_study("clients"), tests=("mimic",))
    data = dataclasses.replace(small_data.data, sources=sources)
    with pytest.raises(StudyError, match=r"clients is tested on mimic; data file .* has nih"):
        check(mimic, data, Selection())
