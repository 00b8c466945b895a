"""How the validation BCE falls from round to round."""

import numpy as np

from cxr_study.reports.study.figures.convergence import convergence

REACHED = {("global", "nih"): {"Edema": 0.7}}


def result(losses, best):
    return {"losses": tuple(losses), "best_round": best}


def test_the_line_is_the_mean_over_seeds_in_a_band_as_far_as_all_have_come(made_up, drawn, lines):
    made_up.finish(REACHED, seed=0, result=result((None, 0.5, 0.4, 0.3), 3))
    made_up.finish(REACHED, seed=1, result=result((None, 0.3, 0.2), 2))
    [axes] = drawn(convergence, made_up.results(), "c").axes
    [(at, mean)] = lines(axes, "surgical", markers=False)
    assert at.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(mean, [np.nan, 0.4, 0.3, np.nan])
    [area] = axes.collections
    heights = area.get_paths()[0].vertices[:, 1]
    assert set(heights.round(6)) == {0.5, 0.4, 0.3, 0.2}
    assert axes.get_ylabel() == "validation BCE"


def test_every_seeds_best_round_is_marked(made_up, drawn, lines):
    made_up.finish(REACHED, seed=0, result=result((0.6, 0.5, 0.4, 0.45), 2))
    made_up.finish(REACHED, seed=1, result=result((0.6, 0.3, 0.35), 1))
    [axes] = drawn(convergence, made_up.results(), "c").axes
    [marks] = lines(axes, "surgical", markers=True)
    assert sorted(marks.T.tolist()) == [[1, 0.3], [2, 0.4]]


def test_a_best_round_that_no_common_loss_reaches_has_no_mark(made_up, drawn, lines):
    own = {"method": "individual", "result": result((0.6, 0.5), 7)}
    made_up.finish(REACHED, **own)
    [axes] = drawn(convergence, made_up.results(), "c").axes
    [marks] = lines(axes, "individual", markers=True)
    assert marks.size == 0
    assert len(lines(axes, "individual", markers=False)) == 1


def test_a_panel_for_each_setting_in_the_files_order(made_up, drawn, lines):
    for setting, loss in (("4", 0.4), ("2", 0.2)):
        made_up.finish(REACHED, setting=setting, result=result((loss, loss), 1))
    figure = drawn(convergence, made_up.results(), "c")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["sites: 2", "sites: 4"]
    means = [lines(axes, "surgical", markers=False)[0][1] for axes in figure.axes]
    np.testing.assert_allclose(means, [[0.2, 0.2], [0.4, 0.4]])


def test_there_is_nothing_to_draw_without_a_loss(made_up):
    made_up.finish(REACHED, result=result((None, None), 1))
    assert convergence(made_up.results(), "c") is None


def test_it_becomes_an_element_of_a_page(made_up):
    made_up.finish(REACHED, result=result(np.linspace(0.7, 0.3, 151).tolist(), 150))
    svg = convergence(made_up.results(), "c")
    assert svg.startswith("<svg") and 'aria-label="Validation BCE over rounds' in svg
    assert len(svg) < 15_000
