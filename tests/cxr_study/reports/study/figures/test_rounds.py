"""Panels of what happens from round to round."""

import matplotlib as mpl
import numpy as np
import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.figures.looks import LOOK
from cxr_study.reports.study.figures.rounds import POINTS, Band, draw, results_of

SURGICAL, VANILLA = Row("surgical", "fedbn+"), Row("vanilla", "fedbn+")
REACHED = {("global", "nih"): {"Edema": 0.7}}


@pytest.fixture
def results(made_up):
    """Two seeds in one setting, one in another with another method; an unfinished run."""
    for setting, method, seed in (("4", "surgical", 0), ("2", "surgical", 1), ("2", "surgical", 0)):
        result = {"rounds": 10 * int(setting) + seed}
        made_up.finish(REACHED, method=method, seed=seed, setting=setting, result=result)
    made_up.finish(REACHED, method="vanilla", setting="4", result={"rounds": 7})
    made_up.plan("vanilla", setting="2")

    def results(factor="sites"):
        return made_up.results(factor)

    return results


def band(low, mean, high):
    return Band(*np.array([mean, low, high], float))


def drawn_with(results, bands):
    with mpl.rc_context(LOOK):
        return draw(results, bands)


def test_results_are_those_of_finished_runs_by_setting_and_row(results):
    found = results_of(results())
    assert {key: sorted(each.rounds for each in several) for key, several in found.items()} == {
        ("2", SURGICAL): [20, 21],
        ("4", SURGICAL): [40],
        ("4", VANILLA): [7],
    }
    assert list(found) == [("2", SURGICAL), ("4", SURGICAL), ("4", VANILLA)]


def test_a_line_and_the_band_that_it_is_in_are_drawn_in_the_settings_panel(results, lines):
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
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Vanilla FL"]
