import numpy as np
import pandas as pd

from cxr_study.data.census.sample_pictures import choose


def chosen(number=8, **columns):
    table = pd.DataFrame(columns, dtype=float)
    pixels = np.arange(len(table), dtype=np.uint8)[::-1, None, None]
    rows = np.arange(len(table))[::-1]
    return [(int(s.pixels[0, 0]), s.present) for s in choose(table, pixels, rows, number)]


def test_the_rarest_class_comes_first_with_its_simplest_picture_then_one_without_any():
    assert chosen(Edema=[1, 1, 1, 0, 0], Mass=[1, 1, 0, 0, 0], Hernia=[1, 0, 0, 0, 0]) == [
        (0, ["Edema", "Mass", "Hernia"]),
        (3, []),
    ]
    assert chosen(Edema=[1, 1, 1, 0], Mass=[0.7, 1, 0, 0]) == [(1, ["Edema", "Mass"]), (3, [])]
    assert chosen(Edema=[0, 1, 1, 0], Mass=[1, 0, 0, 0]) == [(0, ["Mass"]), (1, ["Edema"]), (3, [])]


def test_a_picture_with_few_classes_is_preferred():
    assert chosen(Edema=[1, 0, 1, 1, 0], Mass=[1, 1, 0, 0, 0]) == [
        (1, ["Mass"]), (2, ["Edema"]), (4, []),
    ]  # fmt: skip


def test_no_more_than_asked_for():
    assert len(chosen(2, Edema=[1, 0, 0, 0], Mass=[0, 1, 0, 0], Hernia=[0, 0, 1, 0])) == 2


def test_a_class_without_positives_has_no_picture():
    assert chosen(Edema=[0, np.nan]) == [(0, [])]
