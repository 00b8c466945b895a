from pathlib import Path

from cxr_study.phantom.demo_data import PRETRAINED_BODY
from cxr_study.training.default_body import ChestXrayInitialBody


def test_the_configured_file_is_the_one():
    assert ChestXrayInitialBody("own.npz").path() == Path("own.npz")


def test_without_a_file_it_is_the_pretrained_one():
    for nothing in (None, ""):  # FLARE gives "" for a variable that is not set
        assert ChestXrayInitialBody(nothing).path() == PRETRAINED_BODY
