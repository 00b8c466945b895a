"""A hospital's own csv, as its site file says it is written."""

import pytest

from cxr_study.data.labels.csv_file import TableError
from cxr_study.data.readers import table
from cxr_study.data.readers.table_layout import TableLayout

GERMAN = "Bildname;Patient-Nr;Alter;Geschlecht;Aufnahme;Datum;Pleuraerguss;Stauung\n"
LAYOUT = TableLayout(
    columns={
        "Bildname": "image",
        "Patient-Nr": "patient",
        "Alter": "age",
        "Geschlecht": "sex",
        "Aufnahme": "view",
        "Datum": "ignored",
    },
    words={"ja": "1", "Nein": "0", "k.A.": "", "w": "F", "pa stehend": "PA"},
    encoding="cp1252",
)


@pytest.fixture
def write(tmp_path):
    def write_csv(text):
        path = tmp_path / "befunde.csv"
        path.write_bytes(text.encode("cp1252"))
        return path

    return write_csv


def test_columns_words_and_encoding_are_what_the_site_says(write):
    csv = write(GERMAN + "Müller\\1.png;7;63;w;PA stehend;1.2.2020;JA;nein\n2.png;8;;m;;;0;k.a.\n")
    rows = table.read(csv, LAYOUT)
    assert list(rows) == ["image", "patient", "view", "sex", "age", "Pleuraerguss", "Stauung"]
    assert rows.iloc[0].tolist() == ["Müller/1.png", "7", "PA", "F", 63.0, 1.0, 0.0]
    assert rows["Stauung"].tolist() == [0.0, -2.0]
    assert rows["sex"].tolist() == ["F", "M"]


def test_a_path_may_be_absolute_below_the_images_folder_alone(write, tmp_path):
    csv = write(f"image,patient,Edema\n{tmp_path}/pix/p1/1.png,7,1\npix/2.png,8,0\n")
    assert table.read(csv, images=tmp_path / "x/../pix")["image"].tolist() == [
        "p1/1.png",
        "pix/2.png",
    ]
    with pytest.raises(TableError, match=r"line 2, .*below the images folder; got '/.*pix/p1/1"):
        table.read(csv, images=tmp_path / "pi")


def test_all_cells_without_meaning_are_told_at_once(write):
    csv = write(GERMAN + "1.png;7;63;x;;;ja;vielleicht\n2.png;8;alt;w;;;wohl;ja\n" * 2)
    with pytest.raises(TableError) as error:
        table.read(csv, LAYOUT)
    for part in ("'x'. (2 times)", "'vielleicht'. (2", "'alt'", "'wohl'", "In all 8 faults"):
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"Bildnam": "image"}, "key 'columns' of the site file .*got 'Bildnam', nearest.*Bildname"),
        ({"Bildname": "image"}, r"a column 'patient'.*columns: {<name>: patient}"),
        ({"Bildname": "image", "Alter": "image"}, "one column image; 'Bildname' and 'Alter' are"),
        ({}, "needs a column 'image' or 'path'"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(write, columns, message):
    with pytest.raises(TableError, match=message):
        table.read(write(GERMAN + "1;2;3;4;5;6;1;0\n"), TableLayout(columns, {}, "cp1252"))
