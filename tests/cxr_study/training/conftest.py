"""A small phantom study, written once, and what its sites give."""

import numpy as np
import pytest

from cxr_study.phantom.writers.write_phantom import write_phantom


@pytest.fixture(scope="session")
def phantom(tmp_path_factory):
    root = tmp_path_factory.mktemp("study") / "phantom"
    write_phantom(root, images_per_site=60, size=16)
    return root


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def site(phantom):
    """Makes a site of the study."""
    from cxr_study.training.chest_xray_site import ChestXraySite

    def make(name="nih", **settings):
        settings = {"image_size": 16, "batch_size": 8, **settings}
        return ChestXraySite(name, str(phantom / "sites"), **settings)

    return make


@pytest.fixture
def arrays():
    """All images and labels of a dataset."""

    def arrays(data):
        images, labels = zip(*data.as_numpy_iterator(), strict=True)
        return np.concatenate(images), np.concatenate(labels)

    return arrays
