import gzip

import pytest

from cxr_study.common.errors import InputError
from cxr_study.data.labels.csv_columns import open_csv, read_columns

TEXT = "Name;Größe, cm\nMüller;1,5\nŁódź;2\n"


@pytest.mark.parametrize(("text", "cells"), [
    ("a,b,c\n1, 2 ,3\n", {2: ["3", "2"]}), ("\ufeffa,b,c\r\n1,2,3\r\n", {2: ["3", "2"]}),
    ("a,B,c\n1,2,3\n", {2: ["3", "2"]}),
    ("a,b,c\n,,1\n\n  ,,\n,,\n,,2\n", {2: ["1", ""], 6: ["2", ""]}),
    ('a,b,c\n"two\nlines",2,3\n,4,5\n', {2: ["3", "2"], 4: ["5", "4"]}),
], ids=["stripped", "byte order mark", "other spelling", "blank lines",
        "a line of two"])  # fmt: skip
def test_columns_are_found_by_name_and_rows_by_the_line_where_they_begin(write, text, cells):
    for path in (write(text), write(gzip.compress(text.encode()), "table.csv.gz")):
        columns = read_columns(path, ["c", ("b", "B")])
        assert columns.cells.T.to_dict("list") == cells and list(columns.cells) == ["c", "b"]


def test_cells_of_columns_that_may_have_line_breaks_do(write):
    path = write('a,b\n1,"x;\n\ny,;"\n2,z\n')
    columns = read_columns(path, ["a", "b"], several_lines=["b"])
    assert columns["b"].to_dict() == {2: "x;\n\ny,;", 5: "z"}
    with pytest.raises(InputError, match="line 2, column 'b': the cell has several lines"):
        read_columns(path, ["a", "b"])
    assert open_csv(write('a;"b\n,c"\n1;2\n')).header == ["a", "b\n,c"]


def test_the_header_is_all_names_stripped_and_comments_before_it_are_skipped(write):
    text = ' a ,b,,"two\r\nlines"\n1,2,3,4\n'
    for path in (write(text), write(gzip.compress(text.encode()), "table.csv.gz")):
        assert open_csv(path).header == ["a", "b", "", "two\r\nlines"]
    assert open_csv(write("# seed: 0,b\n1,2\n")).header == ["# seed: 0", "b"]
    path = write("# seed: 0\n# made by hand\na\n#1\n")
    file = open_csv(path, comments=True)
    assert read_columns(file, ["a"])["a"].to_dict() == {4: "#1"}
    with pytest.raises(InputError, match="line 3: needs a column 'b'"):
        read_columns(file, ["b"])


@pytest.mark.parametrize(("text", "message"), [
    ("", "is empty"), ("patient,b\n", "has a header but no rows"),
    ("patients,a\n1,2\n", r"line 1: needs a column 'patient'; nearest known: patients"),
    ("a,patient\n1,2\n3\n", "line 3: the line has 1 cells, the header 2"),
    ("patient,a\n1,2\n3,4,\n", "line 3: the line has 3 cells, the header 2"),
    ("patient,a,patient\n1,2,3\n", "one column 'patient'; 2 have that name"),
    (b"patient\n\xff", "cannot be read as csv in UTF-8"), ("patient\n1\n2\0\n", "line 3: .*NUL"),
    ('patient,a\n1,2\n3,"4\n5,6\n', "line 3: cannot be read as csv.*quote"),
    ('patient,a\n1,2\n"3,4\n5",6\n', "line 3, column 'patient': the cell has several lines"),
    ("PK\x03\x04...", "is a workbook, not a csv; save"),
])  # fmt: skip
def test_a_file_without_what_is_needed_is_refused(write, text, message):
    with pytest.raises(InputError, match=message):
        read_columns(write(text), ["patient"])


@pytest.mark.parametrize("content", [
    b"a\n1\n", gzip.compress(b"a\n1\n2\n")[:-9], gzip.compress(b"a\n1\n")[:12] + b"x",
], ids=["no gzip", "cut off", "damaged"])  # fmt: skip
def test_a_missing_file_and_a_damaged_gzip_are_refused(write, tmp_path, content):
    with pytest.raises(InputError, match=r"none\.csv cannot be read"):
        read_columns(tmp_path / "none.csv", ["a"])
    with pytest.raises(InputError, match=r"table\.csv\.gz cannot be read"):
        read_columns(write(content, "table.csv.gz"), ["a"])


def test_decode_keeps_the_rows_in_order_and_names_the_first_cell_without_meaning(write):
    columns = read_columns(write("a\n1\nx\n2\nx\n"), ["a"])
    with pytest.raises(InputError, match=r"table\.csv, line 3, column 'a': .*'x'"):
        columns.decode("a", float)
    columns = read_columns(write("a\n2\n1\n2\n"), ["a"])
    assert columns.decode("a", float).tolist() == [2, 1, 2]
    assert columns.decode("a", lambda text: (float(text), 0.0)).tolist() == [[2, 0], [1, 0], [2, 0]]


def test_the_first_wrong_row_is_refused_and_so_is_a_text_that_stands_twice(write):
    columns = read_columns(write("a\nx/1\n\ny/2\nz/1\n"), ["a"])
    columns.require_unique("a")
    with pytest.raises(InputError, match="line 5, column 'a': '1' is already in line 2"):
        columns.require_unique("a", columns.decode("a", lambda text: text[-1]))
    cells = columns["a"].to_numpy()
    columns.refuse(cells == "w", "a", "")
    with pytest.raises(InputError, match=r"line 4, column 'a': y/2, row 1, is wrong\nIn all 2 f"):
        columns.refuse(cells != "x/1", "a", "{}, row {}, is wrong", cells, range(3))


def test_all_wrong_cells_of_all_columns_are_listed_by_line_the_first_twenty_and_a_count(write):
    def meaning(text):
        if not text.isdigit():
            raise ValueError(f"needs digits; got '{text}'.")
        return int(text)

    columns = read_columns(write("a,b\n1,x\ny,1\n2,x\n"), ["a", "b"])
    with pytest.raises(InputError) as error:
        columns.decode_all({"a": meaning, "b": meaning})
    assert str(error.value).split("\n") == [
        f"{columns.path}, line 2, column 'b': needs digits; got 'x'.",
        "In all 3 faults:",
        "  line 2, column 'b': needs digits; got 'x'. (2 times)",
        "  line 3, column 'a': needs digits; got 'y'.",
    ]
    columns = read_columns(write("a\n" + "".join(f"x{i}\n" for i in range(30))), ["a"])
    with pytest.raises(InputError) as error:
        columns.decode("a", meaning)
    _, first, *lines, last = str(error.value).split("\n")
    assert (first, len(lines), last) == ("In all 30 faults:", 20, "  and 10 more")


def test_a_pattern_gives_the_groups_of_all_cells_or_names_those_it_does_not_match(write):
    columns = read_columns(write("a\np1/s2\n\np3/s4\n"), ["a"])
    found = columns.match("a", r"p(\d)/s(\d)", "a path")
    assert [texts.tolist() for texts in found] == [["1", "3"], ["2", "4"]]
    with pytest.raises(InputError, match="line 4, column 'a': needs p1; got 'p3/s4'"):
        columns.match("a", r"(p1)/(s\d)", "p1")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_unicode_is_read_by_its_mark_and_semicolons_by_the_header_despite_commas(write, encoding):
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
    with pytest.raises(InputError, match="is not in utf-16; leave --encoding out"):
        open_csv(write(b"image,patient,Edema\n"), encoding="utf-16")


def test_what_separates_cells_is_in_the_header_and_not_guessed(write):
    assert open_csv(write(b"a b\tc,d\n1\t2\n")).header == ["a b", "c,d"]
    assert open_csv(write(b"a b\n1\n")).header == ["a b"]
    assert open_csv(write(b'a,"b;c"\n1,2\n')).header == ["a", "b;c"]
    with pytest.raises(InputError, match="line 1: the header has commas and semicolons"):
        open_csv(write(b"a,b;c\n1,2;3\n"))


def test_excels_line_about_the_separator_is_no_header(write):
    file = open_csv(write(b"sep=;\r\na,b;c\r\n1;2\r\n"))
    assert (file.header, read_columns(file, ["c"]).cells.index[0]) == (["a,b", "c"], 3)
