"""A hospital of the study, and the initial body of a run."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cxr_study.common import offered_data
from cxr_study.common.offered_data import DemoData
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.training.chest_xray_site import ChestXraySite
from flare import Engine, context, site_context
from surgical_aggregation.site.contract.restricted_site import find_site
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.contract.site_policy import SitePolicy
from surgical_aggregation.wire.privacy_json import PolicyError


@pytest.fixture
def site(drawn_sites):
    """Makes a site of the study."""

    def make(name="nih", **settings):
        settings = {"image_size": 16, "batch_size": 8, **settings}
        return ChestXraySite(name, drawn_sites, **settings)

    return make


def arrays(data):
    """All images and labels of a dataset."""
    images, labels = zip(*data.as_numpy_iterator(), strict=True)
    return np.concatenate(images), np.concatenate(labels)


def expected(site, split):
    table = site.labels.table[site.labels.table["split"] == split]
    return table.reindex(columns=list(NIH_CLASSES)).to_numpy()


class TestUnionHead:
    def test_it_has_all_classes_of_both_data_sets_or_those_named(self, site):
        assert (site("nih").classes, site("chexpert").classes) == (NIH_CLASSES, CHEXPERT_CLASSES)
        for other_classes in ("absent", "unknown"):
            assert site(other_classes=other_classes).classes == UNION_CLASSES
            engine = Engine(site=site(other_classes=other_classes))
            refused = context(engine=engine, policy={"refuse_union_head": True})
            with pytest.raises(PolicyError, match="'refuse_union_head'"):
                find_site(refused)
        assert not site().union_head
        union = ("Zebra", *reversed(NIH_CLASSES))
        assert site(other_classes="absent", union=" , ".join(union)).classes == union

    @pytest.mark.parametrize(("settings", "message"), [
        ({"union": "Mass,,Nodule"}, "different class names, by comma; got 'Mass,,Nodule'"),
        ({"union": "Mass,Mass"}, "different class names, by comma; got 'Mass,Mass'"),
        ({"other_classes": "no"}, r"one of \('omit', 'absent', 'unknown'\); got 'no'"),
        ({"union": "Mass,Nodule"},
         r"sites/nih\.yaml: .* the 2 classes that the job names; .* also labels .* Hernia"),
        ({}, r"20 classes of NIH and CheXpert; .* also labels Scoliosis"),
    ])  # fmt: skip
    def test_anything_else_is_refused(self, site, settings, message):
        nih = site(**{"other_classes": "absent", **settings})
        if not settings:
            nih.labels.table.insert(5, "Scoliosis", 1.0)
        with pytest.raises(SiteError, match=message):
            _ = nih.classes

    def test_a_withheld_class_does_not_show_in_whether_the_site_participates(self, site):
        positives = site().labels.table.query("split == 'train'")[list(NIH_CLASSES)].sum()
        rare, common, fewest = positives.idxmin(), positives.idxmax(), int(positives.min())
        nih = site(other_classes="unknown", union=f"{common},Zebra")
        assert rare in nih.labels.table and positives[common] > fewest + 1
        for shared, needed, shows in [
            ("Zebra", 0, False), (rare, 0, True), (rare, fewest, True), (rare, fewest + 1, False),
        ]:  # fmt: skip
            nih.policy = SitePolicy(share=(common, shared), min_positives=needed)
            if shows:
                with pytest.raises(SiteError, match=f"the site also labels {rare}"):
                    _ = nih.classes
            else:
                assert nih.classes == (common, "Zebra")


class TestData:
    def test_a_split_has_its_rows_in_order_with_the_sites_labels(self, site):
        nih = site()
        images, labels = arrays(nih.data("validation"))
        assert images.shape == (len(labels), 16, 16, 3)
        np.testing.assert_array_equal(labels, expected(nih, "validation"))
        np.testing.assert_array_equal(images, arrays(nih.data("validation"))[0])
        seen = [arrays(nih.data(split))[0] for split in ("train", "validation", "test")]
        assert sum(len(images) for images in seen) == 200
        assert len(np.unique(np.concatenate(seen), axis=0)) == 200
        assert len(next(iter(site(batch_size=5).data("train")))[0]) == 5

    @pytest.mark.parametrize(("other_classes", "label"), [("absent", 0.0), ("unknown", np.nan)])
    def test_what_it_does_not_label_is_as_asked_for(self, site, other_classes, label, monkeypatch):
        union = site(other_classes=other_classes)
        _, labels = arrays(union.data("train"))
        unlabelled = [name not in NIH_CLASSES for name in UNION_CLASSES]
        assert labels.shape[1] == 20
        np.testing.assert_array_equal(labels[:, unlabelled], np.full((len(labels), 6), label))
        labelled = [UNION_CLASSES.index(name) for name in NIH_CLASSES]
        own = expected(union, "train")
        np.testing.assert_array_equal(labels[:, labelled], own)
        assert own.any()
        _, tested = arrays(union.data("test"))  # a false negative would pass for a measurement
        assert np.isnan(tested[:, unlabelled]).all() and not np.isnan(tested[:, labelled]).any()
        monkeypatch.setattr(union, "data", None)  # no batch is made for the labels alone
        np.testing.assert_array_equal(union.training_labels, labels)

    def test_only_training_is_shuffled_again_in_every_pass_and_augmented_as_set(self, site):
        def images(augmentation="none", first_pass=0, **settings):
            nih = site(augmentation=augmentation, **settings)
            return arrays(nih.data("train", training=True, first_pass=first_pass))[0]

        first, (kept, _) = images(), arrays(site().data("train"))
        for other in (kept, images(first_pass=1), images(seed=1)):
            assert not np.array_equal(other, first)
        np.testing.assert_array_equal(images(), first)
        np.testing.assert_array_equal(np.unique(first, axis=0), np.unique(kept, axis=0))
        one, other = images("radiology"), images("paper")
        assert not np.array_equal(np.unique(one, axis=0), np.unique(kept, axis=0))
        assert not np.array_equal(one, other)
        with pytest.raises(ValueError, match=r"augmentation must be one of .* got 'flips'"):
            site(augmentation="flips").data("validation")  # and so before training

    def test_a_split_without_images_is_refused_by_site_file_and_split(self, site):
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
    def test_one_without_a_file_is_refused_with_those_there_are(self, drawn_sites, monkeypatch):
        message = rf"{drawn_sites}/mayo\.yaml does not exist; .* has sites \['chexpert', 'nih'\]"
        with pytest.raises(SiteError, match=message):
            _ = ChestXraySite("mayo", drawn_sites).classes
        drawn = DemoData((), lambda: Path(drawn_sites), None)
        monkeypatch.setattr(offered_data, "demo_data", lambda _: drawn)
        assert ChestXraySite("nih").classes == NIH_CLASSES
        message = (
            r"mayo\.yaml .* .*'chexpert', 'nih'.*--site-files .*setting 'sites'"
            r".* CXR_SITES .* 'site_files' in the site's local/privacy\.json"
        )
        with pytest.raises(SiteError, match=message):
            _ = ChestXraySite("mayo").classes

    def test_the_policys_folder_is_used_and_no_other(self, drawn_sites, tmp_path, monkeypatch):
        monkeypatch.setattr(offered_data, "demo_data", None)

        def found(sites, site="nih"):
            policy = {"site_files": drawn_sites, "share": ["Mass", "Nodule"]}
            engine = Engine(site=ChestXraySite(site, sites, image_size=16))
            return find_site(site_context("nih", engine, policy))

        assert found(None).classes == found("").classes == ("Mass", "Nodule")
        with pytest.raises(SiteError, match=rf"set by this site itself; .* names '{tmp_path}'"):
            _ = found(str(tmp_path)).classes
        with pytest.raises(SiteError, match=r"own file, nih\.yaml; the job names 'chexpert'"):
            _ = found(None, "chexpert").classes


def test_training_labels_are_known_without_tensorflow(drawn_sites):
    code = (
        "import sys; from cxr_study.training.chest_xray_site import ChestXraySite\n"
        f"site = ChestXraySite('nih', {drawn_sites!r}, image_size=16)\n"
        "sys.exit(site.training_labels.shape[1] != 14 or 'tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
