import pandas as pd

from cxr_studies.analysis import patient_intervals, subgroups
from cxr_studies.analysis.significance import CLASSES, SCENARIOS, significance
from cxr_studies.report.tables import plain_tables


def texts(found):
    """A frame's lines, as texts by heading."""
    return found.reset_index().to_dict("records")


def test_tests_have_a_line_for_each_other_row_and_test_set(finished):
    tests = significance(finished.results)
    found = plain_tables.tested(tests, SCENARIOS)
    others = {"Vanilla FL": "fedbn+", "Centralised, fully labelled": "batch norm trained"}
    assert [(*words, pairs) for words, pairs in found["pairs"].items()] == [
        ("all", *row, "global", test, "3") for row in others.items() for test in ("NIH", "MIMIC")
    ]
    line = tests[(tests["pairing"] == SCENARIOS) & (tests["group"] == "all")].iloc[:1]
    assert found["difference"].iloc[0].startswith(f"{line['difference'].iloc[0]:+.3f} (")
    of_classes = texts(plain_tables.tested(tests, CLASSES))
    assert {(row["scenario"], row["pairs"]) for row in of_classes} == {(n, "3") for n in "234"}
    changed = pd.concat([line.assign(p=float("nan"), holm=1e-9), line.assign(p=0.04)])
    first, second = texts(plain_tables.tested(changed, SCENARIOS))
    assert (first["p"], first["Holm"], second["p"]) == ("\N{EN DASH}", "<0.001", "0.040")


def test_shared_and_unique_classes_are_shown_together_with_their_gap(finished):
    found = texts(plain_tables.by_class_kind(finished.results))
    assert len(found) == 18
    row = next(row for row in found if (row["scenario"], row["on"]) == ("2", "NIH"))
    seeds = finished.results.seeds
    lines = seeds[(seeds["scenario"] == "2") & (seeds["test"] == "nih")]
    mean = lines[lines["method"] == "surgical"].set_index("group")["auroc"]
    assert all(row[group].startswith(f"{mean[group]:.3f} (") for group in ("shared", "unique"))
    assert row["gap"] == f"{mean['shared'] - mean['unique']:+.3f}"


def test_every_model_has_every_metric_and_subgroups_their_numbers_of_images(finished):
    every = plain_tables.measured(finished.results)
    assert list(every) == ["AUROC", "AUPRC", "BCE", "ECE"] and len(every) == 18
    measured = subgroups.over_seeds(subgroups.subgroups(finished.results))
    found = texts(plain_tables.in_subgroups(measured))
    assert len(found) == len(measured)
    women = next(row for row in found if (row["by"], row["subgroup"]) == ("sex", "F"))
    assert women["images"] == "40"


def test_differences_by_patient_are_listed_run_by_run_over_all_classes(finished):
    measured = patient_intervals.patient_intervals(finished.results, resamples=20).differences
    chosen = measured[measured["group"] == "all"]
    found = texts(plain_tables.by_patient(measured))
    assert len(found) == len(chosen) > 0
    line = chosen.iloc[0]
    ends = f"({line['auroc_low']:+.3f} to {line['auroc_high']:+.3f})"
    assert found[0]["AUROC"] == f"{line['auroc']:+.3f} {ends}"
    assert found[0]["seed"] == str(line["seed"])
