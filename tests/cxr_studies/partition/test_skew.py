import pytest

from cxr_studies.partition.skew import Skew, skew_of
from cxr_study.common.errors import InputError


@pytest.mark.parametrize(("alphas", "found"), [
    ((None, None), None), ((1, None), Skew("quantity", 1)), ((None, 0.3), Skew("label", 0.3)),
    ((1, 0.3), "a quantity skew or a label skew; got both"),
    ((0, None), r"alpha of the quantity skew needs a number of 0\.01 or more; got 0"),
    ((None, -1), r"alpha of the label skew needs .* got -1"), ((None, float("nan")), "got nan"),
    ((float("inf"), None), "got inf"),
])  # fmt: skip
def test_one_alpha_is_a_skew_and_others_are_refused(alphas, found):
    if isinstance(found, str):
        with pytest.raises(InputError, match=found):
            skew_of(*alphas)
    else:
        assert skew_of(*alphas) == found
