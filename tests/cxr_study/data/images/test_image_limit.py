import pytest
from cxr_study.data.images.image_limit import allowed


@pytest.mark.parametrize(
    ("limit", "most"),
    [(0, 0), (3, 3), ("3", 3), ("1%", 2), ("0.5 %", 1), ("100%", 299), ("0%", 0)],
)
def test_a_limit_is_a_number_or_a_share(limit, most):
    assert allowed(limit, 299) == most


@pytest.mark.parametrize("limit", [-1, 0.5, True, "101%", "-1%", "many", "", None, [1]])
def test_nothing_else_is_a_limit(limit):
    with pytest.raises(ValueError, match="needs a number of images, or a share such as 1%"):
        allowed(limit, 299)
