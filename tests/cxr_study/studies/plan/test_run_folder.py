import dataclasses

import pytest

import study_runs
from cxr_study.studies.plan.run_folder import read_result, write_result

RESULT = dataclasses.replace(
    study_runs.RESULT,
    losses=(None, 0.1 + 0.2),
    column_similarity=({}, {"Ödem": -0.5}),
    tests={"nih": "0123"},
    classes={"global": ["Ödem", "Mass"]},
    digests={"global": "4567"},
)


def test_a_result_is_read_as_it_was_written_and_without_one_a_run_is_not_finished(tmp_path):
    assert read_result(tmp_path) is None and read_result(tmp_path / "nowhere") is None
    write_result(RESULT, tmp_path)
    assert read_result(tmp_path) == RESULT


def test_a_result_that_cannot_be_written_leaves_the_one_that_is_there(tmp_path):
    write_result(RESULT, tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        write_result(dataclasses.replace(RESULT, losses=(float("nan"),)), tmp_path)
    assert read_result(tmp_path) == RESULT
