import numpy as np
import pytest

from cxr_studies.report.figures.rounds import CLOSEST, POINTS, convergence, drift, learning
from drawn_texts import legend

REACHED = {("global", "nih"): {"Edema": 0.7}}


@pytest.fixture
def finish(made_up):
    """A finished run with its losses and best round, or with similarities of columns."""

    def finish(losses=(0.6, 0.5), best=1, similar=(), aurocs=(), images=0, **run):
        kept = {"losses": tuple(losses), "best_round": best, "column_similarity": tuple(similar)}
        kept |= {"aurocs": tuple(aurocs), "images": images}
        made_up.finish(REACHED, result=kept, **run)

    return finish


@pytest.fixture
def figure(made_up, drawn):
    return lambda draw, factor="sites": drawn(draw, made_up.results(factor), "f")


def test_a_loss_line_is_the_mean_over_seeds_in_a_band_by_scenario(finish, made_up, figure, lines):
    finish((None, 0.5, 0.4, 0.3), 3, seed=0)
    finish((None, 0.3, 0.2), 2, seed=1)
    finish((0.6, 0.5), 7, scenario="4", method="vanilla")
    made_up.plan("complete", scenario="8")
    first, second = figure(convergence).axes
    [(at, mean)] = lines(first, "surgical", markers=False)
    assert at.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(mean, [np.nan, 0.4, 0.3, np.nan])  # as far as all have come
    [area] = first.collections
    assert set(area.get_paths()[0].vertices[:, 1].round(6)) == {0.5, 0.4, 0.3, 0.2}
    [marks] = lines(first, "surgical", markers=True)  # of every seed
    assert sorted(marks.T.tolist()) == [[2, 0.2], [3, 0.3]]
    assert not lines(first, "vanilla", markers=False) and not second.collections
    assert len(lines(second, "vanilla", markers=False)) == 1
    [marks] = lines(second, "vanilla", markers=True)  # no common loss reaches the best round
    assert marks.size == 0
    assert first.get_ylabel() == "validation BCE"
    assert first.figure.get_supxlabel() == "round"
    assert legend(first.figure) == ["Surgical aggregation", "Vanilla FL"]
    for factor, title in (("sites", "sites: 2"), ("share of the data set at each site", "2")):
        assert figure(convergence, factor).axes[0].get_title(loc="left") == title


def test_long_runs_are_thinned_out(finish, figure, lines):
    losses = np.linspace(0.7, 0.3, 151)
    finish(losses.tolist(), 150)
    [(at, mean)] = lines(figure(convergence).axes[0], "surgical", markers=False)
    assert len(at) == POINTS and (at[0], at[-1]) == (0, 150)
    np.testing.assert_array_equal(mean, losses[at.astype(int)])


def test_an_auroc_stands_over_the_images_that_were_seen_until_then(finish, made_up, figure, lines):
    finish(aurocs=(None, 0.6, 0.7), images=1000, seed=0)
    finish(aurocs=(None, 0.8), images=1000, seed=1)
    finish(aurocs=(0.5, 0.75), images=3000, scenario="4", method="vanilla")
    first, second = figure(learning).axes
    [(at, mean)] = lines(first, "surgical", markers=False)
    assert at.tolist() == [0, 1000, 2000]
    np.testing.assert_allclose(mean, [np.nan, 0.7, np.nan])
    [(at, mean)] = lines(second, "vanilla", markers=False)
    assert (at.tolist(), mean.tolist()) == ([0, 3000], [0.5, 0.75])
    assert first.get_ylabel() == "validation AUROC"
    assert first.figure.get_supxlabel() == "images seen, by all sites together"


def test_runs_that_kept_no_auroc_have_no_line_of_it(finish, made_up, figure, lines):
    finish(seed=0)
    assert learning(made_up.results(), "l") is None
    finish(aurocs=(0.5, 0.75), images=10, seed=1)
    [(_, mean)] = lines(figure(learning).axes[0], "surgical", markers=False)
    assert mean.tolist() == [0.5, 0.75]


def test_a_similarity_line_is_the_mean_over_classes_and_seeds_in_a_band(finish, figure, lines):
    first = ({"Edema": 0.5, "Mass": 0.9}, {"Edema": 0.8, "Mass": 0.9}, {"Edema": 0.9})
    finish(similar=first, seed=0)
    finish(similar=({"Edema": 0.7}, {"Edema": 0.7}), seed=1)
    [axes] = figure(drift).axes
    [(at, apart)] = lines(axes, "surgical", markers=False)
    assert at.tolist() == [0, 1]  # as far as both seeds have come
    np.testing.assert_allclose(apart, [1 - 0.7, 1 - 0.8])
    [area] = axes.collections
    assert set(area.get_paths()[0].vertices[:, 1].round(6)) == {0.5, 0.1, 0.3}
    [(last, height)] = lines(axes, "surgical", markers=True)
    assert last.tolist() == [1] and height == pytest.approx([0.2])
    bottom, top = axes.get_ylim()
    assert bottom == pytest.approx(1.3 * 0.5) and top == pytest.approx(0.1 / 1.3)


def test_the_similarity_axis_is_one_of_nines_with_the_most_alike_on_top(finish, figure, lines):
    finish(similar=({"Edema": 0.0}, {"Edema": 0.9}, {"Edema": 1.0}))
    [axes] = figure(drift).axes
    assert axes.get_yscale() == "log" and axes.yaxis_inverted()
    ticks = axes.yaxis.get_major_formatter().format_ticks([1, 0.1, 0.01, 0.001])
    assert ticks == ["0", "0.9", "0.99", "0.999"]
    [(_, apart)] = lines(axes, "surgical", markers=False)
    np.testing.assert_allclose(apart, [1, 0.1, CLOSEST])  # the same are at the axis's end


def test_rows_without_losses_or_without_a_class_of_two_sites_have_no_line(finish, made_up, figure):
    finish((None, None), method="centralised")
    finish((None, None), similar=({}, {}))
    assert convergence(made_up.results(), "c") is None and drift(made_up.results(), "d") is None
    finish(method="vanilla", similar=({"Edema": 0.9}, {"Edema": 0.9}))
    assert legend(figure(drift)) == ["Vanilla FL"]
