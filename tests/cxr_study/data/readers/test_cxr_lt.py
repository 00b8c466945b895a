import pytest

from cxr_study.data.labels.csv_columns import TableError
from downloads import read_rewritten

LEADING = ["dicom_id", "subject_id", "study_id", "ViewPosition", "ViewCodeSequence_CodeMeaning"]
IMAGE = "files/p10/p10000032/s50414267/02aa.jpg"
ZEROS = dict.fromkeys(("Edema", "Mass", "No Finding", "Normal", "Round(ed) Atelectasis"), "0")
OF_2023 = [*LEADING, "path", "Edema", "Mass", "No Finding"]
OF_2024 = [*LEADING, "fpath", "Edema", "Mass", "Normal", "Round(ed) Atelectasis"]


@pytest.fixture
def read(tmp_path):
    def read(*rows, **options):
        return read_rewritten(tmp_path, "cxr-lt", *({**ZEROS, **row} for row in rows), **options)

    return read


@pytest.mark.parametrize(
    ("header", "classes"),
    [
        (OF_2023, ["Edema", "Mass"]),
        (OF_2024, ["Edema", "Mass", "Round(ed) Atelectasis"]),
        ([*LEADING, "fpath", "split", "Mass", "A finding of 2031"], ["Mass", "A finding of 2031"]),
    ],
)
def test_whatever_does_not_describe_the_image_is_a_class(read, header, classes):
    row = {"path": IMAGE, "Mass": "1", "A finding of 2031": "0"}
    table, turned = read(row, header=header), read(row, header=header[::-1])
    assert table.columns[5:].tolist() == classes
    assert table.iloc[0, :4].tolist() == [IMAGE, "10000032", "AP", ""]
    assert [name for name in classes if table.loc[0, name] == 1] == ["Mass"]
    assert turned[table.columns].equals(table)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"Mass": ""}, "column 'Mass': needs 1 or 0; got ''"),
        ({"Mass": "-1"}, "column 'Mass': needs 1 or 0; got '-1'"),
        ({"fpath": IMAGE}, "column 'path': '02aa' stands in line 2 already"),
        ({"fpath": "02aa.jpg"}, "needs a path that ends like p10/p10000032/s50414267"),
        ({"subject_id": "10000033"}, "column 'subject_id': the path is of patient 10000032; got"),
        ({"subject_id": "10000032.0"}, "column 'subject_id': needs a number, digits only"),
    ],
)
def test_a_bad_cell_is_refused_by_file_line_and_column(read, bad, message):
    with pytest.raises(TableError, match=rf"labels\.csv, line 3, .*{message}"):
        read({}, {"fpath": IMAGE.replace("02aa", "b")} | bad)


def test_a_file_without_labels_or_with_two_paths_is_refused(read):
    with pytest.raises(TableError, match="line 1: needs columns with labels"):
        read({}, header=[*LEADING, "path"])
    with pytest.raises(TableError, match="needs one column 'path' or 'fpath'"):
        read({}, header=[*OF_2023, "fpath"])
