from pathlib import Path

from cxr_study.data.readers.class_columns import class_columns


def test_only_the_data_sets_own_names_become_canonical():
    header = ["id", "Effusion", "Other finding"]
    of_nih = class_columns(Path("a.csv"), header, ["id"], "nih")
    of_table = class_columns(Path("a.csv"), header, ["id"], "table")
    assert of_nih == {"Effusion": "Pleural Effusion", "Other finding": "Other finding"}
    assert of_table == {"Effusion": "Effusion", "Other finding": "Other finding"}
