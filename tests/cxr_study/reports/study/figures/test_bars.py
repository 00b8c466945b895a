"""What methods reach on average over the scenarios of a study."""

import numpy as np
import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.figures.bars import CHANCE, bars
from drawn_texts import texts


@pytest.fixture
def panels(made_up, drawn):
    """Draws the bars of scenarios; its panels."""

    def panels(*places, marks=None):
        return drawn(bars, made_up.results(), places or ("2",), marks or {}, "b").axes

    return panels


def test_a_bar_is_the_average_over_scenarios_of_the_mean_over_seeds(made_up, panels):
    for scenario, seed, auroc in (("2", 0, 0.9), ("2", 1, 0.8), ("4", 0, 0.75), ("8", 0, 0.5)):
        made_up.reach(auroc, scenario=scenario, seed=seed)
    [axes] = panels("2", "4")
    [bar] = axes.patches
    assert bar.get_x() == CHANCE and bar.get_x() + bar.get_width() == pytest.approx(0.8)
    assert texts(axes.texts) == ["0.800"]
    svg = bars(made_up.results(), ["2", "4"], {}, "b")
    assert 'aria-label="Mean AUROC of every method, sites: 2 and 4"' in svg


def test_its_thin_line_is_the_standard_deviation_over_scenarios(made_up, panels):
    for scenario, auroc in (("2", 0.9), ("4", 0.7)):
        made_up.reach(auroc, scenario=scenario)
    spread = np.std([0.9, 0.7], ddof=1)
    [axes] = panels("2", "4")
    found = [line.get_xdata() for line in axes.get_lines()[:2]]
    np.testing.assert_allclose(found, [[0.8 - spread, 0.8 + spread]] * 2)
    [axes] = panels("2")
    assert [list(line.get_xdata()) for line in axes.get_lines()] == [[CHANCE, CHANCE]]


def test_it_is_said_where_a_mean_is_defined_and_how_it_differs(made_up, panels):
    made_up.reach(0.8, scenario="2")
    made_up.reach(0.7, classes=["Edema"], scenario="4")
    made_up.reach(0.7, classes=["Edema"], method="vanilla")
    made_up.reach(0.6, "mimic", method="vanilla", strategy="fedavg")
    nih, mimic = panels("2", "4", marks={(Row("vanilla", "fedavg"), "mimic"): "***"})
    assert texts(nih.texts) == ["0.800\n1 of 2", "not defined"]
    assert texts(mimic.texts) == ["not defined", "0.600 ***\n1 of 2"]
    assert [nih.get_xlabel(), mimic.get_xlabel()] == ["mean AUROC on NIH", "mean AUROC on MIMIC"]


def test_two_test_sets_stand_side_by_side_on_one_scale_and_name_the_rows_once(made_up, panels):
    for method, strategy in (("surgical", "fedbn+"), ("vanilla", "fedavg"), ("vanilla", "fedbn+")):
        made_up.reach(0.8, "nih", "mimic", method=method, strategy=strategy)
    nih, mimic = panels()
    names = ["Surgical aggregation", "Vanilla FL, fedavg", "Vanilla FL, fedbn+"]
    assert [texts(axes.get_yticklabels()) for axes in (nih, mimic)] == [names, [""] * 3]
    assert nih.get_ylim() == (2.5, -0.5) and nih.get_xlim() == mimic.get_xlim()
    left, right = nih.get_position(), mimic.get_position()
    assert left.x1 < right.x0 and left.y0 == right.y0


def test_three_test_sets_stand_below_each_other_each_with_names(made_up, panels):
    made_up.reach(0.9, "nih", "chexpert", "mimic")
    every = panels()
    boxes = [axes.get_position() for axes in every]
    assert boxes[0].y0 > boxes[1].y1 > boxes[1].y0 > boxes[2].y1 and boxes[2].y0 > 0
    assert len({box.x0 for box in boxes}) == 1
    assert [texts(axes.get_yticklabels()) for axes in every] == [["Surgical aggregation"]] * 3


def test_there_is_nothing_to_draw_without_a_mean(made_up):
    made_up.reach(0.7, classes=["Edema"])
    assert bars(made_up.results(), ["2"], {}, "b") is None
