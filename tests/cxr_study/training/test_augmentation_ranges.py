import pytest

from cxr_study.training.augmentation_ranges import (
    AUGMENTATIONS,
    Amplitudes,
    AugmentationError,
    amplitudes,
)


def test_paper_has_the_amplitudes_of_the_papers_code():
    factor = 0.2  # of a whole turn
    assert AUGMENTATIONS["paper"] == Amplitudes(
        rotation=factor * 360, zoom=0.5, contrast=0.75, flip=0.5
    )


def test_an_unknown_name_is_refused_with_those_there_are():
    message = r"augmentation must be one of \('none', 'radiology', 'paper'\); got 'papers'"
    with pytest.raises(AugmentationError, match=message):
        amplitudes("papers")
