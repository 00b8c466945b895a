import subprocess
import sys

import numpy as np
import pytest

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.training.chest_xray_site import ChestXraySite
from flare import Engine, context
from surgical_aggregation.site.contract.restricted_site import find_site, permitted
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.contract.site_policy import SitePolicy


def expected(site, split):
    table = site.labels.table[site.labels.table["split"] == split]
    return table.reindex(columns=list(UNION_CLASSES), fill_value=0.0)


class TestUnionHead:
    def test_it_has_all_classes_of_both_data_sets_or_those_named(self, site):
        assert (site("nih").classes, site("chexpert").classes) == (NIH_CLASSES, CHEXPERT_CLASSES)
        for other_classes in ("absent", "unknown"):
            assert site(other_classes=other_classes).classes == UNION_CLASSES
        union = ("Zebra", *reversed(NIH_CLASSES))
        assert site(other_classes="absent", union=" , ".join(union)).classes == union

    def test_a_class_outside_of_the_union_is_refused_by_site_file(self, site):
        message = r"sites/nih\.yaml: .* the 2 classes that the job names; .* also labels .* Hernia"
        with pytest.raises(SiteError, match=message):
            _ = site(other_classes="absent", union="Mass,Nodule").classes
        nih = site(other_classes="unknown")
        nih.labels.table.insert(5, "Scoliosis", 1.0)
        with pytest.raises(SiteError, match=r"20 classes of NIH and CheXpert; .* also labels Scol"):
            _ = nih.classes

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"union": "Mass,,Nodule"}, "different class names, by comma; got 'Mass,,Nodule'"),
            ({"union": "Mass,Mass"}, "different class names, by comma; got 'Mass,Mass'"),
            ({"other_classes": "no"}, r"one of \('omit', 'absent', 'unknown'\); got 'no'"),
        ],
    )
    def test_anything_else_is_refused(self, site, settings, message):
        with pytest.raises(SiteError, match=message):
            _ = site(**{"other_classes": "absent", **settings}).classes


class TestData:
    def test_a_split_has_its_rows_in_order_with_the_sites_labels(self, site, arrays):
        nih = site()
        images, labels = arrays(nih.data("validation"))
        assert images.shape == (len(labels), 16, 16, 3)
        wanted = expected(nih, "validation")[list(NIH_CLASSES)].to_numpy()
        np.testing.assert_array_equal(labels, wanted)
        np.testing.assert_array_equal(images, arrays(nih.data("validation"))[0])
        seen = [arrays(nih.data(split))[0] for split in ("train", "validation", "test")]
        assert sum(len(images) for images in seen) == 60
        assert len(np.unique(np.concatenate(seen), axis=0)) == 60

    @pytest.mark.parametrize(("other_classes", "label"), [("absent", 0.0), ("unknown", np.nan)])
    def test_what_the_site_does_not_label_is_what_was_asked_for(
        self, site, other_classes, label, arrays
    ):
        union = site(other_classes=other_classes)
        _, labels = arrays(union.data("train"))
        unlabelled = [name not in NIH_CLASSES for name in UNION_CLASSES]
        assert labels.shape[1] == 20
        np.testing.assert_array_equal(labels[:, unlabelled], np.full((len(labels), 6), label))
        own = expected(union, "train")[list(NIH_CLASSES)].to_numpy()
        labelled = [UNION_CLASSES.index(name) for name in NIH_CLASSES]
        np.testing.assert_array_equal(labels[:, labelled], own)
        assert own.any()

    def test_training_shuffles_anew_in_every_pass_reproducibly(self, site, arrays):
        first, second = (site(augmentation="none").data("train", training=True) for _ in range(2))
        passes = [arrays(first)[0], arrays(first)[0]]
        kept, _ = arrays(site().data("train"))
        assert not np.array_equal(passes[0], passes[1])
        assert not np.array_equal(passes[0], kept)
        np.testing.assert_array_equal([arrays(second)[0], arrays(second)[0]], passes)
        np.testing.assert_array_equal(np.unique(passes[0], axis=0), np.unique(kept, axis=0))
        other, _ = arrays(site(augmentation="none", seed=1).data("train", training=True))
        assert not np.array_equal(other, passes[0])
        later = site(augmentation="none").data("train", training=True, first_pass=1)
        np.testing.assert_array_equal(arrays(later)[0], passes[1])

    def test_training_images_alone_are_augmented_as_asked_for(self, site, arrays):
        kept, _ = arrays(site().data("train"))
        one, other = (
            arrays(site(augmentation=name).data("train", training=True))[0]
            for name in ("radiology", "paper")
        )
        assert not np.array_equal(np.unique(one, axis=0), np.unique(kept, axis=0))
        assert not np.array_equal(one, other)
        assert len(next(iter(site(batch_size=5).data("train")))[0]) == 5

    def test_an_unknown_augmentation_is_refused_before_training(self, site):
        with pytest.raises(ValueError, match=r"augmentation must be one of .* got 'flips'"):
            site(augmentation="flips").data("validation")

    def test_a_split_without_images_is_refused_by_site_file_and_split(self, site, monkeypatch):
        nih = site()
        nih.labels.table["split"] = nih.labels.table["split"].replace("validation", "train")
        with pytest.raises(SiteError, match=r"sites/nih\.yaml: the validation split needs .* none"):
            nih.data("validation")


def test_sites_start_from_one_hidden_layer_though_their_heads_differ(site):
    from cxr_study.training.network import build
    from surgical_aggregation.site.contract.architecture import initial_body
    from surgical_aggregation.site.training.trainer import LocalTraining
    from surgical_aggregation.site.training.training_options import TrainingOptions

    assert site().model().name == "small_densenet"
    assert site().model().input_shape == (None, 16, 16, 3)
    start = initial_body(build("small_densenet", 1, image_size=16, hidden=4))
    for name, classes in (("nih", 14), ("chexpert", 13)):
        training = LocalTraining(site(name, hidden=4), TrainingOptions())
        training.receive(start.variables, {})
        variables = training.variables()
        assert variables["head/kernel"].shape == (4, classes)
        for path in ("hidden/kernel", "hidden/bias"):
            assert variables[path].tobytes() == start.variables[path].tobytes()


class TestSiteFile:
    def test_a_site_without_a_file_is_refused_with_the_sites_there_are(self, site, phantom):
        message = rf"{phantom}/sites/mayo\.yaml does not exist; .* has sites \['chexpert', 'nih'\]"
        with pytest.raises(SiteError, match=message):
            _ = site("mayo").classes

    def test_without_a_folder_the_site_must_be_the_demo_studys(self, phantom, monkeypatch):
        demo = "cxr_study.phantom.site_folder.demo_study"
        monkeypatch.setattr(demo, lambda: phantom / "sites")
        assert ChestXraySite("nih").classes == NIH_CLASSES
        message = (
            r"mayo\.yaml .* .*'chexpert', 'nih'.*--site-files .*setting 'sites'"
            r".* CXR_SITES .* 'site_files' in the site's local/privacy\.json"
        )
        with pytest.raises(SiteError, match=message):
            _ = ChestXraySite("mayo").classes

    def test_the_policys_folder_is_used_where_the_job_names_none(
        self, phantom, tmp_path, monkeypatch
    ):
        monkeypatch.setattr("cxr_study.phantom.site_folder.demo_study", None)

        def found(sites):
            policy = {"site_files": str(phantom / "sites"), "share": ["Mass", "Nodule"]}
            engine = Engine(site=ChestXraySite("nih", sites, image_size=16))
            return find_site("site", context(engine=engine, policy=policy))

        assert found(None).classes == found("").classes == ("Mass", "Nodule")
        with pytest.raises(
            SiteError, match=rf"{tmp_path}/nih\.yaml does not exist; {tmp_path} has"
        ):
            _ = found(str(tmp_path)).classes


class TestTrainingLabels:
    def test_are_those_of_the_batches_though_none_is_made(self, site, monkeypatch, arrays):
        union = site(other_classes="unknown")
        _, labels = arrays(union.data("train"))
        monkeypatch.setattr(union, "data", None)
        np.testing.assert_array_equal(union.training_labels, labels)

    def test_are_known_without_tensorflow(self, phantom):
        code = (
            "import sys\n"
            "from cxr_study.training.chest_xray_site import ChestXraySite\n"
            f"site = ChestXraySite('nih', {str(phantom / 'sites')!r}, image_size=16)\n"
            "assert site.training_labels.shape[1] == 14\n"
            "sys.exit('tensorflow' in sys.modules)"
        )
        assert subprocess.run([sys.executable, "-c", code]).returncode == 0

    def test_decide_in_a_union_head_which_units_there_are(self, site):
        union = site(other_classes="absent")
        union.policy = SitePolicy(min_positives=1)
        assert set(permitted(union).classes) <= set(NIH_CLASSES)
