import numpy as np
import pytest

import study_runs
from cxr_studies.report.figures.reliability import reliability_diagram
from cxr_study.common.wording import FEW_IMAGES
from drawn_texts import legend

IMAGES = 40
NIH = ("global", "nih")
SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}


def labels(positives):
    """So many positive images first, then negatives."""
    return np.repeat([1.0, 0.0], [positives, IMAGES - positives])


@pytest.fixture
def finish(made_up):
    """A run on one test set for each of `predicted`, of values or of one for all images."""

    def finish(predicted, positives, **run):
        table = study_runs.table({name: labels(number) for name, number in positives.items()})
        said = {
            key: {name: np.broadcast_to(values, IMAGES) for name, values in each.items()}
            for key, each in predicted.items()
        }
        made_up.finish(said, tests={test: table for _, test in predicted}, **run)

    return finish


@pytest.fixture
def panels(made_up, drawn):
    """The panels of a diagram of scenario 2."""
    return lambda test="nih": drawn(reliability_diagram, made_up.results(), "2", test, "r").axes


def points(axes):
    """Marked points, line by line."""
    marked = [line for line in axes.get_lines() if line.get_marker() != "None"]
    return [line.get_xydata().round(4).tolist() for line in marked]


def test_predictions_of_all_labelled_classes_and_seeds_are_pooled(finish, panels):
    positives = {"Edema": 10, "Mass": 20}
    finish({NIH: {"Edema": 0.25, "Mass": 0.25, "Hernia": 0.9}}, positives)
    finish({NIH: {"Edema": 0.25, "Mass": 0.75}}, positives, seed=1)
    [axes] = panels()
    # 0.25 is said 120 times, 40 of them rightly; 0.75 is said 40 times, 20 of them rightly
    assert points(axes) == [[[0.25, round(1 / 3, 4)], [0.75, 0.5]]]
    assert legend(axes) == [f"fedbn+ {(40 - 30 + 30 - 20) / 160:.3f}"]
    assert axes.get_legend().get_title().get_text() == "pooled ECE"


def test_a_method_has_a_panel_and_each_of_its_strategies_a_line(finish, panels, made_up):
    both = {"Edema": 20}
    finish({NIH: {"Edema": 0.5}, ("global", "mimic"): {"Edema": 0.1}}, both, strategy="fedavg")
    finish({NIH: {"Edema": 0.75}}, both)
    finish({NIH: {"Edema": 0.9}}, both, scenario="4")
    finish({NIH: {"Edema": 0.7}}, both, method="vanilla")
    every = panels()
    assert list(map(points, every)) == [[[[0.5, 0.5]], [[0.75, 0.5]]], [[[0.7, 0.5]]]]
    assert legend(every[0]) == ["fedavg 0.000", "fedbn+ 0.250"]
    titles = [axes.get_title(loc="left") for axes in every]
    assert titles == ["Surgical aggregation", "Vanilla FL"]
    assert every[0].figure.get_supxlabel() == "probability on NIH"
    for scenario, test in (("8", "nih"), ("4", "mimic")):  # where nothing was tested
        assert reliability_diagram(made_up.results(), scenario, test, "r") is None


def test_a_bin_with_few_predictions_has_no_marker_but_counts(finish, panels):
    few = FEW_IMAGES - 1
    predicted = np.repeat([0.75, 0.25], [few, IMAGES - few]).astype(float)
    finish({NIH: {"Edema": predicted}}, {"Edema": 0})
    [axes] = panels()
    assert points(axes) == [[]]
    assert legend(axes) == [f"fedbn+ {predicted.mean():.3f}"]
    more = np.repeat([0.25, 0.75], [IMAGES - 5, 5])  # with the first class 46 and 34
    finish({NIH: {"Edema": more}}, {"Edema": 0}, seed=1)
    assert points(panels()[0]) == [[[0.25, 0], [0.75, 0]]]


def test_images_that_are_not_labelled_and_models_that_do_not_count_are_left_out(made_up, panels):
    known = np.append(labels(20), [np.nan] * IMAGES)
    predicted = {"Edema": np.repeat([0.5, 1.0], IMAGES)}
    other = {"Edema": np.full(2 * IMAGES, 0.9)}
    tests = {"nih": study_runs.table({"Edema": known})}
    said = {("nih", "nih"): predicted, ("chexpert", "nih"): other}
    made_up.finish(said, tests=tests, sites=SITES, method="personalised")
    assert points(panels()[0]) == [[[0.5, 0.5]]]
