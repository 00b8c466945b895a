import re
from itertools import combinations

import pytest

from cxr_study.common.spelling import key
from cxr_study.data.labels.vocabulary import (
    CHEXPERT_CLASSES,
    NIH_CLASSES,
    SHARED,
    UNION_CLASSES,
    VocabularyError,
    canonical,
    catalogue,
    class_name,
    is_class,
    relation,
    resemblance,
)

DATASETS = ("nih", "chexpert", "mimic", "cxr-lt", "vindr", "padchest", "table")
RELATED = [entry for entry in catalogue() if entry.relation != "exact"]
CLASSES = sorted(
    {*UNION_CLASSES}
    | {entry.canonical for entry in catalogue()}
    | {canonical(entry.name) for entry in RELATED}
)


def test_nih_and_chexpert_share_seven_of_twenty_classes():
    assert (len(NIH_CLASSES), len(CHEXPERT_CLASSES), len(UNION_CLASSES)) == (14, 13, 20)
    assert set(NIH_CLASSES) & set(CHEXPERT_CLASSES) == set(SHARED)
    assert set(NIH_CLASSES) | set(CHEXPERT_CLASSES) == set(UNION_CLASSES)
    for names in (SHARED, NIH_CLASSES, CHEXPERT_CLASSES, UNION_CLASSES):
        assert list(names) == sorted(names)


class TestCanonical:
    @pytest.mark.parametrize(
        ("dataset", "spelling", "name"),
        [
            ("nih", "Effusion", "Pleural Effusion"),
            ("nih", "Infiltrate", "Infiltration"),
            ("nih", "Pleural_Thickening", "Pleural Thickening"),
            ("mimic", "Airspace Opacity", "Lung Opacity"),
            ("cxr-lt", "Clavicle Fracture", "Clavicle fracture"),
            ("vindr", "Pulmonary fibrosis", "Fibrosis"),
            ("padchest", "pulmonary edema", "Edema"),
            ("padchest", "round atelectasis", "Round(ed) Atelectasis"),
            ("padchest", "mass", "Mass"),
        ],
    )
    def test_a_dataset_has_its_own_names(self, dataset, spelling, name):
        assert canonical(spelling, dataset) == name

    @pytest.mark.parametrize("dataset", [None, *DATASETS])
    def test_canonical_names_stand_for_themselves_in_every_dataset(self, dataset):
        assert [canonical(name, dataset) for name in CLASSES] == CLASSES

    @pytest.mark.parametrize(
        ("spelling", "name"),
        [
            ("pleural effusion", "Pleural Effusion"),
            ("Pleural/Other", "Pleural Other"),
            ("pleural-other", "Pleural Other"),
            (" Lung  Lesion ", "Lung Lesion"),
            ("nodule_mass", "Nodule/Mass"),
        ],
    )
    def test_case_and_separators_do_not_matter(self, spelling, name):
        assert canonical(spelling) == name

    def test_no_two_classes_differ_in_case_and_separators_alone(self):
        assert len({key(name) for name in CLASSES}) == len(CLASSES)

    @pytest.mark.parametrize("dataset", [None, "table", "chexpert", "padchest"])
    def test_an_effusion_is_pleural_in_nih_alone(self, dataset):
        with pytest.raises(VocabularyError):
            canonical("Effusion", dataset)

    @pytest.mark.parametrize("name", ["No Finding", "No finding", "Normal", "Lung", ""])
    def test_what_is_no_class_is_refused(self, name):
        for dataset in DATASETS:
            with pytest.raises(VocabularyError, match=f"'{name}' is not the name of a class"):
                canonical(name, dataset)

    def test_a_mistyped_class_is_answered_with_the_nearest_names_of_its_dataset(self):
        with pytest.raises(VocabularyError, match=r"nearest known: Cardiomegaly$"):
            canonical("Cardiomegally")
        with pytest.raises(VocabularyError, match=r"nearest known: Clavicle fracture"):
            canonical("Clavicular fracture", "vindr")

    def test_class_name_leaves_what_nobody_knows_as_it_stands(self):
        assert class_name("Effusion", "nih") == "Pleural Effusion"
        assert class_name("Effusion", "table") == "Effusion"

    def test_only_the_canonical_spelling_is_the_name_of_a_class(self):
        assert is_class("Nodule/Mass")
        assert not is_class("nodule/mass")
        assert not is_class("Effusion")


class TestCatalogue:
    def test_every_row_is_complete_and_stands_once(self):
        rows = [(entry.dataset, key(entry.name), entry.canonical) for entry in catalogue()]
        assert len(set(rows)) == len(rows)
        for entry in catalogue():
            assert entry.dataset in (*DATASETS, "*") and entry.dataset != "table"
            assert entry.relation in ("exact", "narrower", "broader", "never")
            assert entry.canonical == canonical(entry.canonical)
            assert entry.provenance and re.fullmatch(r"\S.*\S", entry.name)

    def test_a_dataset_calls_a_class_by_a_name_that_is_no_other_class(self):
        for entry in catalogue():
            if entry.relation == "exact":
                assert canonical(entry.name, entry.dataset) == entry.canonical
                assert class_name(entry.name) in (entry.name, entry.canonical)

    def test_related_names_are_classes_of_their_own(self):
        for entry in RELATED:
            assert canonical(entry.name) != entry.canonical
            assert relation(canonical(entry.name), entry.canonical) == entry

    def test_parts_of_a_class_are_never_forbidden_to_meet_in_it(self):
        for target in UNION_CLASSES:
            parts = [e.name for e in RELATED if (e.canonical, e.relation) == (target, "narrower")]
            for one, other in combinations([target, *parts], 2):
                entry = relation(one, other)
                assert entry is None or entry.relation != "never"

    @pytest.mark.parametrize(
        ("dataset", "target", "expected", "names"),
        [
            ("vindr", "Fracture", "narrower", ["Clavicle fracture", "Rib fracture"]),
            ("vindr", "Nodule", "broader", ["Nodule/Mass"]),
            ("vindr", "Lung Lesion", "never", ["Other lesion"]),
            ("padchest", "Atelectasis", "narrower", ["laminar atelectasis", "round atelectasis"]),
            ("padchest", "Pneumothorax", "narrower", ["hydropneumothorax"]),
            ("padchest", "Pleural Effusion", "narrower", ["hydropneumothorax"]),
            ("padchest", "Support Devices", "narrower", ["NSG tube", "pacemaker", "dai"]),
            ("padchest", "Emphysema", "never", ["subcutaneous emphysema"]),
            ("padchest", "Mass", "never", ["mediastinal mass", "breast mass"]),
            ("chexpert", "Mass", "never", ["Lung Lesion"]),
            ("chexpert", "Pleural Thickening", "never", ["Pleural Other"]),
            ("chexpert", "Infiltration", "never", ["Lung Opacity"]),
        ],
    )
    def test_what_resembles_a_class_is_related_to_it(self, dataset, target, expected, names):
        for name in names:
            entry = relation(canonical(name, dataset), target)
            assert entry is not None and entry.relation == expected

    def test_never_holds_both_ways_and_a_part_one_way(self):
        assert relation("Mass", "Lung Lesion") == relation("Lung Lesion", "Mass") is not None
        assert relation("Fracture", "Rib fracture") is None
        assert relation("Effusion", "Pleural Effusion") is None


class TestResemblance:
    @pytest.mark.parametrize(
        ("name", "other", "reason"),
        [
            ("Effusion", "Pleural Effusion", "dataset 'nih' calls Pleural Effusion so"),
            ("Pulmonary Fibrosis", "Fibrosis", "dataset 'vindr' calls Fibrosis so"),
            ("Effusion", "pericardial effusion", "one contains the other"),
            ("Viral pneumonia", "Pneumonia", "one contains the other"),
            ("Support device", "Support Devices", "the same words"),
            ("Masses", "Mass", "the same words"),
            ("Effusion, pleural", "Pleural Effusion", "the same words"),
            ("Oedema", "Edema", "nearly the same spelling"),
            ("Cardiomegally", "Cardiomegaly", "nearly the same spelling"),
        ],
    )
    def test_what_may_be_the_same_class_resembles_it(self, name, other, reason):
        assert resemblance(name, other) == reason

    @pytest.mark.parametrize(
        ("name", "other"),
        [
            ("Pneumonitis", "Pneumonia"),
            ("Pleural plaque", "Pleural Other"),
            ("Effusion", "Infiltration"),
            ("??", "Mass"),
        ],
    )
    def test_what_only_sounds_like_a_class_does_not(self, name, other):
        assert resemblance(name, other) is None
