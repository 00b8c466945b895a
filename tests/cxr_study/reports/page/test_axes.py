import pytest
from matplotlib.figure import Figure

from cxr_study.reports.page.axes import axes_at, name_rows


def test_axes_are_placed_in_inches():
    box = axes_at(Figure((4, 2)), 1, 0.5, 2, 1).get_position()
    assert (box.x0, box.y0, box.width, box.height) == pytest.approx((0.25, 0.25, 0.5, 0.5))


def test_rows_are_named_at_their_places_or_not_at_all():
    axes = Figure().subplots()
    name_rows(axes, ["a", "b"], [1, 3])
    assert list(axes.get_yticks()) == [1, 3]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    name_rows(axes, [])
    assert not len(axes.get_yticks())
