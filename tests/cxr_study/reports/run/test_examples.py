import numpy as np
import pandas as pd

from cxr_study.evaluation.test_split import TestSplit
from cxr_study.reports.run.examples import choose

UNION = ("A", "B", "C", "D", "E")


def pick(pictures, count=6, probability=0.5):
    """Choose among pictures given by the letters of their classes; returns (number, truth)."""
    labels = np.array([[float(name in letters) for name in UNION] for letters in pictures])
    pixels = np.arange(len(pictures), dtype=np.uint8)[:, None, None].repeat(2, 1).repeat(2, 2)
    table = pd.DataFrame(labels, columns=list(UNION))
    rows = np.arange(len(pictures))
    split = TestSplit("nih", table, pixels, rows, frozenset("AB"), pd.DataFrame())
    chances = pd.DataFrame({name: [probability] * len(pictures) for name in UNION})
    return choose(split, chances, UNION, count)


def numbers(examples):
    return [int(example.image[0, 0]) for example in examples]


def test_every_picture_adds_most_classes_that_were_not_shown_yet():
    assert numbers(pick(["A", "AB", "BC", "CDE"], count=3)) == [3, 1, 0]


def test_pictures_of_more_than_three_classes_are_left_out():
    assert numbers(pick(["ABCD", "AB"])) == [1]


def test_the_last_is_the_first_one_without_any_class():
    assert numbers(pick(["", "A", "", "B"], count=2)) == [1, 0]


def test_no_picture_is_shown_twice():
    assert sorted(numbers(pick(["A", "A", "A"]))) == [0, 1, 2]


def test_where_nothing_fits_there_are_none():
    assert pick(["ABCDE"]) == []


def test_predictions_play_no_part():
    pictures = ["A", "AB", "C", ""]
    assert numbers(pick(pictures, probability=0.1)) == numbers(pick(pictures, probability=0.9))


def test_an_example_has_all_that_a_report_shows():
    (example,) = pick(["BA"], probability=0.25)
    assert (example.site, example.truth, example.held) == ("nih", ["A", "B"], {"A", "B"})
    assert example.predictions == dict.fromkeys(UNION, 0.25)
    assert example.image.shape == (2, 2) and example.image.dtype == np.uint8
