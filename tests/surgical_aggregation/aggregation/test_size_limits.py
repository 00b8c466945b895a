import pytest

from surgical_aggregation.aggregation.size_limits import LimitError, Limits, limits


def test_what_is_not_given_has_its_default():
    assert limits(None) == limits({}) == Limits()
    assert limits({"site_classes": 7}) == Limits(site_classes=7)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many", None])
def test_a_limit_is_a_whole_number_above_0(value):
    with pytest.raises(LimitError, match="'model_classes' must be a whole number above 0; got"):
        limits({"model_classes": value})


def test_an_unknown_one_is_refused_with_those_that_there_are():
    with pytest.raises(LimitError, match=r"limits are class_name_bytes, .*; got \['classes'\]"):
        limits({"classes": 7})
