from itertools import product

import numpy as np
import pytest
from matplotlib.collections import LineCollection

import study_runs
from cxr_studies.analysis.intervals_and_tests import interval
from cxr_studies.plan.row import Row
from cxr_studies.report.figures.aurocs import CHANCE, auroc_by_scenario, bars, class_dots
from drawn_texts import legend, texts

ALIKE = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Mass"]}


@pytest.fixture
def by_scenario(made_up, drawn):
    """Draws AUROCs by scenario; the panels."""
    return lambda: drawn(auroc_by_scenario, made_up.results(), "f").axes


@pytest.fixture
def averages(made_up, drawn):
    """Draws bars of scenarios; the panels."""

    def averages(*places, marks=None):
        return drawn(bars, made_up.results(), places or ("2",), marks or {}, "b").axes

    return averages


def test_a_line_per_row_joins_means_with_t_intervals_over_seeds(made_up, by_scenario, lines):
    for scenario, aurocs in {"2": [0.7, 0.75, 0.7], "4": [0.9], "8": [0.9, 0.8]}.items():
        for seed, auroc in enumerate(aurocs):
            made_up.reach(auroc, scenario=scenario, seed=seed)
    made_up.reach(0.8, method="vanilla", scenario="4")
    for scenario in ("2", "4", "8"):  # the same runs in every scenario
        made_up.reach(0.95, scenario=scenario, method="complete")
    [axes] = by_scenario()
    first, last = interval([0.7, 0.75, 0.7]), interval([0.9, 0.8])
    [(places, means)] = lines(axes, "surgical", markers=True)
    np.testing.assert_allclose(means, [first.mean, 0.9, last.mean])
    [(at, ends)] = lines(axes, "surgical", markers=False)  # one path, with gaps
    expected = [first.low, first.high, np.nan, last.low, last.high, np.nan]
    np.testing.assert_allclose(ends, expected)
    np.testing.assert_array_equal(at, np.repeat(places[[0, 2]], 3))
    [(others, of_vanilla)] = lines(axes, "vanilla", markers=True)
    np.testing.assert_allclose(of_vanilla, [np.nan, 0.8, np.nan])
    assert (places < [0, 1, 2]).all() and (others > [0, 1, 2]).all()
    [(across, level)] = lines(axes, "complete", markers=False)
    assert across.tolist() == [0, 1]  # of the panel's width
    np.testing.assert_allclose(level, [0.95, 0.95])
    np.testing.assert_allclose(lines(axes, "complete", markers=True)[0][1], [0.95])
    assert texts(axes.get_xticklabels()) == ["2", "4", "8"]
    assert axes.figure.get_supxlabel() == "sites"


def test_the_fully_labelled_baseline_is_a_line_like_others_where_scenarios_train_it_differently(
    made_up, by_scenario, lines
):
    for scenario, auroc in {"2": 0.95, "4": 0.8}.items():
        made_up.reach(0.7, scenario=scenario)
        made_up.reach(auroc, scenario=scenario, method="complete")
    [axes] = by_scenario()
    [(_, means)] = lines(axes, "complete", markers=True)
    np.testing.assert_allclose(means, [0.95, 0.8])


def test_a_panel_per_test_set_has_local_models_as_tables_do(made_up, by_scenario, lines):
    local = {
        ("nih", "nih"): {"Edema": 0.9, "Mass": 0.8},
        ("nih", "mimic"): {"Edema": 0.9, "Mass": 0.7},
        ("chexpert", "nih"): {"Edema": 0.5, "Mass": 0.5},
        ("chexpert", "mimic"): {"Edema": 0.6, "Mass": 0.6},
    }
    for scenario in ("2", "4"):
        made_up.finish(local, method="personalised", sites=ALIKE, scenario=scenario)
    every = by_scenario()
    assert [axes.get_title(loc="left") for axes in every] == ["NIH", "MIMIC"]
    means = [lines(axes, "personalised", markers=True)[0][1] for axes in every]
    np.testing.assert_allclose(means, [[0.85, 0.85], [0.7, 0.7]])


def test_the_axes_have_all_means_and_room_for_long_names(made_up, by_scenario):
    for scenario, seed, auroc in (("2", 0, 0.6), ("2", 1, 0.8), ("4", 0, 0.8)):
        made_up.reach(auroc, scenario=scenario, seed=seed)
    [axes] = by_scenario()
    bottom, top = axes.get_ylim()  # the first interval goes from below 0 to above 1
    assert 0.58 < bottom < 0.6 and 0.9 <= top <= 0.92
    assert axes.get_xticklabels()[0].get_rotation() == 0
    made_up.reach(1.0, scenario="iid all")
    [axes] = by_scenario()
    assert axes.get_ylim()[1] == 1.0 and axes.get_xticklabels()[0].get_rotation() == 35
    axes.figure.draw_without_rendering()
    assert axes.get_position().y0 * axes.figure.get_figheight() > 0.5


def test_rows_stand_side_by_side_and_do_not_reach_the_next_scenario(made_up, by_scenario, lines):
    methods = ("surgical", "partial_loss", "vanilla", "individual")
    for method, strategy, scenario in product(methods, ("fedavg", "fedbn", "fedbn+"), "24"):
        made_up.reach(0.7, method=method, strategy=strategy, scenario=scenario)
    [axes] = by_scenario()
    first = [at[0] for method in methods for at, _ in lines(axes, method, markers=True)]
    assert len(set(np.round(first, 6))) == 12
    assert np.mean(first) == pytest.approx(0) and np.ptp(first) == pytest.approx(0.5)


def test_there_is_nothing_to_draw_with_one_scenario_or_without_a_mean(made_up):
    for scenario in ("2", "4"):
        made_up.reach(0.7, classes=["Edema"], scenario=scenario)
    results = made_up.results()
    assert auroc_by_scenario(results, "f") is None and bars(results, ["2"], {}, "b") is None
    made_up.runs.clear()
    made_up.reach(0.7, scenario="2", seed=1)
    assert auroc_by_scenario(made_up.results(), "f") is None


def test_a_bar_is_the_average_over_scenarios_of_means_over_seeds_with_its_sd(made_up, averages):
    for scenario, seed, auroc in (("2", 0, 0.9), ("2", 1, 0.8), ("4", 0, 0.75), ("8", 0, 0.5)):
        made_up.reach(auroc, scenario=scenario, seed=seed)
    [axes] = averages("2", "4")
    [bar] = axes.patches
    assert bar.get_x() == CHANCE and bar.get_x() + bar.get_width() == pytest.approx(0.8)
    assert texts(axes.texts) == ["0.800"]
    sd = np.std([0.85, 0.75], ddof=1)
    found = [line.get_xdata() for line in axes.get_lines()[:2]]
    np.testing.assert_allclose(found, [[0.8 - sd, 0.8 + sd]] * 2)
    [axes] = averages("2")
    assert [list(line.get_xdata()) for line in axes.get_lines()] == [[CHANCE, CHANCE]]


def test_bars_say_where_a_mean_is_defined_and_how_it_differs(made_up, averages):
    made_up.reach(0.8, scenario="2")
    made_up.reach(0.7, classes=["Edema"], scenario="4")
    made_up.reach(0.7, classes=["Edema"], method="vanilla")
    made_up.reach(0.6, "mimic", method="vanilla", strategy="fedavg")
    nih, mimic = averages("2", "4", marks={(Row("vanilla", "fedavg"), "mimic"): "***"})
    assert texts(nih.texts) == ["0.800\n1 of 2", "not defined"]
    assert texts(mimic.texts) == ["not defined", "0.600 ***\n1 of 2"]
    names = ["Surgical aggregation", "Vanilla FL"]
    assert texts(nih.get_yticklabels()) == names
    assert [axes.yaxis.get_tick_params()["labelleft"] for axes in (nih, mimic)] == [True, False]
    assert nih.get_title(loc="left") == "mean AUROC on NIH" and nih.get_ylim() == (1.5, -0.5)


def test_bars_of_two_test_sets_stand_side_by_side_and_more_below_each_other(made_up, averages):
    made_up.reach(0.8, "nih", "mimic")
    nih, mimic = averages()
    assert nih.get_xlim() == mimic.get_xlim()
    left, right = nih.get_position(), mimic.get_position()
    assert left.x1 < right.x0 and left.y0 == right.y0
    made_up.reach(0.9, "nih", "chexpert", "mimic", scenario="4")
    every = averages("4")
    boxes = [axes.get_position() for axes in every]
    assert boxes[0].y0 > boxes[1].y1 > boxes[1].y0 > boxes[2].y1 and boxes[2].y0 > 0
    assert len({box.x0 for box in boxes}) == 1
    assert [texts(axes.get_yticklabels()) for axes in every] == [["Surgical aggregation"]] * 3


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
