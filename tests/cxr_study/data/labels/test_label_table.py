import numpy as np

from cxr_study.data.labels.label_table import assemble, classes

DESCRIPTORS = {
    "age": np.array([50.0]),
    "image": np.array(["a.png"]),
    "patient": np.array(["1"]),
    "sex": np.array(["F"]),
    "view": np.array(["PA"]),
}


def test_columns_stand_in_the_order_of_the_contract():
    table = assemble(DESCRIPTORS, {"Mass": np.array([1.0]), "Edema": np.array([np.nan])})
    assert list(table) == ["image", "patient", "view", "sex", "age", "Mass", "Edema"]


def test_split_and_file_are_not_classes():
    table = assemble(DESCRIPTORS, {"Mass": np.array([1.0])}).assign(split="test", file="/a.png")
    assert classes(table) == ["Mass"]
