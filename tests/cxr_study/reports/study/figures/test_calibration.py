"""Whether the models' probabilities are as often right as they say."""

import numpy as np
import pytest

import study_runs
from cxr_study.common.wording import FEW_IMAGES
from cxr_study.reports.study.figures.calibration import reliability_diagram

IMAGES = 40
SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}


def labels(positives):
    """So many positive images first, then negatives."""
    return np.repeat([1.0, 0.0], [positives, IMAGES - positives])


def said(probability):
    return np.full(IMAGES, probability)


def points(axes):
    """Marked points, line by line."""
    return [
        line.get_xydata().round(4).tolist()
        for line in axes.get_lines()
        if line.get_marker() != "None"
    ]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def finish(made_up, predicted, positives, **run):
    """A run on one test set for each of `predicted`; positives: class -> how many."""
    table = study_runs.table({name: labels(number) for name, number in positives.items()})
    tests = {test: table for _, test in predicted}
    made_up.finish(predicted, tests=tests, **run)


def test_predictions_of_all_classes_and_seeds_are_pooled(made_up, drawn):
    positives = {"Edema": 10, "Mass": 20}
    predicted = {("global", "nih"): {"Edema": said(0.25), "Mass": said(0.25)}}
    finish(made_up, predicted, positives)
    predicted = {("global", "nih"): {"Edema": said(0.25), "Mass": said(0.75)}}
    finish(made_up, predicted, positives, seed=1)
    [axes] = drawn(reliability_diagram, made_up.results(), "2", "nih", "r").axes
    # 0.25 is said 120 times, 40 of them rightly; 0.75 is said 40 times, 20 of them rightly
    assert points(axes) == [[[0.25, round(1 / 3, 4)], [0.75, 0.5]]]
    assert legend(axes) == [f"fedbn+ {(40 - 30 + 30 - 20) / 160:.3f}"]


def test_other_settings_test_sets_and_rows_are_not_in_it(made_up, drawn):
    both = {"Edema": 20}
    predicted = {("global", "nih"): {"Edema": said(0.5)}, ("global", "mimic"): {"Edema": said(0.1)}}
    finish(made_up, predicted, both)
    finish(made_up, {("global", "nih"): {"Edema": said(0.9)}}, both, setting="4")
    finish(made_up, {("global", "nih"): {"Edema": said(0.7)}}, both, method="vanilla")
    figure = drawn(reliability_diagram, made_up.results(), "2", "nih", "r")
    assert [points(axes) for axes in figure.axes] == [[[[0.5, 0.5]]], [[[0.7, 0.5]]]]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["Surgical aggregation", "Vanilla FL"]
    assert figure.get_supxlabel() == "probability on NIH"


def test_strategies_of_a_method_share_a_panel(made_up, drawn):
    for strategy, probability in (("fedavg", 0.5), ("fedbn+", 0.75)):
        predicted = {("global", "nih"): {"Edema": said(probability)}}
        finish(made_up, predicted, {"Edema": 20}, strategy=strategy)
    [axes] = drawn(reliability_diagram, made_up.results(), "2", "nih", "r").axes
    assert points(axes) == [[[0.5, 0.5]], [[0.75, 0.5]]]
    assert legend(axes) == ["fedavg 0.000", "fedbn+ 0.250"]
    assert axes.get_legend().get_title().get_text() == "pooled ECE"


def test_a_bin_with_few_predictions_has_no_marker_but_counts(made_up, drawn):
    few = FEW_IMAGES - 1
    predicted = np.repeat([0.75, 0.25], [few, IMAGES - few]).astype(float)
    more = np.repeat([0.25, 0.75], [IMAGES - 5, 5])  # with the first class 46 and 34
    finish(made_up, {("global", "nih"): {"Edema": predicted}}, {"Edema": 0})
    [axes] = drawn(reliability_diagram, made_up.results(), "2", "nih", "r").axes
    assert points(axes) == [[]]
    assert legend(axes) == [f"fedbn+ {predicted.mean():.3f}"]
    finish(made_up, {("global", "nih"): {"Edema": more}}, {"Edema": 0}, seed=1)
    [axes] = drawn(reliability_diagram, made_up.results(), "2", "nih", "r").axes
    assert points(axes) == [[[0.25, 0], [0.75, 0]]]


def test_images_that_are_not_labelled_are_left_out(made_up, drawn):
    known = np.append(labels(20), [np.nan] * IMAGES)
    predicted = np.append(said(0.5), said(1.0))
    tests = {"nih": study_runs.table({"Edema": known})}
    made_up.finish({("global", "nih"): {"Edema": predicted}}, tests=tests)
    [axes] = drawn(reliability_diagram, made_up.results(), "2", "nih", "r").axes
    assert points(axes) == [[[0.5, 0.5]]]


@pytest.mark.parametrize(("test", "observed"), [("nih", 0.25), ("mimic", 0.375)])
def test_of_models_of_sites_own_those_count_that_do(test, observed, made_up, drawn):
    predicted = {
        ("nih", test): {"Mass": said(0.5)},
        ("chexpert", test): {"Fracture": said(0.5)},
    }
    positives = {"Mass": 10, "Fracture": 20}
    finish(made_up, predicted, positives, sites=SITES, method="personalised")
    [axes] = drawn(reliability_diagram, made_up.results(), "2", test, "r").axes
    assert points(axes) == [[[0.5, observed]]]


def test_a_class_that_the_test_set_lacks_is_left_out(made_up, drawn):
    predicted = {("global", "nih"): {"Mass": said(0.9), "Edema": said(0.5)}}
    finish(made_up, predicted, {"Edema": 20})
    [axes] = drawn(reliability_diagram, made_up.results(), "2", "nih", "r").axes
    assert points(axes) == [[[0.5, 0.5]]]


def test_there_is_nothing_to_draw_where_nothing_was_tested(made_up):
    finish(made_up, {("global", "nih"): {"Edema": said(0.5)}}, {"Edema": 20}, setting="4")
    results = made_up.results()
    assert reliability_diagram(results, "2", "nih", "r") is None
    assert reliability_diagram(results, "4", "mimic", "r") is None
    assert reliability_diagram(results, "4", "nih", "r").startswith("<svg")
