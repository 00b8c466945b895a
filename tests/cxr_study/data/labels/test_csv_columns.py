import gzip

import pytest

from cxr_study.data.labels.csv_columns import TableError, read_columns, read_header


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
    text = "a,b\n1,\n\n  \n,\n2,\n"
    assert read_columns(write(text), ["a"]).cells.index.tolist() == [2, 6]


def test_a_line_is_where_its_row_begins(write):
    columns = read_columns(write('a,note\n1,"two\nlines"\n2,\n'), ["a"])
    assert columns.cells.index.tolist() == [2, 4]


def test_comments_before_the_header_are_passed_over_where_asked(write):
    path = write("# seed: 0\n# made by hand\na\n#1\n")
    assert read_columns(path, ["a"], comments=True).cells["a"].to_dict() == {4: "#1"}
    with pytest.raises(TableError, match="line 3: needs a column 'b'"):
        read_columns(path, ["b"], comments=True)


def test_the_header_is_all_names_stripped(write):
    assert read_header(write(" a ,b,\n1,2,3\n")) == ["a", "b", ""]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("patient,b\n", "has a header but no rows"),
        ("patients,a\n1,2\n", r"line 1: needs a column 'patient'; nearest known: patients"),
        ("a,patient\n1,2\n3\n", "line 3: the line has 1 cells, the header 2"),
        ("patient,a\n1,2\n3\n", "line 3: the line has 1 cells, the header 2"),
        ("patient,a\n1,2\n3,4,\n", "line 3: the line has 3 cells, the header 2"),
        ("patient,a,patient\n1,2,3\n", "one column 'patient'; 2 have that name"),
        ("patient\n\udcff", "cannot be read as csv in UTF-8"),
        ("patient\n1\n2\0\n", "line 3: .*NUL"),
        ('patient,a\n1,2\n3,"4\n5,6\n', "line 3: cannot be read as csv.*quote"),
        ('patient,a\n1,2\n"3,4\n5",6\n', "line 3, column 'patient': the cell has several lines"),
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


@pytest.mark.parametrize("damage", [lambda gz: gz[:-9], lambda gz: gz[:12] + b"x" + gz[13:]])
def test_a_damaged_gzip_is_refused(tmp_path, damage):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(damage(gzip.compress(b"a\n1\n2\n")))
    with pytest.raises(TableError, match=r"table\.csv\.gz"):
        read_columns(path, ["a"])


def test_two_spellings_of_one_column_are_refused(write):
    with pytest.raises(TableError, match="one column 'Gender' or 'Sex'; 2 have that name"):
        read_columns(write("Sex,Gender\nF,M\n"), [("Gender", "Sex")])


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


def test_texts_that_name_the_same_are_refused_as_one(write):
    columns = read_columns(write("a\nx/1\ny/2\nz/1\n"), ["a"])
    columns.require_unique("a")
    with pytest.raises(TableError, match="line 4, column 'a': '1' stands in line 2 already"):
        columns.require_unique("a", lambda text: text[-1])


def test_refuse_names_the_first_wrong_row(write):
    columns = read_columns(write("a\nx\n\ny\nz\n"), ["a"])
    columns.refuse(columns.cells["a"] == "w", "a", str)
    with pytest.raises(TableError, match=r"line 4, column 'a': row 1 is wrong"):
        columns.refuse(columns.cells["a"] != "x", "a", "row {} is wrong".format)
