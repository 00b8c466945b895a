"""How AUROC depends on what a study varies."""

import numpy as np
import pytest

from cxr_study.evaluation.seed_intervals import interval
from cxr_study.reports.study.figures.factor import auroc_by_scenario
from drawn_texts import texts


@pytest.fixture
def figure(made_up, drawn):
    """Draws the figure."""
    return lambda: drawn(auroc_by_scenario, made_up.results(), "f")


def test_a_line_per_row_joins_the_means_in_the_order_of_scenarios(made_up, figure, lines):
    for scenario, auroc in (("4", 0.7), ("2", 0.9), ("8", 0.6)):
        made_up.reach(auroc, scenario=scenario)
    made_up.reach(0.8, method="vanilla", scenario="4")
    [axes] = figure().axes
    [(places, means)] = lines(axes, "surgical", markers=True)
    np.testing.assert_allclose(means, [0.9, 0.7, 0.6])
    [(beside, of_vanilla)] = lines(axes, "vanilla", markers=True)
    np.testing.assert_allclose(of_vanilla, [np.nan, 0.8, np.nan])
    assert texts(axes.get_xticklabels()) == ["2", "4", "8"]
    assert (places < [0, 1, 2]).all() and (beside > [0, 1, 2]).all()
    assert axes.figure.get_supxlabel() == "sites"


def test_there_is_a_panel_for_each_test_set_in_the_studys_order(made_up, figure, lines):
    for scenario in ("2", "4"):
        reached = {("global", "mimic"): 0.9, ("global", "nih"): 0.7}
        classes = ("Edema", "Mass", "Hernia")
        made_up.finish(
            {key: dict.fromkeys(classes, auroc) for key, auroc in reached.items()},
            scenario=scenario,
        )
    every = figure().axes
    assert [axes.get_title(loc="left") for axes in every] == ["NIH", "MIMIC"]
    means = [lines(axes, "surgical", markers=True)[0][1] for axes in every]
    np.testing.assert_allclose(means, [[0.7, 0.7], [0.9, 0.9]])


def test_bars_are_t_intervals_where_there_are_two_seeds(made_up, figure, lines):
    for seed, auroc in enumerate((0.7, 0.75, 0.7)):
        made_up.reach(auroc, scenario="2", seed=seed)
    made_up.reach(0.9, scenario="4")
    [axes] = figure().axes
    [(at, ends)] = lines(axes, "surgical", markers=False)
    expected = interval([0.7, 0.75, 0.7])
    np.testing.assert_allclose(ends, [expected.low, expected.high, np.nan])
    [(places, means)] = lines(axes, "surgical", markers=True)
    np.testing.assert_allclose(means, [expected.mean, 0.9])
    assert set(at) == {places[0]}


def test_the_fully_labelled_baseline_is_a_dashed_line_across(made_up, figure, lines):
    for scenario in ("2", "4"):
        made_up.reach(0.7, scenario=scenario)
        made_up.reach(0.95, scenario=scenario, method="complete")
    [axes] = figure().axes
    [(places, level)] = lines(axes, "complete", markers=False)
    np.testing.assert_allclose(level, [0.95, 0.95])
    assert places.tolist() == [0, 1]  # of the panel's width
    assert next(line for line in axes.get_lines() if line.get_color() == "#000000").is_dashed()
    [(_, marked)] = lines(axes, "complete", markers=True)
    np.testing.assert_allclose(marked, [0.95])


@pytest.mark.parametrize(
    ("aurocs", "low", "high"),
    [
        # The interval of the first scenario goes from below 0 to above 1.
        ([("2", 0, 0.6), ("2", 1, 0.8), ("4", 0, 0.8)], (0.58, 0.6), (0.9, 0.92)),
        ([("2", 0, 0.7), ("4", 0, 1.0)], (0.6, 0.7), (1.0, 1.0)),  # not beyond 1
    ],
)
def test_the_axis_holds_all_means_and_is_not_squeezed(made_up, figure, aurocs, low, high):
    for scenario, seed, auroc in aurocs:
        made_up.reach(auroc, scenario=scenario, seed=seed)
    [axes] = figure().axes
    bottom, top = axes.get_ylim()
    assert low[0] < bottom < low[1] and high[0] <= top <= high[1]


@pytest.mark.parametrize(("names", "angle"), [(("1/10", "1/2"), 0), (("iid all", "other"), 35)])
def test_long_names_of_scenarios_are_turned_and_have_room(names, angle, made_up, figure):
    for scenario in names:
        made_up.reach(0.7, scenario=scenario)
    [axes] = figure().axes
    assert {text.get_rotation() for text in axes.get_xticklabels()} == {angle}
    room = axes.get_position().y0 * axes.figure.get_figheight()
    assert room == pytest.approx(0.42) if not angle else room > 0.6


def test_there_is_nothing_to_draw_with_one_scenario_or_without_a_mean(made_up):
    for scenario in ("2", "4"):
        made_up.reach(0.7, classes=["Edema"], scenario=scenario)
    assert auroc_by_scenario(made_up.results(), "f") is None
    made_up.runs.clear()
    made_up.reach(0.7, scenario="2", seed=1)
    assert auroc_by_scenario(made_up.results(), "f") is None


def test_rows_stand_side_by_side_and_do_not_reach_the_next_scenario(made_up, figure, lines):
    methods = ("surgical", "partial_loss", "vanilla", "personalised", "individual", "centralised")
    for strategy in ("fedavg", "fedbn", "fedbn+"):
        for method in methods:
            for scenario in ("2", "4"):
                made_up.reach(0.7, method=method, strategy=strategy, scenario=scenario)
    [axes] = figure().axes
    first = [at[0] for method in methods for at, _ in lines(axes, method, markers=True)]
    assert len(set(np.round(first, 6))) == 18
    assert np.mean(first) == pytest.approx(0) and np.ptp(first) == pytest.approx(0.5)
