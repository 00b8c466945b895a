from pathlib import Path

from cxr_study.phantom.demo_data import PRETRAINED_BODY
from cxr_study.training.default_body import ChestXrayInitialBody


def test_it_is_the_configured_file_or_the_pretrained_one():
    assert ChestXrayInitialBody("own.npz").path() == Path("own.npz")
    for nothing in (None, ""):  # FLARE gives "" for a variable that is not set
        assert ChestXrayInitialBody(nothing).path() == PRETRAINED_BODY
