from itertools import product

import numpy as np
import pytest

from cxr_studies.analysis.seed_intervals import interval
from cxr_studies.plan.row import Row
from cxr_studies.report.figures.mean_auroc import CHANCE, auroc_by_scenario, bars
from drawn_texts import texts

SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Mass"]}


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


def test_a_line_per_row_joins_the_means_with_t_intervals_where_there_are_seeds(
    made_up, by_scenario, lines
):
    every = [
        (0.7, "2", 0),
        (0.75, "2", 1),
        (0.7, "2", 2),
        (0.9, "4", 0),
        (0.9, "8", 0),
        (0.8, "8", 1),
    ]
    for auroc, scenario, seed in every:
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
    [(beside, of_vanilla)] = lines(axes, "vanilla", markers=True)
    np.testing.assert_allclose(of_vanilla, [np.nan, 0.8, np.nan])
    assert (places < [0, 1, 2]).all() and (beside > [0, 1, 2]).all()
    [(across, level)] = lines(axes, "complete", markers=False)
    assert across.tolist() == [0, 1]  # of the panel's width
    np.testing.assert_allclose(level, [0.95, 0.95])
    np.testing.assert_allclose(lines(axes, "complete", markers=True)[0][1], [0.95])
    assert texts(axes.get_xticklabels()) == ["2", "4", "8"]
    assert axes.figure.get_supxlabel() == "sites"


def test_a_panel_per_test_set_has_local_models_as_tables_do(made_up, by_scenario, lines):
    local = {
        ("nih", "nih"): {"Edema": 0.9, "Mass": 0.8},
        ("nih", "mimic"): {"Edema": 0.9, "Mass": 0.7},
        ("chexpert", "nih"): {"Edema": 0.5, "Mass": 0.5},
        ("chexpert", "mimic"): {"Edema": 0.6, "Mass": 0.6},
    }
    for scenario in ("2", "4"):
        made_up.finish(local, method="personalised", sites=SITES, scenario=scenario)
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
