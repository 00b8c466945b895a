import numpy as np
import pytest

from cxr_study import embedded
from cxr_study.phantom import write_phantom
from cxr_study.site import ChestXraySite
from cxr_study.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from surgical_aggregation.site import SiteError


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    root = tmp_path_factory.mktemp("study") / "phantom"
    write_phantom(root, images_per_site=60, size=16)
    return root


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def site(phantom):
    def make(name="nih", **settings):
        settings = {"image_size": 16, "batch_size": 8, **settings}
        return ChestXraySite(name, str(phantom / "sites"), **settings)

    return make


def arrays(data):
    images, labels = zip(*data.as_numpy_iterator(), strict=True)
    return np.concatenate(images), np.concatenate(labels)


def expected(site, split):
    table = site._labels.table[site._labels.table["split"] == split]
    return table.reindex(columns=list(UNION_CLASSES), fill_value=0.0)


def test_classes_are_those_of_the_site_file(site):
    assert site("nih").classes == NIH_CLASSES
    assert site("chexpert").classes == CHEXPERT_CLASSES


def test_union_head_predicts_all_classes(site):
    assert site(union_head=True).classes == UNION_CLASSES


@pytest.mark.keras
class TestData:
    def test_a_split_has_its_rows_in_order_with_the_sites_labels(self, site):
        nih = site()
        images, labels = arrays(nih.data("validation"))
        assert images.shape == (len(labels), 16, 16, 3)
        wanted = expected(nih, "validation")[list(NIH_CLASSES)].to_numpy()
        np.testing.assert_array_equal(labels, wanted)
        np.testing.assert_array_equal(images, arrays(nih.data("validation"))[0])

    def test_splits_do_not_share_images(self, site):
        nih = site()
        seen = [arrays(nih.data(split))[0] for split in ("train", "validation", "test")]
        assert sum(len(images) for images in seen) == 60
        assert len(np.unique(np.concatenate(seen), axis=0)) == 60

    def test_union_head_takes_what_the_site_does_not_label_as_absent(self, site):
        union = site(union_head=True)
        _, labels = arrays(union.data("train"))
        lacked = [name not in NIH_CLASSES for name in UNION_CLASSES]
        assert labels.shape[1] == 20
        np.testing.assert_array_equal(labels, expected(union, "train").to_numpy())
        assert not labels[:, lacked].any() and labels.any()

    def test_training_shuffles_anew_in_every_pass_reproducibly(self, site):
        first, second = (site(augment=False).data("train", training=True) for _ in range(2))
        passes = [arrays(first)[0], arrays(first)[0]]
        kept, _ = arrays(site().data("train"))
        assert not np.array_equal(passes[0], passes[1])
        assert not np.array_equal(passes[0], kept)
        np.testing.assert_array_equal([arrays(second)[0], arrays(second)[0]], passes)
        np.testing.assert_array_equal(np.unique(passes[0], axis=0), np.unique(kept, axis=0))
        other, _ = arrays(site(augment=False, seed=1).data("train", training=True))
        assert not np.array_equal(other, passes[0])

    def test_training_images_alone_are_augmented(self, site):
        kept, _ = arrays(site().data("train"))
        augmented, _ = arrays(site().data("train", training=True))
        assert not np.array_equal(np.unique(augmented, axis=0), np.unique(kept, axis=0))

    def test_batches_have_the_size_asked_for(self, site):
        assert len(next(iter(site(batch_size=5).data("train")))[0]) == 5

    def test_a_split_without_images_is_refused_by_site_file_and_split(self, site, monkeypatch):
        nih = site()
        nih._labels.table["split"] = nih._labels.table["split"].replace("validation", "train")
        with pytest.raises(SiteError, match=r"sites/nih\.yaml: the validation split needs .* none"):
            nih.data("validation")


@pytest.mark.keras
def test_model_has_a_unit_per_class_and_the_settings_network(site):
    model = site(hidden=4).model()
    assert model.name == "small_densenet"
    assert model.input_shape == (None, 16, 16, 3)
    assert model.get_layer("head").kernel.shape == (4, 14)


class TestSiteFile:
    def test_a_site_without_a_file_is_refused_with_the_sites_there_are(self, site, phantom):
        message = rf"{phantom}/sites/mayo\.yaml does not exist; .* has sites \['chexpert', 'nih'\]"
        with pytest.raises(SiteError, match=message):
            _ = site("mayo").classes

    def test_without_a_folder_the_site_must_be_the_embedded_studys(self, phantom, monkeypatch):
        monkeypatch.setattr(
            "cxr_study.site.embedded_study", lambda: embedded.EmbeddedStudy(phantom)
        )
        assert ChestXraySite("nih").classes == NIH_CLASSES
        message = (
            r"mayo\.yaml .* no folder is given; .*'chexpert', 'nih'.* --site-files.* CXR_SITES"
        )
        with pytest.raises(SiteError, match=message):
            _ = ChestXraySite("mayo").classes
