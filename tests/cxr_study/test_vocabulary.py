import pytest

from cxr_study.vocabulary import (
    CHEXPERT_CLASSES,
    NIH_CLASSES,
    SHARED,
    UNION_CLASSES,
    VocabularyError,
    canonical,
    nearest,
)


def test_nih_and_chexpert_share_seven_of_twenty_classes():
    assert (len(NIH_CLASSES), len(CHEXPERT_CLASSES), len(UNION_CLASSES)) == (14, 13, 20)
    assert set(NIH_CLASSES) & set(CHEXPERT_CLASSES) == set(SHARED)
    assert set(NIH_CLASSES) | set(CHEXPERT_CLASSES) == set(UNION_CLASSES)
    for names in (SHARED, NIH_CLASSES, CHEXPERT_CLASSES, UNION_CLASSES):
        assert list(names) == sorted(names)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Effusion", "Pleural Effusion"),
        ("Infiltrate", "Infiltration"),
        ("Pleural_Thickening", "Pleural Thickening"),
        ("pleural effusion", "Pleural Effusion"),
        ("Pleural/Other", "Pleural Other"),
        (" Lung  Lesion ", "Lung Lesion"),
    ],
)
def test_aliases_case_and_separators_lead_to_the_canonical_name(spelling, name):
    assert canonical(spelling) == name


@pytest.mark.parametrize("name", UNION_CLASSES)
def test_canonical_names_stand_for_themselves(name):
    assert canonical(name) == name


@pytest.mark.parametrize("name", ["No Finding", "Nodule/Mass", "Subcutaneous Emphysema", ""])
def test_what_only_resembles_a_class_is_refused(name):
    with pytest.raises(VocabularyError, match=f"'{name}' is not the name of a class"):
        canonical(name)


def test_a_mistyped_class_is_answered_with_the_nearest_ones():
    with pytest.raises(VocabularyError, match=r"nearest known: Cardiomegaly$"):
        canonical("Cardiomegally")


def test_where_nothing_is_near_all_known_names_are_offered():
    assert nearest("xyz", ("labels", "images")) == "known: labels, images"
