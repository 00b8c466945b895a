"""How AUROC depends on what a study varies."""

import numpy as np
import pytest

from cxr_study.evaluation.seed_intervals import interval
from cxr_study.reports.study.figures.factor import auroc_by_setting


def of_all(auroc, *tests):
    """A global model that reaches the same for all classes."""
    tests = tests or ("nih",)
    return {("global", test): dict.fromkeys(("Edema", "Mass", "Hernia"), auroc) for test in tests}


def test_a_line_per_row_joins_the_means_in_the_order_of_settings(made_up, drawn, lines):
    for setting, auroc in (("4", 0.7), ("2", 0.9), ("8", 0.6)):
        made_up.finish(of_all(auroc), setting=setting)
    made_up.finish(of_all(0.8), method="vanilla", setting="4")
    figure = drawn(auroc_by_setting, made_up.results(), "f")
    [axes] = figure.axes
    [(places, means)] = lines(axes, "surgical", markers=True)
    np.testing.assert_allclose(means, [0.9, 0.7, 0.6])
    [(beside, of_vanilla)] = lines(axes, "vanilla", markers=True)
    np.testing.assert_allclose(of_vanilla, [np.nan, 0.8, np.nan])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["2", "4", "8"]
    assert (places < [0, 1, 2]).all() and (beside > [0, 1, 2]).all()
    assert figure.get_supxlabel() == "sites"


def test_there_is_a_panel_for_each_test_set_in_the_studys_order(made_up, drawn, lines):
    for setting in ("2", "4"):
        made_up.finish(of_all(0.9, "mimic") | of_all(0.7, "nih"), setting=setting)
    figure = drawn(auroc_by_setting, made_up.results(), "f")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["NIH", "MIMIC"]
    means = [lines(axes, "surgical", markers=True)[0][1] for axes in figure.axes]
    np.testing.assert_allclose(means, [[0.7, 0.7], [0.9, 0.9]])


def test_bars_are_t_intervals_where_there_are_two_seeds(made_up, drawn, lines):
    for seed, auroc in enumerate((0.7, 0.75, 0.7)):
        made_up.finish(of_all(auroc), setting="2", seed=seed)
    made_up.finish(of_all(0.9), setting="4")
    [axes] = drawn(auroc_by_setting, made_up.results(), "f").axes
    [(at, ends)] = lines(axes, "surgical", markers=False)
    expected = interval([0.7, 0.75, 0.7])
    np.testing.assert_allclose(ends, [expected.low, expected.high, np.nan])
    [(places, means)] = lines(axes, "surgical", markers=True)
    np.testing.assert_allclose(means, [expected.mean, 0.9])
    assert set(at) == {places[0]}


def test_the_fully_labelled_baseline_is_a_dashed_line_across(made_up, drawn, lines):
    for setting in ("2", "4"):
        made_up.finish(of_all(0.7), setting=setting)
        made_up.finish(of_all(0.95), setting=setting, method="complete")
    [axes] = drawn(auroc_by_setting, made_up.results(), "f").axes
    [(places, level)] = lines(axes, "complete", markers=False)
    np.testing.assert_allclose(level, [0.95, 0.95])
    assert places.tolist() == [0, 1]  # of the panel's width
    [dashed] = [line for line in axes.get_lines() if line.get_color() == "#000000"][:1]
    assert dashed.is_dashed()
    [(_, marked)] = lines(axes, "complete", markers=True)
    np.testing.assert_allclose(marked, [0.95])


def test_intervals_that_go_far_beyond_all_means_do_not_squeeze_them(made_up, drawn):
    for seed, auroc in enumerate((0.6, 0.8)):  # the interval goes from below 0 to above 1
        made_up.finish(of_all(auroc), setting="2", seed=seed)
    made_up.finish(of_all(0.8), setting="4")
    [axes] = drawn(auroc_by_setting, made_up.results(), "f").axes
    low, high = axes.get_ylim()
    assert 0.58 < low < 0.6 and 0.9 < high < 0.92


def test_no_axis_goes_beyond_1(made_up, drawn):
    for setting, auroc in (("2", 0.7), ("4", 1.0)):
        made_up.finish(of_all(auroc), setting=setting)
    [axes] = drawn(auroc_by_setting, made_up.results(), "f").axes
    assert axes.get_ylim()[1] == 1


@pytest.mark.parametrize(("names", "angle"), [(("1/10", "1/2"), 0), (("iid all", "other"), 35)])
def test_long_names_of_settings_are_turned_and_have_room(names, angle, made_up, drawn):
    for setting in names:
        made_up.finish(of_all(0.7), setting=setting)
    figure = drawn(auroc_by_setting, made_up.results(), "f")
    [axes] = figure.axes
    assert {text.get_rotation() for text in axes.get_xticklabels()} == {angle}
    room = axes.get_position().y0 * figure.get_figheight()
    assert room == pytest.approx(0.42) if not angle else room > 0.6


def test_there_is_nothing_to_draw_with_one_setting_or_without_a_mean(made_up):
    made_up.finish(of_all(0.7), setting="2")
    assert auroc_by_setting(made_up.results(), "f") is None
    made_up.finish({("global", "nih"): {"Edema": 0.7}}, setting="4")
    assert auroc_by_setting(made_up.results(), "f") is not None


def test_nothing_where_every_model_lacks_a_class(made_up):
    for setting in ("2", "4"):
        made_up.finish({("global", "nih"): {"Edema": 0.7}}, setting=setting)
    assert auroc_by_setting(made_up.results(), "f") is None


def test_rows_stand_side_by_side_and_do_not_reach_the_next_setting(made_up, drawn, lines):
    methods = ("surgical", "partial_loss", "vanilla", "personalised", "individual", "centralised")
    for strategy in ("fedavg", "fedbn", "fedbn+"):
        for method in methods:
            for setting in ("2", "4"):
                run = {"method": method, "strategy": strategy, "setting": setting}
                made_up.finish(of_all(0.7), **run)
    [axes] = drawn(auroc_by_setting, made_up.results(), "f").axes
    first = [at[0] for method in methods for at, _ in lines(axes, method, markers=True)]
    assert len(set(np.round(first, 6))) == 18
    assert np.mean(first) == pytest.approx(0) and np.ptp(first) == pytest.approx(0.5)
