import gzip

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image

from cxr_study.data.sites.site_file import SiteFileError
from cxr_study.evaluation.test_split import keep, load, read

NAN = np.nan
TABLE = pd.DataFrame(
    {
        "image": ["a.png", "NA", "b, c.png", '"d".png'],
        "patient": ["007", "NA", "1e3", "nan"],
        "view": ["PA", "", "AP", "frontal"],
        "sex": ["F", "", "M", ""],
        "age": [0.1 + 0.2, NAN, 50.0, 1 / 3],
        "Mass": [1.0, 0.0, NAN, 0.0],
        "Edema": [NAN, NAN, NAN, NAN],
    }
)


class TestKept:
    def test_a_table_is_read_as_it_was_kept_bit_for_bit(self, tmp_path):
        again = read(keep(TABLE, tmp_path), tmp_path)
        pd.testing.assert_frame_equal(again, TABLE, check_exact=True)
        for name in ("age", "Mass", "Edema"):
            assert again[name].to_numpy().tobytes() == TABLE[name].to_numpy().tobytes()
        table = TABLE.assign(image=list("1234"), patient="007", view="", sex="")
        pd.testing.assert_frame_equal(read(keep(table, tmp_path), tmp_path), table)

    def test_its_key_is_of_its_content_alone(self, tmp_path):
        columns = {name: TABLE[name].tolist() for name in TABLE}
        moved = pd.DataFrame(columns, index=[9, 8, 7, 6])
        assert keep(TABLE, tmp_path / "a") == keep(moved, tmp_path / "b")

    @pytest.mark.parametrize(
        "other",
        [
            TABLE.assign(age=[0.3, NAN, 50.0, 1 / 3]),
            TABLE.assign(Mass=[1.0, 0.0, 0.0, 0.0]),
            TABLE.assign(patient=["7", "NA", "1e3", "nan"]),
            TABLE.rename(columns={"Mass": "Nodule"}),
            TABLE[::-1],
        ],
    )
    def test_other_content_has_another_and_both_are_kept(self, other, tmp_path):
        keys = [keep(table, tmp_path) for table in (TABLE, other)]
        assert len(set(keys)) == 2
        pd.testing.assert_frame_equal(read(keys[0], tmp_path), TABLE)

    def test_the_same_content_is_the_same_file_whenever_it_is_written(self, tmp_path, monkeypatch):
        keys = []
        for now in (1e9, 2e9):
            monkeypatch.setattr("time.time", lambda now=now: now)
            keys.append(keep(TABLE, tmp_path / str(now)))
        first, second = (next((tmp_path / str(now)).iterdir()) for now in (1e9, 2e9))
        assert first.read_bytes() == second.read_bytes()

    def test_one_that_is_there_is_not_written_again(self, tmp_path, monkeypatch):
        key = keep(TABLE, tmp_path)
        monkeypatch.setattr(gzip, "compress", None)
        assert keep(TABLE, tmp_path) == key

    def test_one_that_is_interrupted_is_not_there(self, tmp_path, monkeypatch):
        monkeypatch.setattr("pathlib.Path.replace", lambda path, target: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            keep(TABLE, tmp_path)
        monkeypatch.undo()
        pd.testing.assert_frame_equal(read(keep(TABLE, tmp_path), tmp_path), TABLE)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A function that writes a site of five patients, two of them for tests; one has two images."""
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
    (tmp_path / "images").mkdir()
    for number, name in enumerate("abcdef"):
        pixels = np.full((4, 4), 255, np.uint8)
        pixels[0, 0] = number
        Image.fromarray(pixels).save(tmp_path / f"images/{name}.png")
    (tmp_path / "labels.csv").write_text(
        "image,patient,view,sex,age,Mass,Edema,Hernia\n"
        "f.png,001,PA,F,50,0,0,0\n"
        "e.png,002,AP,M,60.5,-1,1,0\n"
        "d.png,003,PA,,,1,0,0\n"
        "c.png,002,PA,M,61,1,,0\n"
        "b.png,004,PA,F,40,0,1,1\n"
        "a.png,005,PA,F,40,0,1,1\n"
    )
    (tmp_path / "split.csv").write_text(
        "patient,split\n001,train\n002,test\n003,validation\n004,test\n005,train\n"
    )

    def write(**keys):
        keys = {
            "dataset": "table", "labels": "labels.csv", "images": "images", "split": "split.csv",
            "blank": "not labelled", "classes": ["Mass", "Edema"], **keys,
        }  # fmt: skip
        (tmp_path / "mayo.yaml").write_text(yaml.safe_dump(keys))
        return tmp_path / "mayo.yaml"

    return write


class TestLoad:
    def test_it_is_the_test_split_with_what_is_known_of_each_image(self, site):
        table = load(site(), ["Edema", "Mass"], 4).table
        assert list(table) == ["image", "patient", "view", "sex", "age", "Edema", "Mass"]
        assert table.astype(object).where(table.notna(), None).values.tolist() == [
            ["e.png", "002", "AP", "M", 60.5, 1, 0],
            ["c.png", "002", "PA", "M", 61, None, 1],
            ["b.png", "004", "PA", "F", 40, 1, 0],
        ]

    def test_every_row_has_its_own_pixels_whichever_images_were_decoded_first(self, site, tmp_path):
        others = "\n".join(f"00{number},unused" for number in (1, 2, 3))
        (tmp_path / "few.csv").write_text(f"patient,split\n004,test\n005,test\n{others}\n")
        load(site(split="few.csv"), ["Edema"], 4)
        test = load(site(), ["Edema"], 4)
        assert test.rows.dtype == np.int64
        assert test.pixels[test.rows][:, 0, 0].tolist() == [4, 2, 1]

        table = load(site(), ["Edema", "Hernia", "Nodule"], 4).table
        assert list(table.columns[5:]) == ["Edema"]

    def test_a_label_that_a_policy_smoothed_is_not_known(self, site):
        table = load(site(uncertain="smooth-ones"), ["Mass"], 4).table
        np.testing.assert_array_equal(table["Mass"], [NAN, 1, 0])

    def test_an_image_that_cannot_be_used_is_left_out(self, site, tmp_path):
        (tmp_path / "images/e.png").unlink()
        test = load(site(bad_images=1), ["Mass"], 4)
        assert test.table["image"].tolist() == ["c.png", "b.png"]
        assert test.pixels[test.rows][:, 0, 0].tolist() == [2, 1]

    def test_a_site_file_that_is_none_is_refused_and_else_all_images_counted(self, tmp_path, site):
        with pytest.raises(SiteFileError, match="does not exist"):
            load(tmp_path / "mayo.yaml", ["Mass"], 4)
        splits = load(site(), ["Mass"], 4).assignment["split"]
        assert splits.value_counts().to_dict() == {"test": 3, "train": 2, "validation": 1}


class TestTruth:
    """Labels kept for evaluation only, of classes that the site does not label."""

    @pytest.fixture
    def truth(self, site, tmp_path):
        """The test split of the site with a truth of some text, and its labels of Hernia, Mass."""

        def truth(text="image,Hernia,Edema\nb.png,1,0\nc.png,1,1\n"):
            (tmp_path / "truth.csv").write_text(text)
            return load(site(truth="truth.csv"), ["Edema", "Hernia", "Mass", "Nodule"], 4)

        return truth

    def test_it_is_for_the_classes_that_the_site_does_not_label(self, truth):
        split = truth()
        assert (split.site, split.labelled) == ("mayo", {"Edema", "Mass"})
        assert list(split.table.columns[5:]) == ["Edema", "Hernia", "Mass"]
        np.testing.assert_array_equal(split.labels(["Hernia"]), [[NAN], [1], [1]])
        np.testing.assert_array_equal(split.labels(["Edema"]), [[1], [NAN], [1]])
        assert np.isnan(split.labels(["Nodule"])).all()

    def test_one_without_images_is_refused(self, truth):
        with pytest.raises(SiteFileError, match=r"mayo\.yaml: key 'truth': .* has file, Hernia"):
            truth("file,Hernia\nb.png,1\n")

    @pytest.mark.parametrize("value", ["-1", "2", "yes"])
    def test_one_that_is_not_0_or_1_is_refused(self, truth, value):
        with pytest.raises(SiteFileError, match=r"need to be 0, 1 or blank; the column 'Hernia'"):
            truth(f"image,Hernia\nb.png,{value}\n")
