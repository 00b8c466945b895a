from itertools import product

import numpy as np
import pytest
from matplotlib.collections import LineCollection

import study_runs
from cxr_studies.report.figures.classes import class_dots
from drawn_texts import legend

SITES = {"nih": ["Edema", "Mass", "Pneumonia"], "chexpert": ["Edema", "Fracture", "Pneumonia"]}
NIH = ("global", "nih")
ALL, SOME = "Labelled by all sites", "Labelled by some sites only"
EITHER = "One or the other, depending on the seed"


def names(axes):
    """Class -> its line."""
    ticks = zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)
    return {text.get_text(): place for text, place in ticks}


def headings(axes):
    return {text.get_text(): text.get_position()[1] for text in axes.texts}


@pytest.fixture
def panel(made_up, drawn):
    """The panel of a test set, of scenario 2."""
    return lambda test="nih": drawn(class_dots, made_up.results(), "2", test, "d").axes[0]


@pytest.fixture
def points(lines):
    """Class -> AUROC, of a method's points."""

    def points(axes, method):
        [(areas, places)] = lines(axes, method, markers=True)
        lines_of = {place: name for name, place in names(axes).items()}
        found = {lines_of[round(p)]: area for area, p in zip(areas, places, strict=True)}
        return {name: pytest.approx(area) for name, area in found.items() if not np.isnan(area)}

    return points


def test_shared_classes_come_first_and_the_first_rows_best_is_on_top(made_up, panel):
    reached = {"Edema": 0.6, "Fracture": 0.7, "Mass": 0.9, "Pneumonia": 0.8}
    made_up.finish({("global", "mimic"): reached}, sites=SITES)
    other = {"Edema": 1.0, "Fracture": 1.0, "Mass": 0.5, "Pneumonia": 0.5}
    made_up.finish({("global", "mimic"): other}, sites=SITES, method="vanilla")
    axes = panel("mimic")
    assert names(axes) == {"Pneumonia": 1, "Edema": 2, "Mass": 4, "Fracture": 5}
    assert headings(axes) == {ALL: 0, SOME: 3}
    assert axes.get_ylim() == (5.5, -0.5) and axes.get_xlabel() == "AUROC on MIMIC"
    # With a seed that has other sites, a class is shared with some seeds only.
    swapped = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Mass", "Fracture", "Pneumonia"]}
    made_up.finish({("global", "mimic"): reached}, sites=swapped, seed=1)
    axes = panel("mimic")
    assert names(axes) == {"Edema": 1, "Fracture": 3, "Mass": 5, "Pneumonia": 6}
    assert headings(axes) == {ALL: 0, SOME: 2, EITHER: 4}


def test_points_are_means_over_seeds_of_this_scenario_and_test_set(made_up, panel, points):
    for seed, auroc in enumerate((0.7, 0.8)):
        made_up.finish({NIH: {"Edema": auroc}, ("global", "mimic"): {"Edema": 0.5}}, seed=seed)
    made_up.finish({NIH: {"Edema": 1.0}}, scenario="4")
    made_up.finish({NIH: {"Mass": 0.9}}, method="vanilla")
    made_up.finish({NIH: {}}, method="complete")
    axes = panel()
    assert points(axes, "surgical") == {"Edema": 0.75} and points(axes, "vanilla") == {"Mass": 0.9}
    assert legend(axes.figure) == ["Surgical aggregation", "Vanilla FL"]
    assert headings(axes)["not defined"] == names(axes)["Hernia"]  # by any row


def test_rows_keep_their_order_within_their_class_however_many(made_up, panel):
    methods = ("surgical", "vanilla", "complete", "centralised", "partial_loss")
    for method, strategy in product(methods, ("fedavg", "fedbn", "fedbn+")):
        made_up.finish({NIH: {"Edema": 0.7}}, method=method, strategy=strategy)
    axes = panel()
    places = [line.get_ydata()[0] for line in axes.get_lines() if line.get_marker() != "None"]
    assert len(places) == 15 and places == sorted(places)
    assert np.mean(places) == pytest.approx(names(axes)["Edema"]) and np.ptp(places) < 0.9


def test_of_local_models_those_count_that_do(made_up, panel, points):
    reached = {
        ("nih", "nih"): {"Edema": 0.9, "Mass": 0.9},
        ("chexpert", "nih"): {"Edema": 0.5, "Fracture": 0.5},
        ("nih", "mimic"): {"Edema": 0.8, "Mass": 0.7},
        ("chexpert", "mimic"): {"Edema": 0.6, "Fracture": 0.9},
    }
    made_up.finish(reached, sites=SITES, method="personalised")
    assert points(panel("nih"), "personalised") == {"Edema": 0.9, "Mass": 0.9}
    found = points(panel("mimic"), "personalised")
    assert found == {"Edema": 0.7, "Mass": 0.7, "Fracture": 0.9}


def test_there_is_nothing_to_draw_without_an_auroc(made_up):
    made_up.finish({NIH: {"Edema": 0.7}}, scenario="4")
    negative = {"nih": study_runs.table({"Edema": [0.0] * 12})}
    made_up.finish({NIH: {"Edema": 0.7}}, tests=negative, scenario="8")
    for scenario, test in (("2", "nih"), ("4", "mimic"), ("8", "nih")):
        assert class_dots(made_up.results(), scenario, test, "d") is None


def test_order_and_axis_are_the_same_on_every_test_set_and_in_every_scenario(made_up, panel):
    mimic = {"Edema": 0.65, "Pneumonia": 0.7}
    made_up.finish({NIH: {"Edema": 0.9, "Pneumonia": 0.6}, ("global", "mimic"): mimic}, sites=SITES)
    made_up.finish({NIH: {"Edema": 1.0, "Pneumonia": 0.55}}, scenario="4", sites=SITES)
    # Other rows of the first one's method do not order the classes.
    other = {"Edema": 0.6, "Pneumonia": 1.0}
    made_up.finish({NIH: other, ("global", "mimic"): other}, sites=SITES, strategy="fedbn")
    for axes in (panel("nih"), panel("mimic")):
        assert axes.get_xlim() == (0.55, 1.0)
        places = names(axes)
        assert [name for name in places if name in ("Edema", "Pneumonia")] == ["Edema", "Pneumonia"]


def test_a_line_is_the_interval_over_seeds_and_one_seed_has_none(made_up, panel):
    def drawn_lines(axes):
        [intervals] = [each for each in axes.collections if isinstance(each, LineCollection)]
        ends = [segment for segment in intervals.get_segments() if len(segment) == 2]
        return {float(low[1]): [low[0], high[0]] for low, high in ends if low[0] == low[0]}

    made_up.finish({NIH: {"Edema": 0.7, "Mass": 0.8}})
    assert drawn_lines(panel()) == {}
    for seed, auroc in ((1, 0.75), (2, 0.8)):
        made_up.finish({NIH: {"Edema": auroc}}, seed=seed)
    axes = panel()
    low, high = 0.75 - 4.302653 * 0.05 / 3**0.5, 0.75 + 4.302653 * 0.05 / 3**0.5
    assert drawn_lines(axes) == {names(axes)["Edema"]: pytest.approx([low, high])}
