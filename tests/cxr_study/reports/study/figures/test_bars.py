"""What methods reach on average over the settings of a study."""

import numpy as np
import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.figures.bars import CHANCE, bars
from cxr_study.reports.study.figures.looks import settings

SURGICAL, VANILLA = Row("surgical", "fedbn+"), Row("vanilla", "fedbn+")


def of_all(auroc, *tests):
    tests = tests or ("nih",)
    return {("global", test): dict.fromkeys(("Edema", "Mass", "Hernia"), auroc) for test in tests}


def of_settings(results):
    """Results, and the names of all settings."""
    return results, settings(results)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_bar_is_the_average_over_settings_of_the_mean_over_seeds(made_up, drawn):
    for setting, seed, auroc in (("2", 0, 0.9), ("2", 1, 0.8), ("4", 0, 0.75)):
        made_up.finish(of_all(auroc), setting=setting, seed=seed)
    [axes] = drawn(bars, *of_settings(made_up.results()), {}, "b").axes
    [bar] = axes.patches
    assert bar.get_x() == CHANCE and bar.get_x() + bar.get_width() == pytest.approx(0.8)
    assert texts(axes) == ["0.800"]


def test_its_thin_line_is_the_standard_deviation_over_settings(made_up, drawn):
    for setting, auroc in (("2", 0.9), ("4", 0.7)):
        made_up.finish(of_all(auroc), setting=setting)
    [axes] = drawn(bars, *of_settings(made_up.results()), {}, "b").axes
    spread = np.std([0.9, 0.7], ddof=1)
    drawn_lines = [line.get_xdata() for line in axes.get_lines()[:2]]
    np.testing.assert_allclose(drawn_lines, [[0.8 - spread, 0.8 + spread]] * 2)


def test_only_the_settings_that_are_asked_for_count(made_up, drawn):
    for setting, auroc in (("2", 0.9), ("4", 0.7)):
        made_up.finish(of_all(auroc), setting=setting)
    results = made_up.results()
    [axes] = drawn(bars, results, ["4"], {}, "b").axes
    assert texts(axes) == ["0.700"]
    assert 'aria-label="Mean AUROC of every method, sites: 4"' in bars(results, ["4"], {}, "b")


def test_one_setting_has_no_standard_deviation(made_up, drawn):
    made_up.finish(of_all(0.9))
    [axes] = drawn(bars, *of_settings(made_up.results()), {}, "b").axes
    assert [list(line.get_xdata()) for line in axes.get_lines()] == [[CHANCE, CHANCE]]


def test_marks_stand_beside_their_row_and_test_set(made_up, drawn):
    for method in ("surgical", "vanilla"):
        made_up.finish(of_all(0.8, "nih", "mimic"), method=method)
    marks = {(VANILLA, "nih"): "***", (VANILLA, "mimic"): "ns"}
    nih, mimic = drawn(bars, *of_settings(made_up.results()), marks, "b").axes
    assert texts(nih) == ["0.800", "0.800 ***"] and texts(mimic) == ["0.800", "0.800 ns"]
    assert [nih.get_xlabel(), mimic.get_xlabel()] == ["mean AUROC on NIH", "mean AUROC on MIMIC"]


def test_it_is_said_in_how_many_settings_a_mean_is_defined(made_up, drawn):
    made_up.finish(of_all(0.8), setting="2")
    made_up.finish({("global", "nih"): {"Edema": 0.7}}, setting="4")
    made_up.finish({("global", "nih"): {"Edema": 0.7}}, setting="2", method="vanilla")
    made_up.finish(of_all(0.6, "mimic"), setting="2", method="vanilla", strategy="fedavg")
    nih, mimic = drawn(bars, *of_settings(made_up.results()), {}, "b").axes
    assert texts(nih) == ["0.800\n1 of 2", "not defined"]
    assert texts(mimic) == ["not defined", "0.600\n1 of 2"]


def test_rows_are_named_once_with_a_strategy_where_there_are_several(made_up, drawn):
    for method, strategy in (("surgical", "fedbn+"), ("vanilla", "fedavg"), ("vanilla", "fedbn+")):
        made_up.finish(of_all(0.8, "nih", "mimic"), method=method, strategy=strategy)
    nih, mimic = drawn(bars, *of_settings(made_up.results()), {}, "b").axes
    names = [text.get_text() for text in nih.get_yticklabels()]
    assert names == ["Surgical aggregation", "Vanilla FL, fedavg", "Vanilla FL, fedbn+"]
    assert [text.get_text() for text in mimic.get_yticklabels()] == [""] * 3
    assert nih.get_ylim() == (2.5, -0.5)


def test_two_test_sets_stand_side_by_side_on_one_scale(made_up, drawn):
    made_up.finish(of_all(0.9, "nih") | of_all(0.6, "mimic"))
    nih, mimic = drawn(bars, *of_settings(made_up.results()), {}, "b").axes
    assert nih.get_xlim() == mimic.get_xlim()
    left, right = nih.get_position(), mimic.get_position()
    assert left.x1 < right.x0 and left.y0 == right.y0


def test_three_test_sets_stand_below_each_other_each_with_names(made_up, drawn):
    made_up.finish(of_all(0.9, "nih", "chexpert", "mimic"))
    every = drawn(bars, *of_settings(made_up.results()), {}, "b").axes
    boxes = [axes.get_position() for axes in every]
    assert boxes[0].y0 > boxes[1].y1 > boxes[1].y0 > boxes[2].y1 and boxes[2].y0 > 0
    assert len({box.x0 for box in boxes}) == 1
    for axes in every:
        assert [text.get_text() for text in axes.get_yticklabels()] == ["Surgical aggregation"]


def test_there_is_nothing_to_draw_without_a_mean(made_up):
    made_up.finish({("global", "nih"): {"Edema": 0.7}})
    assert bars(*of_settings(made_up.results()), {}, "b") is None
