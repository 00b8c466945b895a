import numpy as np

from cxr_study.data.labels.label_table import assemble, classes


def test_columns_stand_in_the_order_of_the_contract_and_what_is_added_is_no_class():
    labels = {"Mass": np.array([1.0, 0.0]), "Edema": np.array([np.nan, 1.0])}
    images = np.array(["a.png", "b.png"])
    table = assemble(labels, age=np.array([50.0, 60.0]), view="PA", patient=images, image=images)
    assert list(table) == ["image", "patient", "view", "sex", "age", "Mass", "Edema"]
    assert table.iloc[1, :5].tolist() == ["b.png", "b.png", "PA", "", 60.0]
    assert classes(table.assign(split="test", file="/a.png")) == ["Mass", "Edema"]
