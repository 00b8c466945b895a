"""A hospital's own csv, as its site file says it is written."""

import pandas as pd
import pytest

from cxr_study.common.errors import InputError
from cxr_study.data.readers import table
from cxr_study.data.readers.table import normalize_id, unify_ids
from cxr_study.data.readers.table_layout import Findings, TableLayout

GERMAN = "Bildname;Patient-Nr;Alter;Geschlecht;Aufnahme;Datum;Pleuraerguss;Stauung\n"
LAYOUT = TableLayout(
    columns={"Bildname": "image", "Patient-Nr": "patient", "Alter": "age", "Geschlecht": "sex",
             "Aufnahme": "view", "Datum": "ignored"},
    words={"ja": "1", "Nein": "0", "k.A.": "", "w": "F", "pa stehend": "PA"}, encoding="cp1252",
)  # fmt: skip


def test_columns_words_and_encoding_are_what_the_site_says(write):
    text = "Müller\\1.png;7;63;w;PA stehend;1.2.2020;JA;nein\n2.png;8;;m;;;0;k.a.\n"
    rows = table.read(write(GERMAN + text, encoding="cp1252"), LAYOUT)
    assert list(rows) == ["image", "patient", "view", "sex", "age", "Pleuraerguss", "Stauung"]
    assert rows.iloc[0].tolist() == ["Müller/1.png", "7", "PA", "F", 63.0, 1.0, 0.0]
    assert rows[["Stauung", "sex"]].to_numpy().tolist() == [[0, "F"], [-2, "M"]]


def test_a_path_may_be_absolute_below_the_images_folder_alone(write, tmp_path):
    csv = write(f"image,patient,Edema\n{tmp_path}/pix/p1/1.png,7,1\npix/2.png,8,0\n")
    read = table.read(csv, images=tmp_path / "x/../pix")
    assert read["image"].tolist() == ["p1/1.png", "pix/2.png"]
    with pytest.raises(InputError, match=r"line 2, .*images folder; got '/.*pix/p1/1.*--images"):
        table.read(csv, images=tmp_path / "pi")


def test_all_cells_without_meaning_are_reported_at_once(write):
    csv = write(GERMAN + "1.png;7;63;x;;;ja;vielleicht\n2.png;8;alt;w;;;wohl;ja\n" * 2)
    with pytest.raises(InputError) as error:
        table.read(csv, LAYOUT)
    for part in ("'x'. (2 times)", "'vielleicht'. (2", "'alt'", "'wohl'", "In all 8 faults"):
        assert part in str(error.value)


@pytest.mark.parametrize(("columns", "message"), [
    ({"Bildnam": "image"}, "line 1: has no column 'Bildnam'; nearest.*Bildname"),
    ({"Bildname": "image"}, r"names the patient: .*columns: {<name>: patient}"),
    ({"Bildname": "image", "Alter": "image"}, "names the image: .*; 'Bildname', 'Alter'"),
    ({"Alter": "age"}, "which column names the image"),
])  # fmt: skip
def test_a_layout_that_does_not_fit_is_refused(write, columns, message):
    csv = write(GERMAN + "1;2;3;4;5;6;1;0\n")
    with pytest.raises(InputError, match=message):
        table.read(csv, TableLayout(columns=columns, encoding="cp1252"))


HEADER = "image,patient,found,label\n"
ROWS = "1.png,7,Edema,1\n1.png,7,Größe,0\n2.png,8,No Finding,1\n3.png,9,,\n"
LISTED = "1.png,7,{},1\n2.png,8,normal,1\n3.png,9,,1\n"
ALONE = {"Edema": [1, 0, -2]}
BOTH = ALONE | {"Größe": [1, 0, -2]}


def listing(**keys):
    words = {"o.B.": "No Finding", "entfällt": "", "Mass?": "-1"}
    listing = Findings(column="found", **keys)
    return TableLayout(words=words or {"-": ""}, encoding="cp1252", findings=listing, threshold=0.5)


@pytest.mark.parametrize(("rows", "keys", "labels"), [
    (ROWS, {"value": "label"}, ALONE | {"Größe": [0, 0, -2]}),
    (ROWS.replace(",0\n", ',"0,7"\n'), {"value": "label"}, BOTH),
    (ROWS + "2.png,8,Größe,\n", {"value": "label"}, ALONE | {"Größe": [0, 0, -2]}),
    (ROWS + "4.png,6,größe,1\n", {}, {"Edema": [1, 0, -2, -2], "Größe": [1, 0, -2, 1]}),
    (ROWS + "4.png,6,Größe,1\n", {"unlisted": "negative"}, {"Edema": [1, 0, -2, 0]}),
    (ROWS.replace("No Finding", "o.B."), {}, BOTH), (ROWS.replace("Größe", "entfällt"), {}, ALONE),
    (LISTED.format(" edema ;; Größe;"), {"separator": ";"}, BOTH),
    (LISTED.format('"Edema\r\nGröße"'), {"separator": "\n"}, BOTH),
    (LISTED.replace("normal", "['normal']").format("\"['edema', 'Größe']\""),
     {"separator": "list"}, BOTH),
])  # fmt: skip
def test_findings_that_rows_or_cells_list_are_classes(write, rows, keys, labels):
    read = table.read(write(HEADER + rows, encoding="cp1252"), listing(**keys))
    assert {name: read[name].tolist() for name in labels} == labels
    assert read["patient"].tolist() == ["7", "8", "9", "6"][: len(read)]


@pytest.mark.parametrize(("rows", "keys", "message"), [
    (ROWS + "1.png,7,Edema,0\n", {"value": "label"}, "6, .*'Edema = 0', but line 2 has 'Edema"),
    (ROWS + "2.png,8,Edema,-1\n", {"value": "label"}, "line 6.* line 4 has 'No Finding = 1'"),
    (ROWS + "1.png,8,Mass,1\n", {}, "line 6, column 'patient': got '8', but line 2 has '7'"),
    (LISTED.format("Edema|normal"), {"separator": "|"}, "line 2, .*no finding and a finding"),
    (LISTED.format("Edema|Mass"), {}, r"may list several findings; .*: --separator '\|'"),
    (LISTED.format("Edema + Mass"), {}, r"may list several findings; .*: --separator '\+'"),
    (LISTED.format("\"['Edema']\""), {"separator": ","}, "several .* --separator 'list'"),
    (LISTED.format("\"['Edema' 'Mass']\""), {"separator": "list"}, "line 2, .*needs a list"),
    (LISTED.format("mass?"), {}, "line 2, .*'mass\\?' is listed, and .* cannot mean -1"),
    (LISTED.format("Split"), {}, "line 2, .*a class cannot have the name 'Split'"),
    (LISTED.format("normal"), {}, "column 'found': no row names a finding"),
    (ROWS, {"value": "labels"}, "has no column 'labels'; nearest.* label"),
])  # fmt: skip
def test_ambiguous_lists_are_refused_by_line(write, rows, keys, message):
    with pytest.raises(InputError, match=message):
        table.read(write(HEADER + rows, encoding="cp1252"), listing(**keys))


def test_rows_that_say_the_same_count_once_and_others_of_the_image_are_refused(write):
    text = "image,patient,age,note,Mass\n1.png,7,,a,1\n2.png,8,63,b,0\n./1.png,7,,c,1.0\n"
    layout = TableLayout(columns={"note": "ignored"})
    read = table.read(write(text), layout)
    assert read[["image", "Mass"]].to_numpy().tolist() == [["1.png", 1], ["2.png", 0]]
    assert read.attrs["notes"] == ["1 rows repeat an earlier one; each counts once"]
    with pytest.raises(InputError, match="line 5, column 'Mass': got '0', but line 2 has '1' for"):
        table.read(write(text + "1.png,7,,c,0\n"), layout)


def test_a_probability_is_positive_from_a_threshold_on(write):
    csv = write('image,patient,age,Mass,Edema\n1.png,7,"63,5",0.3,"0,29"\n2.png,8,,-1,2e-05\n')
    read = table.read(csv, TableLayout(threshold=0.3))
    assert read[["age", "Mass", "Edema"]].iloc[0].tolist() == [63.5, 1, 0]
    assert read[["Mass", "Edema"]].iloc[1].tolist() == [-1, 0]


def test_a_word_may_be_of_one_column_and_an_age_may_have_dicoms_unit(write):
    csv = write("image,patient,Sex,AGE,Mass\n1.png,7,1,041Y,1\n2.png,8,2,006M,2\n")
    layout = TableLayout(words={"sex:1": "F", "Sex:2": "M", "2": "-1"})
    read = table.read(csv, layout)
    assert read[["sex", "age", "Mass"]].to_numpy().tolist() == [["F", 41, 1], ["M", 0.5, -1]]


@pytest.mark.parametrize(("patient", "short"), [
    *(("7", "7"), ("0007", "7"), ("7.0", "7"), ("007.00", "7"), ("000", "0"), ("0.0", "0")),
    *(("P07", "P07"), ("00P7", "P7"), ("7.5", "7.5"), ("1.2.0", "1.2.0"), ("70", "70")),
    *(("Mu\u0308ller", "M\u00fcller"), ("\u200b7\ufeff", "7"), ("\uff17", "7"), ("7\u00a0", "7")),
])  # fmt: skip
def test_leading_zeros_a_spreadsheets_end_and_unicodes_forms_are_no_part_of_an_id(patient, short):
    assert normalize_id(patient) == short


def test_spellings_become_the_shortest_in_any_order_and_other_ids_stay():
    table = pd.DataFrame({"patient": ["0007", "009", "P1", "p1", "7.0", "7"]})
    table.attrs["notes"] = ["before"]
    one = unify_ids(table)
    assert one["patient"].tolist() == ["7", "009", "P1", "p1", "7", "7"]
    assert unify_ids(table[::-1])["patient"].tolist()[::-1] == one["patient"].tolist()
    _, several, case = one.attrs["notes"]
    assert several.startswith("1 patients are spelt in several ways (7, 7.0, 0007), and count")
    assert case.startswith("2 patient ids differ from another only in case (P1, p1)")
    assert unify_ids(one[1:]).attrs["notes"][-1] == case
