from pathlib import Path

from cxr_study.studies.plan.data_file import StudyData
from cxr_study.studies.plan.selection import Selection
from cxr_study.studies.runner import origin

DATA = StudyData(Path("/b/data.yaml"), 9, {}, None, None, {})


def told(study="/a/mine.yaml", selection=None):
    return origin.origin(Path(study), DATA, selection or Selection())


def test_an_origin_is_study_file_data_file_and_selection():
    assert told() == "study /a/mine.yaml, data /b/data.yaml, all of it"


def test_a_report_of_the_same_is_not_of_another_and_neither_is_none(tmp_path):
    assert origin.another(told(), tmp_path) is None
    origin.write(told(), tmp_path)
    assert origin.another(told(), tmp_path) is None


def test_a_report_of_another_study_file_or_selection_is_told(tmp_path):
    origin.write(told(), tmp_path)
    assert origin.another(told("/c/mine.yaml"), tmp_path) == told()
    assert origin.another(told(selection=Selection(quick=True)), tmp_path) == told()
