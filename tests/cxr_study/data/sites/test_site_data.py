import numpy as np
import pytest

from cxr_study.data.images.image_store import ImageError
from cxr_study.data.labels.label_policy import PolicyError
from cxr_study.data.sites.patient_split import SplitError
from cxr_study.data.sites.site_data import check_disjoint, load_images, load_labels
from cxr_study.data.sites.site_file import SiteFileError, read_site_file
from site_files import COLUMNS, ROWS, write_data, write_site


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Reads a site file with other keys."""
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
    write_data(tmp_path)
    return lambda name="a", **keys: read_site_file(write_site(tmp_path, name, **keys))


class TestLabels:
    def test_the_site_sees_its_own_classes_with_split_and_file(self, site, tmp_path):
        table = load_labels(site(classes=["Edema", "Mass"])).table
        assert list(table.columns[5:]) == ["Edema", "Mass", "split", "file"]
        assert table[["image", "Edema", "Mass", "split"]].values.tolist() == [
            ["a.png", 0, 1, "train"],
            ["b.png", 0, 0, "test"],
            ["d.png", 1, 0, "train"],
        ]
        assert table.loc[0, "file"] == str(tmp_path / "images/a.png")

    def test_the_table_as_read_keeps_every_row_class_and_state(self, site):
        read = load_labels(site(classes=["Edema"])).read
        assert read["image"].tolist() == ["a.png", "b.png", "c.png", "d.png"]
        assert read["Edema"].tolist() == [-1, -2, 0, 1]
        assert "Mass" in read

    def test_laterals_are_used_on_request(self, site):
        assert len(load_labels(site(views="all")).table) == 4

    def test_classes_default_to_all_with_merges_made(self, site):
        labels = load_labels(site(merges={"Effusion": ["Left effusion", "Right effusion"]}))
        assert list(labels.table.columns[5:8]) == ["Mass", "Edema", "Effusion"]
        assert labels.table["Effusion"].tolist() == [1, 0, 0]

    def test_the_sites_policy_is_applied(self, site):
        ones = load_labels(site(uncertain={"Edema": "ones"}, blank="not labelled")).table["Edema"]
        np.testing.assert_array_equal(ones, [1, np.nan, 1])

    def test_blank_cells_that_nobody_decided_about_are_refused_by_the_file(self, site):
        with pytest.raises(PolicyError, match=r"a\.yaml: .*labels\.csv: column 'Edema': 1 of 3"):
            load_labels(site(blank=None))

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"classes": ["Masss"]}, "key 'classes': 'Masss' is no class .*nearest known: Mass"),
            ({"uncertain": {"Nodule": "ones"}}, "key 'uncertain': 'Nodule' is no class of this"),
            ({"merges": {"Effusion": ["water"]}}, "'merges': 'Effusion' needs .* got 'water'"),
            ({"distinct": ["Maass"]}, "key 'distinct': 'Maass' is no class of this site"),
            ({"split": "none.csv"}, r"'split' needs a file that exists .*: surgagg data split"),
        ],
    )
    def test_what_does_not_fit_the_labels_is_refused_by_file_and_key(self, site, keys, message):
        with pytest.raises(SiteFileError, match=rf"a\.yaml.*{message}"):
            load_labels(site(**keys))

    @pytest.mark.parametrize(
        ("column", "message"),
        [
            ("x" * 201, "may have 200 bytes in UTF-8; .* has 201"),
            ("\uff2dass", "one class spelt twice"),
        ],
    )
    def test_a_class_that_no_server_takes_is_refused(self, site, tmp_path, column, message):
        labels = (COLUMNS + ROWS).replace("Left effusion", column)
        (tmp_path / "labels.csv").write_text(labels)
        with pytest.raises(SiteFileError, match=rf"a\.yaml: .*{message}"):
            load_labels(site())

    def test_a_site_without_frontal_pictures_is_refused(self, site, tmp_path):
        lateral = COLUMNS + ROWS.replace("PA", "lateral").replace("AP", "lateral")
        (tmp_path / "labels.csv").write_text(lateral)
        with pytest.raises(SiteFileError, match=r"none of the 4 images .* their views are lateral"):
            load_labels(site())

    def test_a_patient_without_split_is_refused_by_the_split_file(self, site, tmp_path):
        (tmp_path / "split.csv").write_text("patient,split\n1,train\n2,test\n")
        with pytest.raises(SplitError, match=r"split\.csv: every patient needs a split; 1 of 3"):
            load_labels(site())


class TestImages:
    def test_every_row_finds_its_pixels(self, site):
        loaded = load_images(load_labels(site()), 4)
        assert loaded.table["image"].tolist() == ["a.png", "b.png", "d.png"]
        assert loaded.pixels[loaded.rows][:, 0, 0].tolist() == [0, 1, 3]

    def test_unusable_images_are_refused_by_default(self, site, tmp_path):
        (tmp_path / "images/a.png").unlink()
        with pytest.raises(ImageError, match=r"a\.yaml: key 'bad_images'.*1 of 3.*a\.png"):
            load_images(load_labels(site()), 4)

    def test_unusable_images_within_the_limit_are_left_out(self, site, tmp_path):
        (tmp_path / "images/a.png").write_bytes(b"no picture")
        loaded = load_images(load_labels(site(bad_images=1)), 4)
        assert loaded.table["image"].tolist() == ["b.png", "d.png"]
        assert loaded.pixels[loaded.rows][:, 0, 0].tolist() == [1, 3]
        assert loaded.prepared.index["status"].tolist() == ["unreadable", "ok", "ok"]

    def test_images_left_unused_by_the_split_are_not_decoded(self, site, tmp_path):
        (tmp_path / "split.csv").write_text("patient,split\n1,train\n2,test\n3,unused\n")
        (tmp_path / "images/d.png").unlink()
        loaded = load_images(load_labels(site()), 4)
        assert loaded.table["image"].tolist() == ["a.png", "b.png"]


class TestDisjointSites:
    def test_sites_that_share_a_patient_are_refused(self, site):
        with pytest.raises(SplitError, match=r"3 are at both .*a\.yaml and .*b\.yaml, first 1, 2"):
            check_disjoint([load_labels(site("a")), load_labels(site("b"))])

    def test_sites_cut_by_one_split_file_are_fine(self, site, tmp_path):
        (tmp_path / "split.csv").write_text("patient,site,split\n1,a,train\n2,b,test\n3,a,train\n")
        check_disjoint([load_labels(site("a")), load_labels(site("b"))])

    def test_two_hospitals_may_number_their_patients_alike(self, site, tmp_path):
        (tmp_path / "other.csv").write_text(COLUMNS + ROWS)
        check_disjoint([load_labels(site("a")), load_labels(site("b", labels="other.csv"))])
