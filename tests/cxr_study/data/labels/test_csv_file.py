"""Csv files in the forms that hospitals' programs write."""

import pytest

from cxr_study.common.errors import InputError
from cxr_study.data.labels.csv_columns import read_columns
from cxr_study.data.labels.csv_file import open_csv

TEXT = "Name;Größe, cm\nMüller;1,5\nŁódź;2\n"


@pytest.fixture
def write(tmp_path):
    def write_csv(content):
        path = tmp_path / "t.csv"
        path.write_bytes(content)
        return path

    return write_csv


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_unicode_is_read_by_its_mark_and_semicolons_by_the_header_though_cells_have_commas(
    write, encoding
):
    columns = read_columns(write(TEXT.encode(encoding)), ["Name", "Größe, cm"])
    assert columns["Name"].tolist() == ["Müller", "Łódź"]
    assert columns["Größe, cm"].tolist() == ["1,5", "2"]


def test_another_encoding_is_read_when_named_and_else_refused_with_place_and_cure(write):
    path = write(TEXT.replace("Łódź", "Åse").encode("cp1252"))
    assert open_csv(path, encoding="cp1252").header == ["Name", "Größe, cm"]
    with pytest.raises(InputError, match=r"UTF-8: line 1 has the byte 0xf6, .*'Grö'.*cp1252\)"):
        open_csv(path)
    with pytest.raises(InputError, match=r"in cp1252: line 2 has the byte 0x81"):
        open_csv(write(b"a\n\x81\n"), encoding="cp1252")


def test_tabs_separate_cells_and_a_header_of_one_name_is_one_column(write):
    assert open_csv(write(b"a b\tc,d\n1\t2\n")).header == ["a b", "c,d"]
    assert open_csv(write(b"a b\n1\n")).header == ["a b"]


def test_what_separates_cells_is_not_guessed(write):
    with pytest.raises(InputError, match="line 1: the header has commas and semicolons"):
        open_csv(write(b"a,b;c\n1,2;3\n"))
    assert open_csv(write(b'a,"b;c"\n1,2\n')).header == ["a", "b;c"]


def test_a_workbook_is_no_csv(write):
    with pytest.raises(InputError, match="is a workbook, no csv; save"):
        open_csv(write(b"PK\x03\x04..."))


def test_an_encoding_that_the_file_is_not_in_is_refused(write):
    with pytest.raises(InputError, match="is not in utf-16; leave --encoding out"):
        open_csv(write(b"image,patient,Edema\n"), encoding="utf-16")


def test_excels_line_about_the_separator_is_no_header(write):
    file = open_csv(write(b"sep=;\r\na,b;c\r\n1;2\r\n"))
    assert (file.header, file.line, file.lines().tolist()) == (["a,b", "c"], 2, [3])
