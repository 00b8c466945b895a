import numpy as np
import pandas as pd
import pytest

from cxr_study.data.images.image_store import Images
from cxr_study.evaluation.predictions import Predictions
from cxr_study.reports.run.example_pictures import Example, choose

UNION = ("A", "B", "C", "D", "E")


def pick(pictures, count=6, probability=0.5):
    """Choose among pictures given by the letters of their classes."""
    labels = np.array([[float(name in letters) for name in UNION] for letters in pictures])
    pixels = np.arange(len(pictures), dtype=np.uint8)[:, None, None].repeat(2, 1).repeat(2, 2)
    table = pd.DataFrame(labels, columns=list(UNION))
    rows = np.arange(len(pictures))
    images = Images(table, pixels, rows, "nih", frozenset("AB"))
    chances = pd.DataFrame({name: [probability] * len(pictures) for name in UNION})
    return choose(Predictions(images, chances, labels), UNION, count)


@pytest.mark.parametrize(
    ("pictures", "count", "chosen"),
    [
        (["A", "AB", "BC", "CDE"], 3, [3, 1, 0]),  # each adds most classes not shown yet
        (["ABCD", "AB"], 6, [1]),  # none of more than three
        (["", "A", "", "B"], 2, [1, 0]),  # the last is the first without any
        (["A", "A", "A"], 6, [0, 1, 2]),  # none twice
        (["ABCDE"], 6, []),
    ],
)
def test_pictures_show_many_classes_whatever_is_predicted(pictures, count, chosen):
    for probability in (0.1, 0.9):
        found = pick(pictures, count, probability)
        assert [int(example.image[0, 0]) for example in found] == chosen


def test_an_example_has_all_that_a_report_shows():
    (example,) = pick(["BA"], probability=0.25)
    assert (example.site, example.truth, example.labelled) == ("nih", ["A", "B"], {"A", "B"})
    assert example.predictions == dict.fromkeys(UNION, 0.25)
    assert example.image.shape == (2, 2) and example.image.dtype == np.uint8
    # Present classes are shown, however improbable and unknown to the model.
    probable = {**dict.fromkeys("abcdefg", 0.5), "Fracture": 0.125, "e": 0.75}
    image = np.zeros((2, 2), np.uint8)
    example = Example("nih", image, ["Fracture", "Hernia"], probable, {"a"})
    assert example.shown() == ["e", "a", "b", "c", "d", "Fracture", "Hernia"]
