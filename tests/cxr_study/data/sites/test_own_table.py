"""What a hospital's own csv seems to be, and where its images are."""

import unicodedata

import pytest

from cxr_study.common.errors import InputError
from cxr_study.data.images.image_files import ImageError
from cxr_study.data.sites.own_table import find_csv, find_images, inspect_csv
from cxr_study.data.sites.site_file import SiteFile

HEADER = "Image;Fall;Age;Geschlecht;Datum;Erguss;Mass;Leer\n"
ROWS = "1.png;7;63;w;1.2.;ja;1;\n2.png;8;;m;2.2.;nein;0.0;\n3.png;9;041Y;w;2.3.;ja;;\n"
ROLES = {"Fall": "patient", "Geschlecht": "sex"}
WORDS = {"ja": "1", "nein": "0", "Geschlecht:w": "F"}


def inspected(csv, columns=None, words=None, blank="negative", **more):
    """Columns, label table and lines of inspecting a csv with these keys."""
    keys = {"columns": columns, "words": words, "blank": blank, **more}
    keys = {key: value for key, value in keys.items() if value is not None}
    about = {"dataset": "table", "labels": csv.name, "images": ".", "split": "s.csv"}
    return inspect_csv(SiteFile.model_validate(about | keys, context=csv.with_name("a.yaml")))


def error_of(csv, *args, **more):
    with pytest.raises(InputError) as error:
        inspected(csv, *args, **more)
    return str(error.value)


class TestInspectCsv:
    def test_a_role_is_given_or_follows_exactly_from_header_and_cells(self, write):
        columns, table, lines = inspected(write(HEADER + ROWS), ROLES, WORDS)
        ignored = {"Datum": "ignored", "Leer": "ignored"}
        assert columns == {"Image": "image", "Age": "age", **ROLES, **ignored}
        assert table["Erguss"].tolist() == [1, 0, 1] and "ignored    Leer: blank" in lines

    def test_all_missing_facts_are_asked_for_at_once(self, write):
        message = error_of(write(HEADER + ROWS.replace("2.png;8", "2.png;x")), blank=None)
        for part in (
            "(site file: columns: {<name>: patient}); 'Fall', 'Geschlecht'",
            "the meaning of the 1 blank labels: --blank negative",
            "Not used: Geschlecht ('w', 'm')", "Not used: Erguss ('ja', 'nein')",
        ):  # fmt: skip
            assert part in message
        message = error_of(write(HEADER + ROWS), ROLES, {"nein": "0"})
        assert "what 'w' in column 'Geschlecht' mean: --word 'Geschlecht:w=F'" in message
        assert "what 'ja' in column 'Erguss' mean: --word 'ja=1'" in message

    def test_what_may_be_two_things_or_is_no_class_is_asked_for(self, write):
        message = error_of(write("image,Image,who,Edema\n1.png,a/1.png,7,x\n"))
        for part in ("the image: --column", "'image', 'Image'?", "which columns are classes"):
            assert part in message

    def test_labels_next_to_a_list_are_not_passed_over(self, write):
        csv = write("image,patient,what,here\n1.png,1,Edema,1\n1.png,1,Mass,0\n")
        lists = {"column": "what", "separator": "|"}
        assert "--value 'here', or --col" in error_of(csv, findings=lists)
        assert inspected(csv, findings=lists, columns={"here": "ignored"})[1]["Mass"].sum() == 1
        valued = lists | {"value": "here"}
        assert inspected(csv, findings=valued)[1][["Edema", "Mass"]].iloc[0].tolist() == [1, 0]

    def test_reports_have_line_breaks_but_no_whole_rows(self, write):
        report = 'Lungs clear, "dry".\n\nHeart, as in 2.png: big.'.replace('"', '""')
        rows = f'1.png,1,"{report}",1\n2.png,2,"ok",0\n3.png,2,ok,0\n4.png,2,ok,0\n'
        csv = write("image,patient,report,Edema\n" + rows)
        assert inspected(csv)[1]["Edema"].tolist() == [1, 0, 0, 0]
        csv = write(csv.read_text().replace('"ok"', '"ok').replace("4.png,2,ok", '4.png,2,ok"'))
        assert "line 5, column 'report': the cell contains a whole row" in error_of(csv)

    def test_a_spreadsheets_numbering_is_left_out_and_no_finding_is_named(self, write):
        rows = "0,1.png,1,0,1\n1,2.png,2,1,0\n"
        columns, table, lines = inspected(write(",image,patient,Edema,No Finding\n" + rows))
        assert columns[""] == "ignored"
        assert "ignored    No Finding: not a class; blanks of its rows are negative" in lines
        assert list(table)[5:] == ["Edema"]


class TestFind:
    def test_the_only_csv_of_a_folder_is_found(self, tmp_path):
        (tmp_path / "a").mkdir()
        with pytest.raises(InputError, match="has none"):
            find_csv(tmp_path)
        csv = tmp_path / "a/Befunde.CSV"
        csv.touch()
        assert find_csv(tmp_path) == find_csv(csv) == csv
        (tmp_path / "b.csv").touch()
        with pytest.raises(InputError, match=r"with one; .* has .*b\.csv"):
            find_csv(tmp_path)

    def test_the_folder_of_the_images_is_the_one_that_the_csv_counts_from(self, tmp_path):
        folder = tmp_path / "x/2021/müller"
        folder.mkdir(parents=True)
        for name in ("1.png", "2.png"):
            (folder / name).touch()
        decomposed = unicodedata.normalize("NFD", "müller")
        names = [f"{decomposed}/1.png", "müller/2.png", "müller/3.png"]
        assert find_images(tmp_path, names) == (tmp_path / "x/2021", 2)
        with pytest.raises(ImageError, match=r"none of the 1 images are below .*, first z\.png"):
            find_images(tmp_path, ["z.png"])
        with pytest.raises(ImageError, match=r"only in upper and lower case, first '1\.PNG'"):
            find_images(tmp_path, ["1.PNG", "müller/2.png"], nested=True)
