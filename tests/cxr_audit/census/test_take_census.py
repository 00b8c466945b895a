import numpy as np
import pandas as pd
import pytest

from cxr_audit.census.take_census import choose_samples


@pytest.mark.parametrize(("number", "columns", "chosen"), [
    # The rarest class comes first with its simplest picture, then one without any.
    (8, {"Edema": [1, 1, 1, 0, 0], "Mass": [1, 1, 0, 0, 0], "Hernia": [1, 0, 0, 0, 0]},
     [(0, ["Edema", "Mass", "Hernia"]), (3, [])]),
    (8, {"Edema": [1, 1, 1, 0], "Mass": [0.7, 1, 0, 0]}, [(1, ["Edema", "Mass"]), (3, [])]),
    (8, {"Edema": [0, 1, 1, 0], "Mass": [1, 0, 0, 0]}, [(0, ["Mass"]), (1, ["Edema"]), (3, [])]),
    (8, {"Edema": [1, 0, 1, 1, 0], "Mass": [1, 1, 0, 0, 0]},
     [(1, ["Mass"]), (2, ["Edema"]), (4, [])]),
    (2, {"Edema": [1, 0, 0, 0], "Mass": [0, 1, 0, 0], "Hernia": [0, 0, 1, 0]},
     [(0, ["Edema"]), (3, [])]),
    (8, {"Edema": [0, np.nan]}, [(0, [])]),
])  # fmt: skip
def test_the_rarest_classes_have_a_picture_with_few_others(number, columns, chosen):
    table = pd.DataFrame(columns, dtype=float)
    pixels = np.arange(len(table), dtype=np.uint8)[::-1, None, None]
    samples = choose_samples(table, pixels, np.arange(len(table))[::-1], number)
    assert [(int(sample.pixels[0, 0]), sample.present) for sample in samples] == chosen
