import numpy as np
import pytest

from cxr_study.common.errors import InputError
from cxr_study.data.images.image_store import ImageError
from cxr_study.data.sites.site_data import check_disjoint, load_images, load_labels, prepare
from cxr_study.data.sites.site_file import read_site_file
from dicom_files import dataset, written
from site_files import COLUMNS, ROWS, write_data, write_site


@pytest.fixture
def labels(cache, tmp_path):
    """Loads the labels of a site file with other keys."""
    write_data(tmp_path)
    return lambda name="a", **keys: load_labels(read_site_file(write_site(tmp_path, name, **keys)))


class TestLabels:
    def test_the_site_sees_its_own_classes_with_split_and_file(self, labels, tmp_path):
        loaded = labels(classes=["Edema", "Mass"])
        assert list(loaded.table.columns[5:]) == ["Edema", "Mass", "split", "file"]
        assert loaded.table[["image", "Edema", "Mass", "split"]].values.tolist() == [
            ["a.png", 0, 1, "train"], ["b.png", 0, 0, "test"], ["d.png", 1, 0, "train"],
        ]  # fmt: skip
        assert loaded.table.loc[0, "file"] == str(tmp_path / "images/a.png")
        # The table as read keeps every row, class and state.
        assert loaded.read["image"].tolist() == ["a.png", "b.png", "c.png", "d.png"]
        assert loaded.read["Edema"].tolist() == [-1, -2, 0, 1]
        assert "Left effusion" in loaded.read

    def test_views_merges_and_policy_are_applied(self, labels):
        assert len(labels(views="all").table) == 4
        merged = labels(merges={"Effusion": ["Left effusion", "Right effusion"]}).table
        assert list(merged.columns[5:8]) == ["Mass", "Edema", "Effusion"]
        assert merged["Effusion"].tolist() == [1, 0, 0]
        ones = labels(uncertain={"Edema": "ones"}, blank="not labelled").table["Edema"]
        np.testing.assert_array_equal(ones, [1, np.nan, 1])
        blank = r"a\.yaml: .*labels\.csv: column 'Edema': 1 of 3 cells are blank; set their mean"
        with pytest.raises(InputError, match=blank):
            labels(blank=None)

    @pytest.mark.parametrize(("keys", "message"), [
        ({"classes": ["Masss"]}, "key 'classes': 'Masss' is not a class .*nearest known: Mass"),
        ({"uncertain": {"Nodule": "ones"}}, "key 'uncertain': 'Nodule' is not a class of this"),
        ({"merges": {"Effusion": ["water"]}}, "'merges': 'Effusion' needs .* got 'water'"),
        ({"distinct": ["Maass"]}, "key 'distinct': 'Maass' is not a class of this site"),
        ({"split": "none.csv"}, r"'split' needs a file that exists .*: surgagg data split"),
    ])  # fmt: skip
    def test_what_does_not_fit_the_labels_is_refused_by_file_and_key(self, labels, keys, message):
        with pytest.raises(InputError, match=rf"a\.yaml.*{message}"):
            labels(**keys)

    @pytest.mark.parametrize(("text", "message"), [
        (COLUMNS.replace("Left effusion", "x" * 201) + ROWS, "may have 200 bytes .* has 201"),
        (COLUMNS.replace("Left effusion", "\uff2dass") + ROWS, "one class spelt twice"),
        (COLUMNS + "c.png,2,lateral,1,0,0,0\n", r"none of the 1 images .* views are lateral"),
    ])  # fmt: skip
    def test_a_table_that_cannot_be_trained_on_is_refused(self, labels, tmp_path, text, message):
        (tmp_path / "labels.csv").write_text(text)
        with pytest.raises(InputError, match=rf"a\.yaml: .*{message}"):
            labels()


def test_rows_find_their_pixels_and_unusable_images_are_left_out_within_the_limit(labels, tmp_path):
    loaded = load_images(labels(), 4)
    assert loaded.table["image"].tolist() == ["a.png", "b.png", "d.png"]
    assert loaded.pixels[loaded.rows][:, 0, 0].tolist() == [0, 1, 3]
    (tmp_path / "images/a.png").write_bytes(b"no picture")
    with pytest.raises(ImageError, match=r"a\.yaml: key 'bad_images'.*1 of 3.*a\.png"):
        load_images(labels(), 4)
    loaded = load_images(labels(bad_images=1), 4)
    assert loaded.table["image"].tolist() == ["b.png", "d.png"]
    assert loaded.pixels[loaded.rows][:, 0, 0].tolist() == [1, 3]
    # What the split leaves unused is not even decoded.
    (tmp_path / "split.csv").write_text("patient,split\n1,unused\n2,test\n3,train\n")
    assert load_images(labels(), 4).table["image"].tolist() == ["b.png", "d.png"]


def test_sites_that_share_a_patient_and_a_patient_without_split_are_refused(labels, tmp_path):
    with pytest.raises(InputError, match=r"3 are at both .*a\.yaml and .*b\.yaml, first 1, 2"):
        check_disjoint([labels("a"), labels("b")])
    (tmp_path / "other.csv").write_text(COLUMNS + ROWS)  # another hospital has other patients
    (note,) = check_disjoint([labels("a"), labels("b", labels="other.csv")])
    assert note.startswith("3 patient ids are at both a and b, first 1, 2, 3; if they are the same")
    (tmp_path / "split.csv").write_text("patient,site,split\n1,a,train\n2,b,test\n3,a,train\n")
    check_disjoint([labels("a"), labels("b")])
    (tmp_path / "split.csv").write_text("patient,split\n1,train\n2,test\n")
    with pytest.raises(InputError, match=r"split\.csv: every patient needs a split; 1 of 3"):
        labels()


class TestContradictions:
    """Images that are not the radiographs that the labels say."""

    @pytest.fixture
    def odd(self, labels, tmp_path):
        rows = "ct.dcm,1,PA,1,0,0,1\nll.dcm,2,PA,1,0,0,0\nap.dcm,3,PA,0,1,0,0\n"
        rows += "fine.dcm,4,PA,0,1,0,0\nside.dcm,5,lateral,0,1,0,0\n"
        (tmp_path / "odd.csv").write_text(COLUMNS + rows)
        found = {
            "ct": {"PresentationIntentType": "FOR PROCESSING", "BodyPartExamined": "ABDOMEN"},
            "ll": {"ViewPosition": "LL"}, "ap": {"ViewPosition": "AP"},
            "fine": {"Modality": "DX", "ViewPosition": "PA"},
            "side": {"Modality": "DX", "ViewPosition": "LL"},
        }  # fmt: skip
        for value, (name, elements) in enumerate(found.items()):
            pixels = np.arange(16, dtype=np.uint16).reshape(4, 4) * (value + 1)
            pixels[0, 0] = 1000
            (tmp_path / f"images/{name}.dcm").write_bytes(written(dataset(pixels, **elements)))
        split = "".join(f"{patient},train\n" for patient in range(1, 6))
        (tmp_path / "odd_split.csv").write_text(f"patient,split\n{split}")
        return lambda **keys: labels(labels="odd.csv", split="odd_split.csv", views="all", **keys)

    NOTES = ("body part ABDOMEN; for processing, not for presentation",
             "view LL, labelled PA", "view AP, labelled PA")  # fmt: skip

    def test_they_are_used_and_noted(self, odd):
        _, prepared = prepare(odd(), 4)
        assert prepared.index["notes"].tolist() == [*self.NOTES, "", ""]
        assert (set(prepared.index["status"]), len(load_images(odd(), 4).table)) == ({"ok"}, 5)

    def test_or_left_out_and_listed_where_the_site_refuses_them(self, odd):
        refused = odd(contradictions="refuse", bad_images=3)
        _, prepared = prepare(refused, 4)
        assert prepared.index["status"].tolist() == [*["contradiction"] * 3, "ok", "ok"]
        assert prepared.index["detail"].tolist() == [*self.NOTES, "", ""]
        assert "ct.dcm" in prepared.problems.read_text()
        assert load_images(refused, 4).table["image"].tolist() == ["fine.dcm", "side.dcm"]
        with pytest.raises(ImageError, match=r"3 of 5 are \(3 contradiction\), first ct\.dcm"):
            load_images(odd(contradictions="refuse"), 4)


def test_padded_ids_are_one_at_two_sites_but_not_where_each_image_is_a_patient(labels, tmp_path):
    (tmp_path / "padded.csv").write_text(COLUMNS + ROWS.replace(".png,", ".png,0"))
    (tmp_path / "split0.csv").write_text("patient,split\n01,train\n02,test\n03,train\n")
    other = labels("b", labels="padded.csv", split="split0.csv")
    assert other.read["patient"].tolist()[0] == "01"  # alone in its spelling
    assert check_disjoint([labels("a"), other])[0].startswith("3 patient ids are at both a and b")
    rows = "a.png,PA,1,1,1,1\nb.png,PA,0,0,0,0\n"
    (tmp_path / "alone.csv").write_text(COLUMNS.replace("patient,", "") + rows)
    (tmp_path / "split1.csv").write_text("patient,split\na.png,train\nb.png,test\n")
    keys = {"labels": "alone.csv", "split": "split1.csv", "patients": "each-image"}
    alone = [labels(name, **keys) for name in "ab"]
    assert alone[0].table["patient"].tolist() == ["a.png", "b.png"]
    assert not check_disjoint(alone)


def test_a_split_that_keeps_spellings_apart_stays_and_says_so(labels, tmp_path):
    (tmp_path / "labels.csv").write_text(COLUMNS + ROWS.replace("b.png,2", "b.png,01"))
    (tmp_path / "split.csv").write_text("patient,split\n1,train\n01,test\n3,train\n2,unused\n")
    loaded = labels()
    assert loaded.table["patient"].tolist()[:2] == ["1", "01"]
    (note,) = loaded.read.attrs["notes"]
    assert "keeps spellings of 1 patients apart" in note and "1 are in more than one split" in note
    (tmp_path / "split.csv").write_text("patient,split\n1,train\n3,train\n2,unused\n")
    assert labels().table["patient"].tolist()[:2] == ["1", "1"]


def test_images_without_a_known_view_are_counted_unless_all_are_used(labels, tmp_path):
    (tmp_path / "labels.csv").write_text(COLUMNS + ROWS.replace("b.png,2,AP", "b.png,2,"))
    assert labels().read.attrs["notes"] == [
        "1 images have no known view, first b.png, and are left out; 'views: all' uses all images "
        "(--views all)"
    ]
    assert labels().table["image"].tolist() == ["a.png", "d.png"]
    assert not labels(views="all").read.attrs["notes"]


def test_labels_against_a_part_are_counted(labels, tmp_path):
    text = (COLUMNS + ROWS).replace("Mass", "Fracture").replace("Edema", "Rib fracture")
    (tmp_path / "labels.csv").write_text(text)
    assert labels().read.attrs["notes"] == [
        "1 labels of Fracture are negative where a part of it is positive (Rib fracture 1); to "
        "merge them: 'merges: {Fracture: [Rib fracture]}'"
    ]
    assert not labels(merges={"Fracture": ["Rib fracture"]}).read.attrs["notes"]
