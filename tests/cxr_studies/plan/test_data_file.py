import shutil

import pytest
import yaml

from cxr_phantom.drawing.rendering import SITES
from cxr_studies.plan.data_file import DATA_SETS, read_data
from cxr_study.common.errors import InputError
from cxr_study.data.readers import DATASETS

KEYS = {
    "dataset": "nih", "labels": "phantom/nih/Data_Entry_2017_v2020.csv", "images": "phantom/nih",
}  # fmt: skip
REAL = {"data": {"nih": "phantom/nih"}, "initial_body": "body.npz"}


@pytest.fixture(scope="module")
def root(small_data, tmp_path_factory):
    """A folder with the phantom in the official layouts, without MIMIC's own labels, and a body."""
    folder = tmp_path_factory.mktemp("data")
    shutil.copytree(small_data.home / "phantom", folder / "phantom")
    (folder / "phantom/mimic/mimic-cxr-2.0.0-chexpert.csv.gz").unlink()
    (folder / "body.npz").touch()
    return folder


@pytest.fixture
def read(root):
    """Reads a data file of such keys in that folder."""

    def read_keys(keys):
        (root / "own.yaml").write_text(yaml.safe_dump(keys))
        return read_data(root / "own.yaml")

    return read_keys


class TestReadData:
    def test_the_phantom_is_as_large_as_asked_for(self, read):
        data = read({"data": "phantom", "images": 300, "settings": {"batch_size": 8}})
        assert (data.name, data.images, data.sources) == ("own", 300, {})
        assert data.path.is_absolute() and data.has("nih") and data.has("mimic")
        assert (data.initial_body, data.preset, data.settings) == (None, None, {"batch_size": 8})

    def test_real_data_are_downloads_or_site_files_next_to_the_file(self, read, root):
        paths = {"nih": "phantom/sites/nih.yaml", "chexpert": "phantom/chexpert"}
        paths["mimic"] = str(root / "phantom/mimic")
        data = read({"data": paths, "initial_body": "body.npz", "preset": "paper"})
        assert data.images is None
        assert data.sources == {name: root / path for name, path in paths.items()}
        assert (data.initial_body, data.preset, data.settings) == (root / "body.npz", "paper", {})
        assert not read(REAL).has("mimic")

    def test_a_data_set_may_be_the_keys_of_a_site_file(self, read, root):
        source = read({**REAL, "data": {"nih": {**KEYS, "views": "all"}}}).sources["nih"]
        assert (source.views, source.images) == ("all", root / "phantom/nih")
        assert source.labels == (root / KEYS["labels"],)

    def test_sites_with_splits_of_their_own_are_called_as_their_files(self, read, root):
        own = {"nih": {"learning_rate": 5e-5}}
        files = ["phantom/sites/nih.yaml", "phantom/sites/mimic.yaml"]
        data = read({"sites": files, "initial_body": "body.npz", "per_site": own})
        assert data.per_site == own
        assert data.sources == {n: root / f"phantom/sites/{n}.yaml" for n in ("nih", "mimic")}
        assert data.site_names == ("nih", "mimic") and data.own_splits and data.images is None
        assert read({"data": "phantom", "images": 9}).site_names == ("nih", "chexpert")

    @pytest.mark.parametrize(("keys", "message"), [
        ({"images": 3}, "needs key 'data'; has images"),
        ({"data": "phantom"}, "needs key 'images'; has data"),
        ({"data": "phantom", "images": None}, "needs key 'images'; has data"),
        ({"data": "phantom", "images": 0}, "key 'images' needs a number of 1 or more"),
        ({**REAL, "preset": "papr"}, "key 'preset' needs .*nearest known: paper"),
        ({**REAL, "per_site": {"nih": {}}}, "key 'per_site', key 'nih' needs one entry or more"),
        ({**REAL, "per_site": {"nih": 3}}, "key 'per_site', key 'nih' needs lines 'key: value'"),
        ({**REAL, "images": 9}, "key 'images' does not apply where the data are real"),
        ({"data": REAL["data"]}, "needs key 'initial_body'; has data"),
        ({**REAL, "initial_body": "no.npz"}, "key 'initial_body' needs a file that exists"),
        ({**REAL, "data": "fantom"}, "key 'data' needs phantom, or lines .*; got 'fantom'"),
        ({**REAL, "data": {}}, "key 'data' needs phantom, or lines .*; got {}"),
        ({**REAL, "data": {"nhi": "x"}}, r"key 'data', key 'nhi' needs a known name .*: nih\)"),
        ({**REAL, "data": {"nih": 3}}, "key 'data', key 'nih' needs a path; got 3"),
        ({"sites": ["no.yaml"]}, r"key 'sites': site file .*/no\.yaml does not exist"),
        ({"sites": ["phantom/sites/nih.yaml"] * 2}, "key 'sites' needs another file name"),
        ({**REAL, "sites": ["phantom/sites/nih.yaml"]}, "key 'data' cannot be combined with"),
        ({"sites": ["phantom/sites/nih.yaml"], "folds": 1}, "key 'folds' needs a number of 2 or"),
        ({**REAL, "folds": 5}, "key 'folds' cuts the patients of 'sites'"),
        ({**REAL, "data": {"nih": {**KEYS, "vews": "all"}}},
         "key 'data', key 'nih': key 'vews' is not known; nearest known: views"),
        ({**REAL, "data": {"nih": {**KEYS, "views": "lateral"}}},
         "key 'data', key 'nih', key 'views' needs frontal or all; got 'lateral'"),
        ({**REAL, "data": {"nih": {**KEYS, "split": "s.csv"}}}, ".*key 'split' is not known"),
        ({**REAL, "data": {"nih": {"dataset": "nih"}}}, ".*'nih' needs key 'labels'; has dataset"),
        ({**REAL, "data": {"nih": "no"}}, "key 'data': key 'nih': needs the folder .*/no is"),
        ({**REAL, "data": {"nih": "phantom/chexpert"}}, r".*'nih': needs one Data_Entry_2017\*"),
        ({**REAL, "data": {"nih": "no.yaml"}}, r"key 'data': key 'nih': site file .*/no\.yaml"),
    ])  # fmt: skip
    def test_a_mistake_is_refused_by_file_and_key(self, read, keys, message):
        with pytest.raises(InputError, match=rf"own\.yaml: {message}"):
            read(keys)


class TestShipped:
    def test_the_phantom_makes_a_study_of_two_thousand_images(self):
        data = read_data("phantom")
        assert (data.images, data.settings["image_size"]) == (2000, 64)
        assert set(DATA_SETS) == set(SITES) and set(DATA_SETS.values()) <= set(DATASETS)
        with pytest.raises(InputError, match=r"data file 'fantom': .*nearest known: phantom"):
            read_data("fantom")
