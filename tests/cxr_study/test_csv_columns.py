import gzip

import pytest

from cxr_study.csv_columns import TableError, read_columns


@pytest.fixture
def write(tmp_path):
    def write_csv(text):
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode())
        return path

    return write_csv


def test_columns_are_found_by_name_and_stripped(write):
    columns = read_columns(write("a,b,c\n1, 2 ,3\n"), ["c", "b"])
    assert columns.cells.to_dict("list") == {"c": ["3"], "b": ["2"]}


def test_other_spelling_is_read_under_the_first(write):
    assert list(read_columns(write("Sex\nF\n"), [("Gender", "Sex")]).cells) == ["Gender"]


def test_byte_order_mark_and_windows_line_ends_do_not_matter(write):
    assert read_columns(write("\ufeffa,b\r\n1,2\r\n"), ["a", "b"]).cells["a"].tolist() == ["1"]


def test_gzip_is_read(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress("\ufeffa\n1\n".encode()))
    assert read_columns(path, ["a"]).cells["a"].tolist() == ["1"]


def test_lines_are_those_of_the_file_blank_ones_counted(write):
    assert read_columns(write("a\n1\n\n2\n\n"), ["a"]).cells.index.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("patient,b\n", "has a header but no rows"),
        ("patients,a\n1,2\n", r"line 1: needs a column 'patient'; nearest known: patients"),
        ("a,patient\n1,2\n3\n", r"line 3, column 'patient': the line ends after 1 of 2 cells"),
        ("patient\n\x00\udcff", "cannot be read as csv"),
    ],
)
def test_a_file_without_what_is_needed_is_refused(tmp_path, text, message):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(TableError, match=message):
        read_columns(path, ["patient"])


def test_a_file_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(TableError, match=r"none\.csv cannot be read"):
        read_columns(tmp_path / "none.csv", ["a"])


def test_a_gzip_that_is_none_is_refused(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_text("a\n1\n")
    with pytest.raises(TableError, match=r"table\.csv\.gz cannot be read"):
        read_columns(path, ["a"])


def test_decode_names_the_first_cell_without_meaning(write):
    columns = read_columns(write("a\n1\nx\n2\nx\n"), ["a"])
    with pytest.raises(TableError, match=r"table\.csv, line 3, column 'a': .*'x'"):
        columns.decode("a", float)


def test_decode_keeps_the_rows_in_order(write):
    columns = read_columns(write("a\n2\n1\n2\n"), ["a"])
    assert columns.decode("a", float).tolist() == [2, 1, 2]
    assert columns.decode("a", lambda text: (float(text), 0.0)).tolist() == [[2, 0], [1, 0], [2, 0]]


def test_a_repeated_text_is_refused_at_the_second_line(write):
    columns = read_columns(write("a\nx\ny\nx\n"), ["a"])
    with pytest.raises(TableError, match="line 4, column 'a': 'x' stands in line 2 already"):
        columns.require_unique("a")
