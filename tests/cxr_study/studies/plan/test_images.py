import pytest

from cxr_study.studies.plan import images
from cxr_study.studies.plan.data_sets import data_sets


def test_the_images_of_every_data_set_are_decoded_in_the_size_of_the_network(
    small_data, tmp_path, monkeypatch
):
    decoded = []
    monkeypatch.setattr(
        images, "prepare", lambda folder, sites, size: decoded.append((*sites, size))
    )
    found = data_sets(small_data.data, ["nih", "mimic"], tmp_path / "data")
    images.decode(found, tmp_path / "sites", 32)
    assert decoded == [("nih", 32), ("mimic", 32)]


def test_an_image_that_is_none_is_refused_before_anything_runs(small_data, tmp_path, monkeypatch):
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
    found = data_sets(small_data.data, ["nih"], tmp_path / "data")
    file = next((small_data.home / "phantom/nih").glob("**/*.png"))
    whole = file.read_bytes()
    file.write_bytes(b"none")
    try:
        with pytest.raises(ValueError, match=file.name):
            images.decode(found, tmp_path / "sites", 32)
    finally:
        file.write_bytes(whole)
