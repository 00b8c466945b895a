"""Panels side by side, under a legend."""

import matplotlib as mpl
import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.figures.looks import LOOK
from cxr_study.reports.study.figures.panels import ACROSS, label_below, panels


@pytest.fixture(autouse=True)
def look():
    with mpl.rc_context(LOOK):
        yield


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_legend_names_each_method_once_and_strategies_where_they_differ():
    rows = [Row("surgical", "fedavg"), Row("surgical", "fedbn+"), Row("vanilla", "fedbn+")]
    figure, _ = panels(["2"], rows, height=1)
    assert legend(figure) == [
        "Surgical aggregation",
        "Vanilla FL",
        "fedavg: batch norm trained",
        "fedbn+: batch norm frozen",
    ]
    figure, _ = panels(["2"], rows[1:], height=1)
    assert legend(figure) == ["Surgical aggregation", "Vanilla FL"]


def test_without_rows_there_is_no_legend():
    figure, _ = panels(["2"], (), height=1)
    assert not figure.legends


def test_there_is_a_panel_for_each_title_and_no_other():
    titles = [str(number) for number in range(ACROSS + 1)]
    figure, every = panels(titles, (), height=1)
    assert [axes.get_title(loc="left") for axes in every] == titles
    assert figure.axes == every


def test_panels_are_as_high_as_asked_for_and_do_not_overlap():
    figure, every = panels([str(number) for number in range(ACROSS + 1)], (), height=1.5, below=0.8)
    boxes = [axes.get_position() for axes in every]
    tall = figure.get_figheight()
    assert [box.height * tall for box in boxes] == pytest.approx([1.5] * len(boxes))
    assert boxes[-1].y0 * tall == pytest.approx(0.8)
    assert boxes[0].y0 > boxes[-1].y1 and boxes[1].x0 > boxes[0].x1


def test_panels_have_common_axes_all_with_numbers():
    _, every = panels([str(number) for number in range(ACROSS + 1)], (), height=1)
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
