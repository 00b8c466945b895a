import pandas as pd

from cxr_study.data.labels.label_table import describe_one_sided

NAN = float("nan")


def test_classes_without_a_positive_or_a_negative_are_named():
    table = pd.DataFrame({
        "image": ["a", "b", "c"], "Edema": [1, 0, NAN], "Mass": [1, 0.6, NAN],
        "Hernia": [0, 0.3, 0], "Nodule": [NAN] * 3,
    })  # fmt: skip
    assert describe_one_sided(table) == [
        "Mass: no negative training image, so it would predict yes for every image",
        "Hernia: no positive training image, so it would predict no for every image",
        "Nodule: no labelled training image, so no job can train it; leave it out",
    ]
    assert describe_one_sided(table.head(0)) == []  # of a test set
