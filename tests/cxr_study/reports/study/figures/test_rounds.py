"""Panels of what happens from round to round."""

import matplotlib as mpl
import numpy as np
import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.figures.rounds import (
    CLOSEST,
    POINTS,
    Band,
    convergence,
    draw,
    drift,
    results_of,
)
from cxr_study.reports.study.figures.style import LOOK
from drawn_texts import legend

SURGICAL, VANILLA = Row("surgical", "fedbn+"), Row("vanilla", "fedbn+")
REACHED = {("global", "nih"): {"Edema": 0.7}}


@pytest.fixture
def results(made_up):
    """Two seeds in one scenario, one in another with another method; an unfinished run."""
    for scenario, method, seed in (
        ("4", "surgical", 0),
        ("2", "surgical", 1),
        ("2", "surgical", 0),
    ):
        result = {"rounds": 10 * int(scenario) + seed}
        made_up.finish(REACHED, method=method, seed=seed, scenario=scenario, result=result)
    made_up.finish(REACHED, method="vanilla", scenario="4", result={"rounds": 7})
    made_up.plan("vanilla", scenario="2")

    def results(factor="sites"):
        return made_up.results(factor)

    return results


def band(low, mean, high):
    return Band(*np.array([mean, low, high], float))


def drawn_with(results, bands):
    with mpl.rc_context(LOOK):
        return draw(results, bands)


def test_results_are_those_of_finished_runs_by_scenario_and_row(results):
    found = results_of(results())
    assert {key: sorted(each.rounds for each in several) for key, several in found.items()} == {
        ("2", SURGICAL): [20, 21],
        ("4", SURGICAL): [40],
        ("4", VANILLA): [7],
    }
    assert list(found) == [("2", SURGICAL), ("4", SURGICAL), ("4", VANILLA)]


def test_a_line_and_the_band_that_it_is_in_are_drawn_in_the_scenarios_panel(results, lines):
    bands = {("2", SURGICAL): band([1, 2], [2, 3], [3, 5]), ("4", SURGICAL): band(*[[4, 6]] * 3)}
    _, panel_of = drawn_with(results(), bands)
    [(at, mean)] = lines(panel_of["2"], "surgical", markers=False)
    assert at.tolist() == [0, 1] and mean.tolist() == [2, 3]
    [area] = panel_of["2"].collections
    corners = {tuple(corner) for corner in area.get_paths()[0].vertices.tolist()}
    assert corners == {(0, 1), (1, 2), (1, 5), (0, 3)}
    assert not panel_of["4"].collections


def test_long_runs_are_thinned_out(results, lines):
    rounds = np.arange(151.0)
    _, panel_of = drawn_with(results(), {("2", SURGICAL): Band(rounds, rounds, rounds + 1)})
    [(at, mean)] = lines(panel_of["2"], "surgical", markers=False)
    assert len(at) == POINTS and (at[0], at[-1]) == (0, 150)
    np.testing.assert_array_equal(at, mean)


@pytest.mark.parametrize(
    ("factor", "title"), [("sites", "sites: 2"), ("share of the data set at each site", "2")]
)
def test_panels_say_what_varies_where_there_is_room(factor, title, results):
    figure, panel_of = drawn_with(results(factor), {("2", SURGICAL): band([1], [1], [1])})
    assert panel_of["2"].get_title(loc="left") == title
    assert figure.get_supxlabel() == "round"


def test_the_legend_has_the_rows_that_are_drawn(made_up):
    for method in ("surgical", "vanilla"):
        made_up.finish(REACHED, method=method)
    figure, _ = drawn_with(made_up.results(), {("2", VANILLA): band([1], [1], [1])})
    assert legend(figure) == ["Vanilla FL"]


def result(losses, best):
    return {"losses": tuple(losses), "best_round": best}


@pytest.fixture
def panel(made_up, drawn):
    """The only panel of a figure."""

    def panel(draw):
        [axes] = drawn(draw, made_up.results(), "f").axes
        return axes

    return panel


class TestConvergence:
    def test_the_line_is_the_mean_over_seeds_as_far_as_all_have_come(self, made_up, panel, lines):
        made_up.finish(REACHED, seed=0, result=result((None, 0.5, 0.4, 0.3), 3))
        made_up.finish(REACHED, seed=1, result=result((None, 0.3, 0.2), 2))
        axes = panel(convergence)
        [(at, mean)] = lines(axes, "surgical", markers=False)
        assert at.tolist() == [0, 1, 2, 3]
        np.testing.assert_allclose(mean, [np.nan, 0.4, 0.3, np.nan])
        [area] = axes.collections
        heights = area.get_paths()[0].vertices[:, 1]
        assert set(heights.round(6)) == {0.5, 0.4, 0.3, 0.2}
        assert axes.get_ylabel() == "validation BCE"

    def test_every_seeds_best_round_is_marked(self, made_up, panel, lines):
        made_up.finish(REACHED, seed=0, result=result((0.6, 0.5, 0.4, 0.45), 2))
        made_up.finish(REACHED, seed=1, result=result((0.6, 0.3, 0.35), 1))
        axes = panel(convergence)
        [marks] = lines(axes, "surgical", markers=True)
        assert sorted(marks.T.tolist()) == [[1, 0.3], [2, 0.4]]

    def test_a_best_round_that_no_common_loss_reaches_has_no_mark(self, made_up, panel, lines):
        own = {"method": "individual", "result": result((0.6, 0.5), 7)}
        made_up.finish(REACHED, **own)
        axes = panel(convergence)
        [marks] = lines(axes, "individual", markers=True)
        assert marks.size == 0
        assert len(lines(axes, "individual", markers=False)) == 1

    def test_there_is_nothing_to_draw_without_a_loss(self, made_up):
        made_up.finish(REACHED, result=result((None, None), 1))
        assert convergence(made_up.results(), "c") is None

    def test_it_becomes_an_element_of_a_page(self, made_up):
        made_up.finish(REACHED, result=result(np.linspace(0.7, 0.3, 151).tolist(), 150))
        svg = convergence(made_up.results(), "c")
        assert svg.startswith("<svg") and 'aria-label="Validation BCE over rounds' in svg
        assert len(svg) < 15_000


def similar(*rounds):
    return {"column_similarity": rounds}


class TestDrift:
    def test_the_line_is_the_mean_over_classes_and_seeds_in_a_band(self, made_up, panel, lines):
        first = similar({"Edema": 0.5, "Mass": 0.9}, {"Edema": 0.8, "Mass": 0.9}, {"Edema": 0.9})
        made_up.finish(REACHED, seed=0, result=first)
        made_up.finish(REACHED, seed=1, result=similar({"Edema": 0.7}, {"Edema": 0.7}))
        axes = panel(drift)
        [(at, apart)] = lines(axes, "surgical", markers=False)
        assert at.tolist() == [0, 1]  # as far as both seeds have come
        np.testing.assert_allclose(apart, [1 - 0.7, 1 - 0.8])
        [area] = axes.collections
        heights = area.get_paths()[0].vertices[:, 1]
        assert set(heights.round(6)) == {0.5, 0.1, 0.3}
        [(last, height)] = lines(axes, "surgical", markers=True)
        assert last.tolist() == [1] and height == pytest.approx([0.2])

    def test_the_axis_is_one_of_nines_with_the_most_alike_on_top(self, made_up, panel):
        made_up.finish(REACHED, result=similar({"Edema": 0.0}, {"Edema": 0.9}, {"Edema": 0.999}))
        axes = panel(drift)
        assert axes.get_yscale() == "log" and axes.yaxis_inverted()
        texts = axes.yaxis.get_major_formatter().format_ticks([1, 0.1, 0.01, 0.001])
        assert texts == ["0", "0.9", "0.99", "0.999"]
        assert axes.yaxis.get_minorticklocs().size == 0 and axes.get_ylabel() == "cosine similarity"

    def test_columns_that_are_the_same_are_drawn_at_the_end_of_the_axis(
        self, made_up, panel, lines
    ):
        made_up.finish(REACHED, result=similar({"Edema": 1.0}, {"Edema": 1.0}))
        axes = panel(drift)
        [(_, apart)] = lines(axes, "surgical", markers=False)
        np.testing.assert_allclose(apart, [CLOSEST, CLOSEST])

    def test_rows_without_a_class_of_two_sites_have_no_line(self, made_up, drawn):
        made_up.finish(REACHED, method="vanilla", result=similar({"Edema": 0.9}, {"Edema": 0.9}))
        made_up.finish(REACHED, method="centralised", result=similar())
        made_up.finish(REACHED, result=similar({}, {}))
        figure = drawn(drift, made_up.results(), "d")
        assert legend(figure) == ["Vanilla FL"]

    def test_there_is_nothing_to_draw_where_no_row_has_a_line(self, made_up):
        made_up.finish(REACHED, result=similar({}, {}))
        made_up.finish(REACHED, method="centralised", result=similar())
        assert drift(made_up.results(), "d") is None
