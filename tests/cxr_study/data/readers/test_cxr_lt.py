import pytest

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.labels.vocabulary import UNION_CLASSES
from cxr_study.data.readers import cxr_lt

LEADING = ["dicom_id", "subject_id", "study_id", "ViewPosition", "ViewCodeSequence_CodeMeaning"]
SIX = [  # of the 26, beyond the 20 classes of the study
    "Calcification of the Aorta",
    "No Finding",
    "Pneumomediastinum",
    "Pneumoperitoneum",
    "Subcutaneous Emphysema",
    "Tortuous Aorta",
]
OF_2023 = [*LEADING, "path", *sorted([*UNION_CLASSES, *SIX])]
OF_2024 = [
    *LEADING,
    "fpath",
    *sorted([*UNION_CLASSES, *SIX, "Adenopathy", "Round(ed) Atelectasis"]),
]
OF_2024[OF_2024.index("No Finding")] = "Normal"
IMAGE = "files/p10/p10000032/s50414267/02aa.jpg"
TYPICAL = {
    "dicom_id": "02aa",
    "subject_id": "10000032",
    "study_id": "s50414267",
    "ViewPosition": "AP",
    "path": IMAGE,
    "fpath": IMAGE,
}


@pytest.fixture
def read(tmp_path):
    def read_rows(*rows, header=OF_2023):
        path = tmp_path / "train.csv"
        lines = [",".join((TYPICAL | row).get(name, "0") for name in header) for row in rows]
        path.write_text("\n".join([",".join(header), *lines]) + "\n")
        return cxr_lt.read(path)

    return read_rows


def test_a_row_of_2023_becomes_a_row_of_the_label_table(read):
    table = read({"Mass": "1"})
    assert list(table) == [
        "image", "patient", "view", "sex", "age",
        *(name for name in OF_2023[6:] if name != "No Finding"),
    ]  # fmt: skip
    assert table.iloc[0, :4].tolist() == [IMAGE, "10000032", "AP", ""]
    assert [name for name in table.columns[5:] if table.loc[0, name] == 1] == ["Mass"]


def test_2024_calls_the_path_fpath_and_no_finding_normal(read):
    table = read({"Adenopathy": "1"}, header=OF_2024)
    assert table["image"].tolist() == [IMAGE]
    assert "Normal" not in table
    assert table[["Adenopathy", "Round(ed) Atelectasis", "Mass"]].to_numpy().tolist() == [[1, 0, 0]]


def test_whatever_does_not_describe_the_image_is_a_label(read):
    table = read({}, header=[*LEADING, "fpath", "split", "Bulla", "A finding of 2031"])
    assert table.columns[5:].tolist() == ["Bulla", "A finding of 2031"]


def test_labels_in_another_order_are_found_by_name(read):
    row = {"Nodule": "1", "Mass": "0"}
    table = read(row, header=OF_2024)
    assert read(row, header=OF_2024[::-1])[table.columns].equals(table)


def test_laterals_are_kept_with_their_view(read):
    assert read({"ViewPosition": "LL"})["view"].tolist() == ["lateral"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"Mass": ""}, "column 'Mass': needs 1 or 0; got ''"),
        ({"Mass": "-1"}, "column 'Mass': needs 1 or 0; got '-1'"),
        ({"path": IMAGE}, "column 'path': '02aa' stands in line 2 already"),
        (
            {"path": "02aa.jpg"},
            "column 'path': needs a path that ends like p10/p10000032/s50414267",
        ),
        ({"subject_id": "10000033"}, "column 'subject_id': the path is of patient 10000032; got"),
        ({"subject_id": "10000032.0"}, "column 'subject_id': needs a number, digits only"),
    ],
)
def test_a_bad_cell_is_refused_by_file_line_and_column(read, bad, message):
    with pytest.raises(TableError, match=rf"train\.csv, line 3, {message}"):
        read({}, {"path": IMAGE.replace("02aa", "b")} | bad)


def test_a_list_of_images_without_labels_is_refused(read):
    with pytest.raises(TableError, match="line 1: needs columns with labels"):
        read({}, header=[*LEADING, "path"])


def test_both_paths_at_once_are_refused(read):
    with pytest.raises(TableError, match="needs one column 'path' or 'fpath'"):
        read({}, header=[*OF_2023, "fpath"])
