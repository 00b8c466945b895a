import re

import pytest

from cxr_study.common.spelling import key
from cxr_study.data.labels import vocabulary
from cxr_study.data.labels.vocabulary import catalogue, class_name, is_class, relation, resemblance

SHARED, NIH = vocabulary.SHARED, vocabulary.NIH_CLASSES
CHEXPERT, UNION = vocabulary.CHEXPERT_CLASSES, vocabulary.UNION_CLASSES
DATASETS = ("nih", "chexpert", "mimic", "cxr-lt", "vindr", "padchest", "table")
ALIASES = [entry for entry in catalogue() if entry.relation == "alias"]
RELATED = [entry for entry in catalogue() if entry.relation not in ("exact", "alias")]
CLASSES = {entry.canonical for entry in catalogue()} | {class_name(e.name) for e in RELATED}
CLASSES = sorted(CLASSES | {*UNION})


def test_nih_and_chexpert_share_seven_of_twenty_classes_whose_names_stand_for_themselves():
    assert (len(NIH), len(CHEXPERT), len(UNION)) == (14, 13, 20)
    assert set(NIH) & set(CHEXPERT) == set(SHARED)
    assert set(NIH) | set(CHEXPERT) == set(UNION)
    for names in (SHARED, NIH, CHEXPERT, UNION):
        assert list(names) == sorted(names)
    for dataset in (None, *DATASETS):
        assert [class_name(name, dataset) for name in CLASSES] == CLASSES
    assert len({key(name) for name in CLASSES}) == len(CLASSES)
    assert is_class("Nodule/Mass")
    assert not is_class("nodule/mass") and not is_class("Effusion")


@pytest.mark.parametrize(("dataset", "spelling", "name"), [
    ("nih", "Effusion", "Pleural Effusion"), ("nih", "Infiltrate", "Infiltration"),
    ("nih", "Pleural_Thickening", "Pleural Thickening"),
    ("mimic", "Airspace Opacity", "Lung Opacity"),
    ("cxr-lt", "Clavicle Fracture", "Clavicle fracture"),
    ("vindr", "Pulmonary fibrosis", "Fibrosis"), ("padchest", "pulmonary edema", "Edema"),
    ("padchest", "round atelectasis", "Round(ed) Atelectasis"), ("padchest", "mass", "Mass"),
    (None, "pleural effusion", "Pleural Effusion"),  # case and separators do not matter
    (None, "Pleural/Other", "Pleural Other"), (None, "pleural-other", "Pleural Other"),
    (None, " Lung  Lesion ", "Lung Lesion"), (None, "nodule_mass", "Nodule/Mass"),
    *((d, "Effusion", "Effusion") for d in (None, "table", "chexpert", "padchest")),
    *((d, n, n) for d in DATASETS for n in ("No Finding", "Normal", "Lung", "")),
])  # fmt: skip
def test_a_dataset_has_its_own_names_and_unknown_names_stay(dataset, spelling, name):
    assert class_name(spelling, dataset) == name


def test_every_row_is_complete_and_stands_once():
    entries = [entry for entry in catalogue() if entry.relation != "alias"]
    assert len({(e.dataset, key(e.name), e.canonical) for e in entries}) == len(entries)
    for entry in entries:
        assert entry.dataset in (*DATASETS, "*") and entry.dataset != "table"
        assert entry.relation in ("exact", "narrower", "broader", "never")
        assert is_class(entry.canonical)
        assert entry.provenance and re.fullmatch(r"\S.*\S", entry.name)
        if entry.relation == "exact":  # a name that is no other class
            assert class_name(entry.name, entry.dataset) == entry.canonical
            assert class_name(entry.name) in (entry.name, entry.canonical)
        else:  # a class of its own
            assert is_class(class_name(entry.name)) and class_name(entry.name) != entry.canonical
            assert relation(class_name(entry.name), entry.canonical) == entry


@pytest.mark.parametrize(("dataset", "target", "expected", "names"), [
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
])  # fmt: skip
def test_what_resembles_a_class_is_related_to_it(dataset, target, expected, names):
    for name in names:
        entry = relation(class_name(name, dataset), target)
        assert entry is not None and entry.relation == expected
    assert relation("Mass", "Lung Lesion") == relation("Lung Lesion", "Mass") is not None
    assert relation("Fracture", "Rib fracture") is None  # a part is one way
    assert relation("Effusion", "Pleural Effusion") is None


@pytest.mark.parametrize(("name", "other", "reason"), [
    ("Effusion", "Pleural Effusion", "dataset 'nih' calls Pleural Effusion so"),
    ("Effusion", "pericardial effusion", "one contains the other"),
    ("Support device", "Support Devices", "the same words"), ("Masses", "Mass", "the same words"),
    ("Effusion, pleural", "Pleural Effusion", "the same words"),
    ("Oedema", "Edema", "nearly the same spelling"),
    ("Pneumonitis", "Pneumonia", None), ("Pleural plaque", "Pleural Other", None),
    ("Effusion", "Infiltration", None), ("??", "Mass", None),
])  # fmt: skip
def test_what_may_be_the_same_class_resembles_it(name, other, reason):
    assert resemblance(name, other) == reason


def test_an_alias_suggests_the_class_and_translates_nothing():
    german = resemblance("Pleuraerguss", "Pleural Effusion")
    assert german == "German for Pleural Effusion (ICD-10-GM J90)"
    assert relation("Pleuraerguss", "Pleural Effusion") is None
    assert vocabulary.similar_classes("pneumothorax ") == ["Pneumothorax"]
    for alias in ALIASES:
        assert alias.provenance
        assert vocabulary.similar_classes(alias.name)[0] == alias.canonical, alias
        if key(alias.name) != key(alias.canonical):
            assert class_name(alias.name, "table") == alias.name
    assert {alias.dataset for alias in ALIASES} == {"en", "de", "fr", "es", "zh"}


def test_aliases_are_folded_once_and_not_for_every_pair(monkeypatch):
    """The server compares all names of all sites while sites wait for their tasks."""
    folded, pair = [], ("Pleuraerguss", "\u00c9panchement pleural")
    assert vocabulary.one_finding(*pair) == "both are called Pleural Effusion"
    monkeypatch.setattr(vocabulary, "key", lambda name: folded.append(name) or key(name))
    assert vocabulary.one_finding(*pair) == "both are called Pleural Effusion"
    assert len(folded) < 20
