"""What a hospital's own csv seems to be, and where its images are."""

import unicodedata

import pytest

from cxr_study.data.labels.csv_file import TableError
from cxr_study.data.readers.table_layout import Findings, TableLayout
from cxr_study.data.sites.own_table import OwnTableError, find_csv, find_images, look

GERMAN = """Bildname;Patient-Nr;Alter;Geschlecht;Aufnahme;Datum;Befund;Erguss;Größe
Müller_1.png;7;63;w;p.a.;01.02.2021;kein Erguss;ja;nein
Müller_2.png;7;64;w;seitlich;02.02.2021;Erguss links;JA;
Müller_3.png;8;40;m;a.p.;03.02.2021;unauffällig;nein;fraglich
Müller_4.png;9;41;M;PA;04.02.2021;nichts;nein;ja
Müller_5.png;9;41;M;PA;05.02.2021;o.B.;nein;ja
Müller_6.png;9;41;M;PA;06.02.2021;o. B.;nein;ja
Müller_7.png;9;41;M;PA;07.02.2021;ohne;nein;ja
"""


@pytest.fixture
def write(tmp_path):
    def write_csv(text, encoding="utf-8"):
        path = tmp_path / "befunde.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write_csv


def seen(csv, columns=None, words=None, encoding=None, **more):
    return look(csv, TableLayout(columns or {}, words or {}, encoding, **more))


class TestLook:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
    def test_columns_words_and_encoding_are_found(self, write, encoding):
        table = seen(write(GERMAN, encoding))
        assert table.columns == {
            "Bildname": "image",
            "Patient-Nr": "patient",
            "Alter": "age",
            "Geschlecht": "sex",
            "Aufnahme": "view",
            "Datum": "ignored",
            "Befund": "ignored",
        }
        assert table.positives == {"Erguss": 2, "Größe": 4}
        assert table.words == {
            **{"w": "F", "p.a.": "PA", "a.p.": "AP", "seitlich": "lateral"},
            **{"ja": "1", "JA": "1", "nein": "0", "fraglich": "-1"},
        }
        assert (table.rows, table.blank, table.separator) == (7, 1, "semicolons")
        assert (not table.missing, not table.unknown) == (True, True)
        assert table.encoding == (encoding if encoding == "cp1252" else None)
        assert table.shown == (["Größe", "Müller_1", "Müller_2"] if table.encoding else [])
        assert table.images[0] == "Müller_1.png"

    def test_what_a_person_says_comes_first(self, write):
        csv = write(GERMAN.replace("ja", "weiß nicht"))
        assert seen(csv).unknown == {"Größe": ["weiß nicht"], "Erguss": ["weiß nicht", "JA"][:1]}
        table = seen(csv, {"Aufnahme": "ignored"}, {"weiß nicht": "-1"})
        assert table.columns["Aufnahme"] == "ignored"
        assert table.words["weiß nicht"] == "-1"
        assert not table.unknown
        with pytest.raises(OwnTableError, match="no column 'Bild'; its columns are Bildname, Pati"):
            seen(csv, {"Bild": "image"})

    def test_what_may_be_two_things_is_asked_for(self, write):
        csv = write("file,path,who,Edema\n1.png,a/1.png,1,0\n")
        assert seen(csv).missing == {
            "image": ["file", "path"],
            "patient": ["file", "path", "who", "Edema"],
        }

    def test_labels_that_nobody_explains_are_not_taken_for_something_else(self, write):
        csv = write("image,patient,sex,Edema,Score\n1.png,1,x,3,0.25\n2.png,2,F,2,0.5\n")
        table = seen(csv)
        assert table.unknown == {"sex": ["x"], "Edema": ["3", "2"]}
        assert table.columns["Score"] == "ignored"

    def test_probabilities_are_no_words_and_a_list_leaves_the_other_columns_out(self, write):
        rows = "".join(f"{i}.png,{i},Edema|Wasser,0.{i},0.{99 - i}\n" for i in range(10, 30))
        csv = write("image,patient,what,Mass,Score\n" + rows)
        table = seen(csv, threshold=0.2)
        assert (table.positives, table.unknown) == ({"Mass": 10, "Score": 20}, {})
        lists = Findings(column="what", separator="|")
        table = seen(csv, words={"nichts": "No Finding"}, findings=lists)
        assert table.positives == {"Edema": 20, "Wasser": 20}
        assert (table.columns["Mass"], table.words) == ("ignored", {"nichts": "No Finding"})

    def test_labels_beside_a_list_are_not_passed_over(self, write):
        csv = write("image,patient,what,here\n1.png,1,Edema,1\n1.png,1,Mass,0\n")
        lists = Findings(column="what", separator="|")
        with pytest.raises(OwnTableError, match=r"'here' has labels beside .* --value 'here'"):
            seen(csv, findings=lists)
        assert seen(csv, findings=lists, columns={"here": "ignored"}).positives["Mass"] == 1
        valued = lists.model_copy(update={"value": "here"})
        assert seen(csv, findings=valued).positives == {"Edema": 1, "Mass": 0}

    def test_reports_have_line_breaks_but_no_whole_rows(self, write):
        report = 'Lungs clear, "dry".\n\nHeart, as in 2.png: big.'.replace('"', '""')
        rows = f'1.png,1,"{report}",1\n2.png,2,"ok",0\n3.png,2,ok,0\n4.png,2,ok,0\n'
        csv = write("image,patient,report,Edema\n" + rows)
        assert (seen(csv).rows, seen(csv).positives) == (4, {"Edema": 1})
        csv = write(csv.read_text().replace('"ok"', '"ok').replace("4.png,2,ok", '4.png,2,ok"'))
        with pytest.raises(TableError, match="line 5, column 'report': the cell has a whole row"):
            seen(csv)

    def test_a_spreadsheets_numbering_is_left_out(self, write):
        table = seen(write(",image,patient,Edema\n0,1.png,1,0\n1,2.png,2,1\n"))
        assert table.columns[""] == "ignored"

    @pytest.mark.parametrize("encoding", ["cp1251", "gbk"])
    def test_other_alphabets_are_not_taken_for_western_ones(self, write, encoding):
        word = {"cp1251": "Пневмония", "gbk": "胸腔积液肺不张"}[encoding]
        csv = write(f"image,patient,{word}\n1.png,1,0\n", encoding)
        with pytest.raises(TableError, match="cannot be read as csv in UTF-8"):
            seen(csv)
        assert list(seen(csv, encoding=encoding).positives) == [word]


class TestFind:
    def test_the_only_csv_of_a_folder_is_found(self, tmp_path):
        (tmp_path / "a").mkdir()
        with pytest.raises(OwnTableError, match="it has none"):
            find_csv(tmp_path)
        csv = tmp_path / "a/Befunde.CSV"
        csv.touch()
        assert find_csv(tmp_path) == find_csv(csv) == csv
        (tmp_path / "b.csv").touch()
        with pytest.raises(OwnTableError, match=r"or the csv itself; .*it has .*b\.csv"):
            find_csv(tmp_path)

    def test_the_folder_of_the_images_is_the_one_that_the_csv_counts_from(self, tmp_path):
        folder = tmp_path / "x/2021/müller"
        folder.mkdir(parents=True)
        for name in ("1.png", "2.png"):
            (folder / name).touch()
        decomposed = unicodedata.normalize("NFD", "müller")
        names = [f"{decomposed}\\1.png", "./müller/2.png", "müller/3.png"]
        assert find_images(tmp_path, names) == (tmp_path / "x/2021", 2)
        with pytest.raises(OwnTableError, match=r"none of the 1 images lie below .*, first z\.png"):
            find_images(tmp_path, ["z.png"])
