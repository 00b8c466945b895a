import pandas as pd
import pytest

from cxr_study.reports.study.tables import lines
from cxr_study.studies.analysis import patient_intervals, subgroups
from cxr_study.studies.analysis.significance import CLASSES, SETTINGS, significance


@pytest.fixture(scope="module")
def tests(finished):
    return significance(finished.results)


def test_tests_over_settings_are_one_line_for_each_other_row_and_test_set(tests):
    found = lines.tested(tests, SETTINGS)
    assert [row[:6] for row in found.rows] == [
        ("all", title, variant, "global", test, "2")
        for title, variant in (
            ("Vanilla FL", "fedbn+"), ("Centralised, fully labelled", "batch norm frozen"),
        )
        for test in ("NIH", "MIMIC")
    ]  # fmt: skip
    assert all(len(row) == len(found.headings) for row in found.rows)


def test_tests_over_classes_are_told_for_each_setting(tests):
    found = lines.tested(tests, CLASSES)
    assert {row[0] for row in found.rows} == {"2", "4"}
    assert {row[5] for row in found.rows} == {"3"}


def test_a_p_that_there_is_not_and_a_tiny_one(tests):
    line = tests[(tests["pairing"] == SETTINGS) & (tests["group"] == "all")].iloc[:1]
    changed = pd.concat([line.assign(p=float("nan"), holm=1e-9), line.assign(p=0.04)])
    first, second = lines.tested(changed, SETTINGS).rows
    assert first[8:10] == ("–", "<0.001")  # noqa: RUF001
    assert second[8] == "0.040"


def test_shared_and_unique_classes_stand_beside_each_other_with_their_gap(finished):
    seeds = finished.results.seeds
    found = lines.by_class_kind(finished.results)
    assert len(found.rows) == 12
    row = next(row for row in found.rows if row[0] == "2" and row[1].startswith("Surgical"))
    lines_ = seeds[(seeds["setting"] == "2") & (seeds["method"] == "surgical")]
    mean = lines_[lines_["test"] == row[4].lower()].set_index("group")["auroc"]
    assert row[5].startswith(f"{mean['shared']:.3f} (")
    assert row[6].startswith(f"{mean['unique']:.3f} (")
    assert row[7] == f"{mean['shared'] - mean['unique']:+.3f}"


def test_every_metric_of_every_model(finished):
    found = lines.measured(finished.results)
    assert found.headings[5:] == ("AUROC", "AUPRC", "BCE", "ECE")
    assert len(found.rows) == 12


def test_subgroups_have_their_numbers_of_images_and_patients(finished):
    measured = subgroups.over_seeds(subgroups.subgroups(finished.results))
    found = lines.in_subgroups(measured)
    assert len(found.rows) == len(measured)
    women = next(row for row in found.rows if row[5:7] == ("sex", "F"))
    assert women[7] == "40"


def test_differences_by_patient_are_told_run_by_run_over_all_classes(finished):
    measured = patient_intervals.patient_intervals(finished.results, resamples=20).differences
    found = lines.by_patient(measured)
    assert len(found.rows) == (measured["group"] == "all").sum() > 0
    assert all(len(row) == len(found.headings) for row in found.rows)
    line = measured[measured["group"] == "all"].iloc[0]
    told = f"{line['auroc']:+.3f} ({line['auroc_low']:+.3f} to {line['auroc_high']:+.3f})"
    assert found.rows[0][6] == told
    assert found.rows[0][5] == str(line["seed"])
