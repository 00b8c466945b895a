"""Whether the columns that sites send for a class drift apart."""

import numpy as np
import pytest

from cxr_study.reports.study.figures.drift import CLOSEST, drift

REACHED = {("global", "nih"): {"Edema": 0.7}}


def similar(*rounds):
    return {"column_similarity": rounds}


def test_the_line_is_the_mean_over_classes_and_seeds_in_a_band(made_up, drawn, lines):
    first = similar({"Edema": 0.5, "Mass": 0.9}, {"Edema": 0.8, "Mass": 0.9}, {"Edema": 0.9})
    made_up.finish(REACHED, seed=0, result=first)
    made_up.finish(REACHED, seed=1, result=similar({"Edema": 0.7}, {"Edema": 0.7}))
    [axes] = drawn(drift, made_up.results(), "d").axes
    [(at, apart)] = lines(axes, "surgical", markers=False)
    assert at.tolist() == [0, 1]  # as far as both seeds have come
    np.testing.assert_allclose(apart, [1 - 0.7, 1 - 0.8])
    [area] = axes.collections
    heights = area.get_paths()[0].vertices[:, 1]
    assert set(heights.round(6)) == {0.5, 0.1, 0.3}
    [(last, height)] = lines(axes, "surgical", markers=True)
    assert last.tolist() == [1] and height == pytest.approx([0.2])


def test_the_axis_is_one_of_nines_with_the_most_alike_on_top(made_up, drawn):
    made_up.finish(REACHED, result=similar({"Edema": 0.0}, {"Edema": 0.9}, {"Edema": 0.999}))
    [axes] = drawn(drift, made_up.results(), "d").axes
    assert axes.get_yscale() == "log" and axes.yaxis_inverted()
    texts = axes.yaxis.get_major_formatter().format_ticks([1, 0.1, 0.01, 0.001])
    assert texts == ["0", "0.9", "0.99", "0.999"]
    assert axes.yaxis.get_minorticklocs().size == 0 and axes.get_ylabel() == "cosine similarity"


def test_columns_that_are_the_same_are_drawn_at_the_end_of_the_axis(made_up, drawn, lines):
    made_up.finish(REACHED, result=similar({"Edema": 1.0}, {"Edema": 1.0}))
    [axes] = drawn(drift, made_up.results(), "d").axes
    [(_, apart)] = lines(axes, "surgical", markers=False)
    np.testing.assert_allclose(apart, [CLOSEST, CLOSEST])


def test_rows_without_a_federation_or_a_class_of_two_sites_have_no_line(made_up, drawn):
    made_up.finish(REACHED, method="vanilla", result=similar({"Edema": 0.9}, {"Edema": 0.9}))
    made_up.finish(REACHED, method="centralised", result=similar())
    made_up.finish(REACHED, result=similar({}, {}))
    figure = drawn(drift, made_up.results(), "d")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Vanilla FL"]


def test_there_is_nothing_to_draw_where_no_row_has_a_line(made_up):
    made_up.finish(REACHED, result=similar({}, {}))
    made_up.finish(REACHED, method="centralised", result=similar())
    assert drift(made_up.results(), "d") is None
