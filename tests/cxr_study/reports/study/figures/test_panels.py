"""Panels side by side, under a legend."""

import matplotlib as mpl
import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.figures.panels import ACROSS, label_below, panels
from cxr_study.reports.study.figures.style import LOOK
from drawn_texts import legend

TITLES = [str(number) for number in range(ACROSS + 1)]


@pytest.fixture(autouse=True)
def look():
    with mpl.rc_context(LOOK):
        yield


def test_a_legend_names_each_method_once_and_strategies_where_they_differ():
    rows = [Row("surgical", "fedavg"), Row("surgical", "fedbn+"), Row("vanilla", "fedbn+")]
    methods = ["Surgical aggregation", "Vanilla FL"]
    strategies = ["fedavg: batch norm trained", "fedbn+: batch norm frozen"]
    assert legend(panels(["2"], rows, height=1)[0]) == methods + strategies
    assert legend(panels(["2"], rows[1:], height=1)[0]) == methods
    assert not panels(["2"], (), height=1)[0].legends


def test_panels_are_as_high_as_asked_for_one_for_each_title_and_do_not_overlap():
    figure, every = panels(TITLES, (), height=1.5, below=0.8)
    assert [axes.get_title(loc="left") for axes in every] == TITLES
    assert figure.axes == every
    boxes = [axes.get_position() for axes in every]
    tall = figure.get_figheight()
    assert [box.height * tall for box in boxes] == pytest.approx([1.5] * len(boxes))
    assert boxes[-1].y0 * tall == pytest.approx(0.8)
    assert boxes[0].y0 > boxes[-1].y1 and boxes[1].x0 > boxes[0].x1


def test_panels_have_common_axes_all_with_numbers():
    _, every = panels(TITLES, (), height=1)
    every[0].set(xlim=(0, 7), ylim=(0, 3))
    assert every[-1].get_xlim() == (0, 7) and every[-1].get_ylim() == (0, 3)
    assert all(axes.xaxis.get_tick_params()["labelbottom"] for axes in every)


def test_what_the_axes_are_stands_in_the_middle_below_them():
    figure, every = panels(["2", "4"], (), height=1)
    label_below(figure, "sites")
    boxes = [axes.get_position() for axes in every]
    x, y = figure._supxlabel.get_position()
    assert figure.get_supxlabel() == "sites"
    assert x == pytest.approx((boxes[0].x0 + boxes[1].x1) / 2) and 0 < y < boxes[0].y0
