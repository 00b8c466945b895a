"""What every method reaches class by class."""

import numpy as np
import pytest

from cxr_study.reports.study.figures.classes import class_dots
from drawn_texts import legend

SITES = {"nih": ["Edema", "Mass", "Pneumonia"], "chexpert": ["Edema", "Fracture", "Pneumonia"]}


def names(axes):
    """Class -> its line."""
    ticks = zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)
    return {text.get_text(): place for text, place in ticks}


def headings(axes):
    return {text.get_text(): text.get_position()[1] for text in axes.texts}


@pytest.fixture
def panel(made_up, drawn):
    """The panel of a test set, of scenario 2."""

    def panel(test="nih"):
        [axes] = drawn(class_dots, made_up.results(), "2", test, "d").axes
        return axes

    return panel


def test_shared_classes_come_first_and_the_first_rows_best_is_on_top(made_up, panel):
    reached = {"Edema": 0.6, "Fracture": 0.7, "Mass": 0.9, "Pneumonia": 0.8}
    made_up.finish({("global", "mimic"): reached}, sites=SITES)
    other = {"Edema": 1.0, "Fracture": 1.0, "Mass": 0.5, "Pneumonia": 0.5}
    made_up.finish({("global", "mimic"): other}, sites=SITES, method="vanilla")
    axes = panel("mimic")
    assert names(axes) == {"Pneumonia": 1, "Edema": 2, "Mass": 4, "Fracture": 5}
    assert headings(axes) == {"Labelled by all sites": 0, "Labelled by some sites only": 3}
    assert axes.get_ylim() == (5.5, -0.5) and axes.get_xlabel() == "AUROC on MIMIC"


def test_a_class_that_is_shared_with_some_seeds_only_is_neither(made_up, panel):
    reached = {"Edema": 0.6, "Mass": 0.9, "Hernia": 0.8}
    made_up.finish({("global", "nih"): reached})
    swapped = {"nih-1": ["Mass", "Edema"], "nih-2": ["Mass", "Hernia"]}
    made_up.finish({("global", "nih"): reached}, sites=swapped, seed=1)
    axes = panel()
    assert names(axes) == {"Hernia": 1, "Mass": 3, "Edema": 4}
    assert headings(axes) == {
        "Labelled by some sites only": 0,
        "One or the other, depending on the seed": 2,
    }


def test_points_are_means_over_seeds_of_this_scenario_and_test_set(made_up, panel, lines):
    for seed, auroc in enumerate((0.7, 0.8)):
        reached = {("global", "nih"): {"Edema": auroc}, ("global", "mimic"): {"Edema": 0.5}}
        made_up.finish(reached, seed=seed)
    made_up.finish({("global", "nih"): {"Edema": 1.0}}, scenario="4")
    axes = panel()
    [(areas, places)] = lines(axes, "surgical", markers=True)
    assert dict(zip(places, areas, strict=True))[names(axes)["Edema"]] == pytest.approx(0.75)


def test_rows_are_below_each_other_within_their_class(made_up, panel, lines):
    for method in ("surgical", "vanilla", "complete"):
        made_up.finish({("global", "nih"): {"Edema": 0.7}}, method=method)
    axes = panel()
    place = names(axes)["Edema"]
    shifts = [
        lines(axes, method, markers=True)[0][1][0] - place
        for method in ("surgical", "vanilla", "complete")
    ]
    assert -0.5 < shifts[0] < shifts[1] == 0 < shifts[2] < 0.5
    methods = ["Surgical aggregation", "Vanilla FL", "Centralised, fully labelled"]
    assert legend(axes.figure) == methods


def test_many_rows_still_keep_within_their_class(made_up, panel):
    methods = ("surgical", "vanilla", "complete", "centralised", "partial_loss")
    for method in methods:
        for strategy in ("fedavg", "fedbn", "fedbn+"):
            made_up.finish({("global", "nih"): {"Edema": 0.7}}, method=method, strategy=strategy)
    axes = panel()
    places = [line.get_ydata()[0] for line in axes.get_lines() if line.get_marker() != "None"]
    assert len(places) == 15 and np.ptp(places) < 0.9
    inches = axes.get_position().height * axes.figure.get_figheight()
    assert inches / axes.get_ylim()[0] < 0.55


def test_a_point_is_missing_where_the_model_lacks_the_class(made_up, panel, lines):
    made_up.finish({("global", "nih"): {"Edema": 0.7, "Mass": 0.8, "Hernia": 0.6}})
    made_up.finish({("global", "nih"): {"Edema": 0.9}}, method="vanilla")
    made_up.finish({("global", "nih"): {}}, method="complete")
    axes = panel()
    [(areas, _)] = lines(axes, "vanilla", markers=True)
    np.testing.assert_allclose(areas, [0.9, np.nan, np.nan])
    assert len(axes.figure.legends[0].get_texts()) == 2
    assert "not defined" not in headings(axes)


def test_a_class_that_nobody_has_a_value_for_is_not_defined(made_up, panel):
    made_up.finish({("global", "nih"): {"Edema": 0.7, "Mass": 0.8}})
    axes = panel()
    assert headings(axes)["not defined"] == names(axes)["Hernia"]


def test_where_sites_have_models_of_their_own_those_count_that_do(made_up, panel, lines):
    reached = {
        ("nih", "nih"): {"Edema": 0.9, "Mass": 0.9},
        ("chexpert", "nih"): {"Edema": 0.5, "Fracture": 0.5},
        ("nih", "mimic"): {"Edema": 0.8, "Mass": 0.7},
        ("chexpert", "mimic"): {"Edema": 0.6, "Fracture": 0.9},
    }
    made_up.finish(reached, sites=SITES, method="personalised")
    for test, expected in (
        ("nih", {"Edema": 0.9, "Mass": 0.9}),
        ("mimic", {"Edema": 0.7, "Mass": 0.7, "Fracture": 0.9}),
    ):
        axes = panel(test)
        [(areas, places)] = lines(axes, "personalised", markers=True)
        found = {
            name: dict(zip(places, areas, strict=True))[place]
            for name, place in names(axes).items()
        }
        defined = {name: area for name, area in found.items() if not np.isnan(area)}
        assert defined == pytest.approx(expected)


def test_there_is_nothing_to_draw_without_an_auroc(made_up):
    made_up.finish({("global", "nih"): {"Edema": 0.7}}, scenario="4")
    no_positive = {"nih": made_up.table("Edema").assign(Edema=0.0)}
    made_up.finish({("global", "nih"): {"Edema": 0.7}}, tests=no_positive, scenario="8")
    for scenario, test in (("2", "nih"), ("4", "mimic"), ("8", "nih")):
        assert class_dots(made_up.results(), scenario, test, "d") is None
