import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.labels.vocabulary import NIH_CLASSES
from cxr_study.data.readers import nih
from downloads import read_rewritten

METADATA = Path(__file__).parents[4].parent / "shared/data/nih-metadata"
V2020 = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
).split(",")


@pytest.fixture
def read(tmp_path):
    return partial(read_rewritten, tmp_path, "nih")


@pytest.mark.parametrize("header", [V2020, [*V2020, ""], V2020[::-1]])
def test_commas_in_the_header_or_at_the_end_of_the_lines_shift_no_column(read, header):
    table = read({}, {"Image Index": "b", "Finding Labels": "Effusion|Pleural_Thickening|Mass"},
                 {"Image Index": "c", "Finding Labels": "No Finding"}, header=header)  # fmt: skip
    assert table.iloc[0, :5].tolist() == ["00000001_000.png", "1", "PA", "M", 58.0]
    present = [[name for name in NIH_CLASSES if row[name] == 1] for _, row in table.iterrows()]
    assert present == [
        ["Cardiomegaly", "Pleural Effusion"],
        ["Mass", "Pleural Effusion", "Pleural Thickening"],
        [],
    ]
    assert table[list(NIH_CLASSES)].isin([0, 1]).all(axis=None)


@pytest.mark.parametrize(
    ("column", "field", "meanings"),
    [
        ("Patient ID", "patient", {"00000013": "13", "13": "13", "0": "0"}),
        ("Patient Age", "age", {"057": 57, "058Y": 58, "006M": 0.5, "073D": 0.2, "120": 120}),
        ("Patient Age", "age", {"414": math.nan, "148Y": math.nan, "": math.nan}),
        ("Patient Gender", "sex", {"": "", "F": "F"}),
        ("View Position", "view", {"LL": "frontal", "AP": "AP"}),
    ],
)
def test_cells_mean(read, column, field, meanings):
    rows = [{"Image Index": f"{i}.png", column: text} for i, text in enumerate(meanings)]
    np.testing.assert_equal(read(*rows)[field].tolist(), list(meanings.values()))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"Finding Labels": "Masss"}, "column 'Finding Labels': 'Masss' .*nearest known: Mass"),
        ({"Finding Labels": "Lung Opacity"}, "'Lung Opacity' is not an NIH finding"),
        ({"Finding Labels": "No Finding|Mass"}, "'No Finding' is not an NIH finding"),
        ({"Finding Labels": ""}, "column 'Finding Labels': '' is not an NIH finding"),
        ({"Patient ID": ""}, "column 'Patient ID': needs a number, digits only .*; got ''"),
        ({"Patient ID": "1.0"}, "column 'Patient ID': needs a number, .* got '1.0'"),
        ({"Image Index": ""}, "column 'Image Index': the cell is blank"),
        ({"Image Index": "a.png"}, "column 'Image Index': 'a.png' stands in line 2 already"),
        ({"Patient Age": "old"}, "column 'Patient Age': needs a number of years, .* got 'old'"),
    ],
)
def test_a_bad_cell_is_refused_by_file_line_and_column(read, bad, message):
    with pytest.raises(TableError, match=rf"labels\.csv, line 3, .*{message}"):
        read({"Image Index": "a.png"}, {"Image Index": "b.png"} | bad)


def test_patient_sex_is_patient_gender_and_one_of_them_is_needed(read):
    header = ["Patient Sex" if name == "Patient Gender" else name for name in V2020]
    assert read({"Patient Sex": "F"}, header=header)["sex"].tolist() == ["F"]
    with pytest.raises(TableError, match="needs a column 'Patient Gender' or 'Patient Sex'"):
        read({}, header=[name for name in V2020 if name != "Patient Gender"])


@pytest.fixture
def lists(tmp_path):
    def read_lists(train_val, test):
        for name, text in (("train_val_list.txt", train_val), ("test_list.txt", test)):
            (tmp_path / name).write_bytes(text.encode())
        return nih.official_lists(tmp_path / "train_val_list.txt", tmp_path / "test_list.txt")

    return read_lists


@pytest.mark.parametrize(("start", "end"), [("", "\n"), ("", "\r\n"), ("\ufeff", "\n")])
def test_official_lists_have_a_name_per_line_and_no_header(lists, start, end):
    table = lists(start + end.join(["b.png", "a.png", ""]), "c.png")
    assert table.to_dict("list") == {
        "image": ["b.png", "a.png", "c.png"],
        "part": ["train_val", "train_val", "test"],
    }


@pytest.mark.parametrize(
    ("train_val", "test", "message"),
    [
        ("a\nb\na\n", "c\n", r"train_val_list\.txt, line 3: 'a' stands in .*list\.txt, line 1"),
        ("a\n", "c\na\n", r"test_list\.txt, line 2: 'a' stands in .*train_val_list\.txt, line 1"),
        ("a\n", "", r"test_list\.txt is empty"),
        ("a\n\nb\n", "c\n", r"train_val_list\.txt, line 2: the line is blank"),
    ],
)
def test_lists_that_are_no_partition_are_refused(lists, tmp_path, train_val, test, message):
    with pytest.raises(TableError, match=r"none\.txt cannot be read"):
        nih.official_lists(tmp_path / "none.txt", tmp_path / "none.txt")
    with pytest.raises(TableError, match=message):
        lists(train_val, test)


@pytest.mark.data
@pytest.mark.skipif(not METADATA.is_dir(), reason=f"no NIH metadata in {METADATA}")
def test_the_official_files_have_the_official_counts_and_part_patients():
    table = nih.read(METADATA / "Data_Entry_2017_v2020.csv.gz")
    assert (len(table), table["patient"].nunique()) == (112_120, 30_805)
    assert table["view"].value_counts().to_dict() == {"PA": 67_310, "AP": 44_810}
    assert (table["age"].min(), table["age"].max()) == (0, 95)
    assert (table[list(NIH_CLASSES)].sum(axis=1) == 0).sum() == 60_361
    assert table[list(NIH_CLASSES)].sum().to_dict() == {
        "Infiltration": 19_894, "Pleural Effusion": 13_317, "Atelectasis": 11_559,
        "Nodule": 6_331, "Mass": 5_782, "Pneumothorax": 5_302, "Consolidation": 4_667,
        "Pleural Thickening": 3_385, "Cardiomegaly": 2_776, "Emphysema": 2_516, "Edema": 2_303,
        "Fibrosis": 1_686, "Pneumonia": 1_431, "Hernia": 227,
    }  # fmt: skip
    parts = nih.official_lists(METADATA / "train_val_list.txt", METADATA / "test_list.txt")
    assert parts["part"].value_counts().to_dict() == {"train_val": 86_524, "test": 25_596}
    assert sorted(parts["image"]) == sorted(table["image"])
    part = table["image"].map(parts.set_index("image")["part"])
    assert (table["patient"].groupby(part).nunique().sum()) == 30_805
