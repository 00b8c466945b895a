"""The figures of a run report."""

import pytest

from cxr_study.reports.run import run_figures
from html_page import texts


def test_curves_are_named_by_site_with_the_best_round_marked(summary):
    found = texts(run_figures.validation_bce(summary))
    assert {"best: round 1, 0.250", "nih", "chexpert", "mean"} <= set(found)
    assert {"nih", "chexpert", "mean"} <= set(texts(run_figures.validation_auroc(summary)))


def test_labelled_and_unlabelled_classes_are_told_apart_in_words(summary):
    found = texts(run_figures.class_aurocs(summary, "nih"))
    labelled, unlabelled = "Labelled at nih", "Not labelled at nih: learned from other sites"
    assert {labelled, unlabelled, "Edema", "Fracture"} <= set(found)
    assert "not defined: no positive image in the test split" in found


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ([0.25, 0.5], [0.25, 0.5]),  # far enough apart
        ([0.5, 0.5, 0.5], [0.25, 0.5, 0.75]),  # around their middle
        ([1.0, 1.0, 1.0], [0.5, 0.75, 1.0]),  # inside the axes
    ],
)
def test_names_are_moved_apart(wanted, places):
    assert run_figures._apart(wanted, gap=0.25) == places
